package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	toolName = "build_report"

	// maxMailedKeys bounds the memory of idempotency keys: the oldest are
	// forgotten first.
	maxMailedKeys = 100_000

	// logTime is time.RFC3339Nano with all nine digits kept, so that the text
	// shows its granularity.
	logTime = "2006-01-02T15:04:05.000000000Z07:00"
)

type reportConfig struct {
	steps    int
	stepTime time.Duration
	tailTime time.Duration
}

// report is the tool build_report with its log and its counters. Its methods
// may be called concurrently.
type report struct {
	cfg reportConfig

	inFlight, steps, cancelled, finished, effects atomic.Int64

	mu     sync.Mutex // guards the fields below
	log    io.Writer
	mailed map[string]bool
	oldest []string // the keys of mailed, in order
}

func newReport(cfg reportConfig, log io.Writer) *report {
	return &report{cfg: cfg, log: log, mailed: map[string]bool{}}
}

type reportArgs struct {
	Month          string `json:"month" jsonschema:"the month to report on, such as 2026-09"`
	IdempotencyKey string `json:"idempotency_key,omitempty" jsonschema:"the team is mailed once per key"`
}

// call is the tool handler. It stops when ctx is cancelled, as a handler
// should; whether a hang-up cancels ctx is the SDK's matter.
func (r *report) call(ctx context.Context, req *mcp.CallToolRequest, args reportArgs) (*mcp.CallToolResult, any, error) {
	r.inFlight.Add(1)
	defer r.inFlight.Add(-1)
	who := caller(req, args)

	done := 0
	for done < r.cfg.steps {
		if !pause(ctx, r.cfg.stepTime) {
			return nil, nil, r.cancel(ctx, done, who)
		}
		done++
		r.steps.Add(1)
		r.logf("step %d of %d %s", done, r.cfg.steps, who)
		r.progress(ctx, req, done)
	}
	if ctx.Err() != nil {
		return nil, nil, r.cancel(ctx, done, who)
	}
	if r.mail(args.IdempotencyKey) {
		r.logf("effect: e-mail to the team %s", who)
	}
	if !pause(ctx, r.cfg.tailTime) {
		return nil, nil, r.cancel(ctx, done, who)
	}
	r.finished.Add(1)
	r.logf("finished %s", who)
	text := fmt.Sprintf("report for %s: %d steps", args.Month, done)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
}

// progress reports a step that is done to a client that asked for it. A
// failure is dropped on purpose: the one word that stops the work is the
// context's.
func (r *report) progress(ctx context.Context, req *mcp.CallToolRequest, done int) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return
	}
	_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: token,
		Progress:      float64(done),
		Total:         float64(r.cfg.steps),
	})
}

// cancel counts and logs a stop after done steps, and returns the tool's error.
func (r *report) cancel(ctx context.Context, done int, who string) error {
	r.cancelled.Add(1)
	r.logf("cancelled at step %d (stream closed) %s", done, who)
	return ctx.Err()
}

// mail is the side effect; it reports whether it happened. A key is mailed
// once; without a key every call mails.
func (r *report) mail(key string) bool {
	if key != "" {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.mailed[key] {
			return false
		}
		r.mailed[key] = true
		r.oldest = append(r.oldest, key)
		if len(r.oldest) > maxMailedKeys {
			delete(r.mailed, r.oldest[0])
			r.oldest = r.oldest[1:]
		}
	}
	r.effects.Add(1)
	return true
}

// logf writes one line of the log. Its time is taken under the lock, so that
// the order of the lines is that of their times.
func (r *report) logf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = fmt.Fprintf(r.log, "%s %s t=%s\n", toolName, text, time.Now().UTC().Format(logTime))
}

// metrics renders the counters in the Prometheus text format.
func (r *report) metrics() string {
	var b strings.Builder
	add := func(name, kind, help string, value int64) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n%s{tool=%q} %d\n", name, help, name, kind, name, toolName, value)
	}
	add("target_in_flight", "gauge", "Calls being worked on.", r.inFlight.Load())
	add("target_steps_total", "counter", "Steps done.", r.steps.Load())
	add("target_cancelled_total", "counter", "Calls stopped before their end.", r.cancelled.Load())
	add("target_finished_total", "counter", "Calls worked to their end.", r.finished.Load())
	add("target_effects_total", "counter", "E-mails sent.", r.effects.Load())
	return b.String()
}

// caller names the request as far as the SDK shows it to a handler. The
// JSON-RPC id is not shown.
func caller(req *mcp.CallToolRequest, args reportArgs) string {
	trace, user := "", ""
	if parent, ok := req.Params.Meta["traceparent"].(string); ok {
		if fields := strings.Split(parent, "-"); len(fields) >= 4 {
			trace = fields[1]
		}
	}
	if req.Extra != nil {
		user, _ = strings.CutPrefix(req.Extra.Header.Get("Authorization"), "Bearer ")
	}
	return fmt.Sprintf("id=- marker=%s trace=%s user=%s", logValue(args.IdempotencyKey), logValue(trace), logValue(user))
}

// logValue keeps what a client sent inside one word of one line: "-" if it is
// empty, quoted if it could be mistaken for anything else.
func logValue(s string) string {
	if s == "" {
		return "-"
	}
	odd := func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`"=\`, c) }
	if s == "-" || strings.ContainsFunc(s, odd) {
		return strconv.QuoteToASCII(s)
	}
	return s
}

// pause waits for d and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
