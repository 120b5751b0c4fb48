package flood

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/witness"
)

// eye is a witness with the declaration made for it.
type eye struct {
	witness.Witness
	declared history.Witness
}

const (
	// wireLag is how long after its sending a log line may be read.
	logLag = 300 * time.Millisecond
	// baselineScrapes are needed before the first call.
	baselineScrapes = 3
)

// openEyes checks, declares and starts the witnesses.
func (r *run) openEyes(ctx context.Context) error {
	r.history.Append(history.Record{Witness: ptr(witness.Wire())})
	if err := r.makeEyes(); err != nil {
		return err
	}
	var errs []error
	for _, e := range r.eyes {
		if err := e.Check(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, e := range r.eyes {
		if err := e.Start(ctx, r.history); err != nil {
			r.closeEyes()
			return err
		}
	}
	r.declare()
	return nil
}

func (r *run) makeEyes() error {
	var errs []error
	add := func(w witness.Witness, err error) {
		if err != nil {
			errs = append(errs, err)
			return
		}
		r.eyes = append(r.eyes, &eye{Witness: w})
	}
	secrets := r.cfg.secrets()
	for _, spec := range r.cfg.Log {
		add(witness.NewLog(witness.LogConfig{
			Source: len(r.eyes) + 1, Spec: spec, Work: r.cfg.LogWork, Stop: r.cfg.LogStop, Done: r.cfg.LogDone, Effect: r.cfg.LogEffect,
			Clock: r.clock, Nonce: r.nonce, Stdin: r.hooks.Stdin, Secrets: secrets,
		}))
	}
	if r.cfg.Metrics != "" {
		add(witness.NewMetrics(witness.MetricsConfig{
			Source: len(r.eyes) + 1, URL: r.cfg.Metrics, Metrics: r.cfg.Metric, Interval: r.cfg.MetricsInterval,
			Clock: r.clock, Nonce: r.nonce, TLS: &tls.Config{InsecureSkipVerify: r.cfg.Insecure}, Secrets: secrets,
		}))
	}
	return errors.Join(errs...)
}

// declare writes what the witnesses say they show. It is done before the first
// call and again after the clean calls, when they know.
func (r *run) declare() {
	for _, e := range r.eyes {
		e.declared = e.Declare()
		r.history.Append(history.Record{Witness: ptr(e.declared)})
	}
}

// closeEyes stops the witnesses; it may be called again.
func (r *run) closeEyes() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	for _, e := range r.eyes {
		e.Stop(ctx)
	}
}

// lag is how long evidence may take to arrive, as far as it is known before the
// run is judged.
func (r *run) lag() time.Duration {
	lag := logLag
	for _, e := range r.eyes {
		if poll := e.declared.Poll; poll > 0 {
			lag = max(lag, 2*poll+logLag)
		}
	}
	return lag
}

// baseline waits until every gauge was scraped often enough before the first
// call.
func (r *run) baseline(ctx context.Context) {
	for _, e := range r.eyes {
		limit := time.Now().Add(5*e.declared.Poll + time.Second)
		for e.declared.Poll > 0 && e.Stats().Read < baselineScrapes && time.Now().Before(limit) {
			if !sleep(ctx, e.declared.Poll/4) {
				return
			}
		}
	}
}

// quiet is how long a witness must show nothing new to count as up to date.
const quiet = 300 * time.Millisecond

// awaitEvidence waits until the witnesses have shown what came of calls that
// are over: until enough holds and nothing new came for a while, but for limit
// at most.
func (r *run) awaitEvidence(ctx context.Context, limit time.Duration, enough func() bool) {
	if len(r.eyes) == 0 {
		return
	}
	end := time.Now().Add(limit)
	sleep(ctx, r.lag())
	last, since := r.evidenceCount(), time.Now()
	for time.Now().Before(end) {
		if !sleep(ctx, 20*time.Millisecond) {
			return
		}
		if n := r.evidenceCount(); n != last {
			last, since = n, time.Now()
		}
		if enough() && time.Since(since) > quiet {
			return
		}
	}
}

func (r *run) evidenceCount() (n int64) {
	for _, e := range r.eyes {
		for _, c := range e.Stats().Kinds {
			n += c.Attributed + c.Foreign + c.Unattributed
		}
	}
	return n
}

// blind lists the witnesses whose patterns or metrics did not match the clean
// calls, with what they read instead; empty if all did.
func (r *run) blind() string {
	var b strings.Builder
	for _, e := range r.eyes {
		var missing []string
		for _, a := range e.Absent() {
			if a.Kind == history.Work || a.Kind == history.KindNone || e.declared.What == "metrics" {
				missing = append(missing, a.String())
			}
		}
		if len(missing) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s: the clean calls were not seen by\n  %s\n", e.declared.Name, strings.Join(missing, "\n  "))
		if lines := e.Unmatched(); len(lines) > 0 {
			fmt.Fprintf(&b, "what came and did not match:\n  %s\n", strings.Join(lines, "\n  "))
		} else if e.declared.What == "log" {
			b.WriteString("nothing was read at all: is it the right file, and is it written unbuffered?\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func ptr[T any](v T) *T { return &v }

// sleep waits; false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
