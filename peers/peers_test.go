// Package peers_test checks that the servers of peers/ are what the end-to-end
// tests take them for: they speak MCP 2026-07-28, and two of them stop at a
// hang-up while two work on.
package peers_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpflood/mcpflood/peers/peertest"
)

const (
	testTimeout = 30 * time.Second
	pollEvery   = 5 * time.Millisecond
	traceID     = "0123456789abcdef0123456789abcdef"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type startFunc func(testing.TB, ...string) *peertest.Peer

// TestSpeaksMCP asks each SDK's server for all that a run asks for, and reads
// the evidence of one clean call.
func TestSpeaksMCP(t *testing.T) {
	tests := []struct {
		name  string
		start startFunc
		logID string // what the SDK shows a handler of the JSON-RPC id "call-1"
	}{
		{"go", peertest.StartGo, "-"},
		{"typescript", peertest.StartTypeScript, "call-1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			peer := test.start(t, "--steps", "3", "--step-time", "20ms", "--tail-time", "5ms")

			discover := request(t, peer, "discover-1", "server/discover", `{}`)
			if got := fmt.Sprint(discover["supportedVersions"]); !strings.Contains(got, "2026-07-28") {
				t.Errorf("server/discover: supportedVersions = %v, want 2026-07-28 among them", got)
			}
			if got, _ := json.Marshal(request(t, peer, "list-1", "tools/list", `{}`)["tools"]); !strings.Contains(string(got), `"build_report"`) {
				t.Errorf("tools/list: tools = %s, want build_report", got)
			}

			s := open(t, peer, "call-1", "tools/call", callParams("key-1", `,"progressToken":"token-1"`))
			defer s.close()
			if s.contentType != "text/event-stream" {
				t.Errorf("content type = %q, want an event stream", s.contentType)
			}
			for step := 1; step <= 3; step++ {
				got := s.next(t)
				if got.Method != "notifications/progress" || got.Params.ProgressToken != "token-1" || got.Params.Progress != float64(step) || got.Params.Total != 3 {
					t.Fatalf("event %d = %+v, want progress %d of 3 for token-1", step, got, step)
				}
			}
			if got := s.next(t); got.ID != "call-1" || got.Result["resultType"] != "complete" || got.Result["isError"] == true {
				t.Errorf("last event = %+v, want the complete result of call-1", got)
			}

			want := []string{"step 1 of 3", "step 2 of 3", "step 3 of 3", "effect: e-mail to the team", "finished"}
			lines := readLog(t, peer, "key-1")
			if len(lines) != len(want) {
				t.Fatalf("log = %+v, want %q", lines, want)
			}
			for i, line := range lines {
				if line.what != want[i] || line.id != test.logID || line.trace != traceID || line.user != "alice" {
					t.Errorf("log line %d = %+v, want %q of id %s, trace %s, user alice", i, line, want[i], test.logID, traceID)
				}
			}
			expectMetrics(t, peer, "target_in_flight 0", "target_steps_total 3", "target_cancelled_total 0", "target_finished_total 1", "target_effects_total 1")

			// The same key again: the work is done, the team is not mailed.
			request(t, peer, "call-2", "tools/call", callParams("key-1", ""))
			expectMetrics(t, peer, "target_finished_total 2", "target_effects_total 1")
		})
	}
}

// TestHangUp closes the stream of a call, after its third event and before any
// byte of an answer, and reads from the log what became of the work.
func TestHangUp(t *testing.T) {
	tests := []struct {
		name  string
		start startFunc
		flag  string
		stops bool
	}{
		{"go default", peertest.StartGo, "", false},
		{"go propagate", peertest.StartGo, "--propagate", true},
		{"typescript honouring", peertest.StartTypeScript, "", true},
		{"typescript ignoring", peertest.StartTypeScript, "--ignore-signal", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			// A call that is expected to stop has 20 s left when it is cut, so
			// that a slow machine cannot finish it first.
			steps, stepTime := 30, 50*time.Millisecond
			if test.stops {
				steps, stepTime = 1000, 20*time.Millisecond
			}
			flags := []string{"--steps", fmt.Sprint(steps), "--step-time", stepTime.String()}
			if test.flag != "" {
				flags = append(flags, test.flag)
			}
			peer := test.start(t, flags...)

			s := open(t, peer, "call-1", "tools/call", callParams("mid", `,"progressToken":"token-1"`))
			for range 3 {
				s.next(t)
			}
			s.close()
			expectEnd(t, peer, "mid", steps, stepTime, test.stops)

			// No token: neither SDK sends a byte before the result.
			ctx, hangUp := context.WithCancel(context.Background())
			answered := make(chan error, 1)
			go func() {
				resp, err := post(ctx, peer, "call-2", "tools/call", callParams("sent", ""))
				if err == nil {
					resp.Body.Close()
				}
				answered <- err
			}()
			await(t, "the second step", func() bool { return len(readLog(t, peer, "sent")) >= 2 })
			hangUp()
			if err := <-answered; err == nil {
				t.Fatal("a response head came before the hang-up, want none")
			}
			expectEnd(t, peer, "sent", steps, stepTime, test.stops)
			expectMetrics(t, peer, "target_in_flight 0")
		})
	}
}

// expectEnd waits for the end of the work of a call that was just cut, and
// checks that it is the expected one.
func expectEnd(t *testing.T, peer *peertest.Peer, marker string, steps int, stepTime time.Duration, stops bool) {
	t.Helper()
	if atCut := len(readLog(t, peer, marker)); atCut >= steps {
		t.Fatalf("%s: the work was over at the cut: the machine is too slow for this test", marker)
	}
	await(t, marker+": the end of the work", func() bool {
		lines := readLog(t, peer, marker)
		last := lines[len(lines)-1].what
		return last == "finished" || strings.HasPrefix(last, "cancelled")
	})
	if stops {
		// Nothing may follow the line that says so.
		time.Sleep(5 * stepTime)
	}
	lines := readLog(t, peer, marker)
	last := lines[len(lines)-1].what
	if stops {
		if want := fmt.Sprintf("cancelled at step %d (stream closed)", len(lines)-1); last != want {
			t.Errorf("%s: after %d steps the log ends with %q, want %q", marker, len(lines)-1, last, want)
		}
	} else if len(lines) != steps+2 || last != "finished" {
		t.Errorf("%s: %d lines, the last %q, want %d steps, the effect and the end", marker, len(lines), last, steps)
	}
}

// ---- a small client --------------------------------------------------------

type message struct {
	ID     any
	Method string
	Params struct {
		ProgressToken   string
		Progress, Total float64
	}
	Result map[string]any
}

type stream struct {
	contentType string
	body        io.ReadCloser
	lines       *bufio.Scanner
	close       func()
}

func callParams(key, meta string) string {
	return fmt.Sprintf(`{"name":"build_report","arguments":{"month":"2026-09","idempotency_key":%q},"_meta":{"traceparent":"00-%s-0123456789abcdef-01"%s}}`, key, traceID, meta)
}

// post sends one request on a connection of its own. The keys that the
// protocol demands are put into params._meta.
func post(ctx context.Context, peer *peertest.Peer, id, method, params string) (*http.Response, error) {
	var p map[string]any
	if err := json.Unmarshal([]byte(params), &p); err != nil {
		return nil, err
	}
	meta, ok := p["_meta"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		p["_meta"] = meta
	}
	meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28"
	meta["io.modelcontextprotocol/clientCapabilities"] = map[string]any{}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": p})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, peer.URL, strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer alice")
	req.Header.Set("MCP-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", method)
	if name, ok := p["name"].(string); ok {
		req.Header.Set("Mcp-Name", name)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return client.Do(req)
}

// open sends one request and returns its response stream.
func open(t *testing.T, peer *peertest.Peer, id, method, params string) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	resp, err := post(ctx, peer, id, method, params)
	if err != nil {
		cancel()
		t.Fatalf("%s: %v", method, err)
	}
	s := &stream{contentType: resp.Header.Get("Content-Type"), body: resp.Body, lines: bufio.NewScanner(resp.Body)}
	s.close = func() {
		cancel()
		s.body.Close()
	}
	if resp.StatusCode != http.StatusOK {
		defer s.close()
		text, _ := io.ReadAll(s.body)
		t.Fatalf("%s: status %d: %s", method, resp.StatusCode, text)
	}
	return s
}

// next reads the next message, from an event or from a plain JSON answer.
func (s *stream) next(t *testing.T) message {
	t.Helper()
	for s.lines.Scan() {
		data, isData := strings.CutPrefix(s.lines.Text(), "data:")
		if !isData && s.contentType != "application/json" {
			continue
		}
		var m message
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			t.Fatalf("message %q: %v", data, err)
		}
		return m
	}
	t.Fatalf("the stream ended without a message: %v", s.lines.Err())
	return message{}
}

// request returns the result of one request.
func request(t *testing.T, peer *peertest.Peer, id, method, params string) map[string]any {
	t.Helper()
	s := open(t, peer, id, method, params)
	defer s.close()
	m := s.next(t)
	if m.ID != id || m.Result["resultType"] != "complete" {
		t.Fatalf("%s: answer = %+v, want a complete result of %s", method, m, id)
	}
	return m.Result
}

// ---- the server's own evidence ---------------------------------------------

var logPattern = regexp.MustCompile(`^build_report (step \d+ of \d+|effect: e-mail to the team|finished|cancelled at step \d+ \(stream closed\)) id=(\S+) marker=(\S+) trace=(\S+) user=(\S+) t=(\S+)$`)

type logLine struct{ what, id, trace, user string }

// readLog returns the complete lines of one marker.
func readLog(t *testing.T, peer *peertest.Peer, marker string) []logLine {
	t.Helper()
	text, err := os.ReadFile(peer.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	complete := text[:strings.LastIndexByte(string(text), '\n')+1]
	var lines []logLine
	for line := range strings.Lines(string(complete)) {
		m := logPattern.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			t.Fatalf("log line %q does not match %v", line, logPattern)
		}
		if _, err := time.Parse(time.RFC3339Nano, m[6]); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		if m[3] == marker {
			lines = append(lines, logLine{what: m[1], id: m[2], trace: m[4], user: m[5]})
		}
	}
	return lines
}

// expectMetrics waits until every wanted "NAME VALUE" is shown for the tool.
func expectMetrics(t *testing.T, peer *peertest.Peer, want ...string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: testTimeout}
	await(t, fmt.Sprintf("metrics %q", want), func() bool {
		resp, err := client.Get(peer.MetricsURL)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			name, value, _ := strings.Cut(w, " ")
			if !strings.Contains(string(text), fmt.Sprintf("\n%s{tool=\"build_report\"} %s\n", name, value)) {
				return false
			}
		}
		return true
	})
}

// await polls until done, at most testTimeout.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testTimeout); !done(); time.Sleep(pollEvery) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain for %s", testTimeout, what)
		}
	}
}
