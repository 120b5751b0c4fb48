package target

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpflood/mcpflood/internal/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait; reaching it fails the test.
const patience = 10 * time.Second

// text is a buffer for the log or the truth that may be read while written.
type text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *text) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *text) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// rig is a target on loopback with its log and truth at hand.
type rig struct {
	t          *testing.T
	s          *Server
	addr       string
	log, truth text
}

func newRig(t *testing.T, cfg Config) *rig {
	t.Helper()
	r := &rig{t: t}
	cfg.Log, cfg.Truth = &r.log, &r.truth
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.s, r.addr = s, ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve() = %v", err)
		}
	})
	return r
}

// until waits for a condition.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("waited in vain for %s; log:\n%s", what, r.log.String())
		}
	}
}

// ended waits for the truth of one call.
func (r *rig) ended(id string) Truth {
	r.t.Helper()
	var found Truth
	r.until("the end of "+id, func() bool {
		for line := range strings.Lines(r.truth.String()) {
			var tr Truth
			if err := json.Unmarshal([]byte(line), &tr); err != nil {
				r.t.Fatalf("bad line of truth %q: %v", line, err)
			}
			if tr.ID == id {
				found = tr
				return true
			}
		}
		return false
	})
	return found
}

// logged waits for n log lines of a call that contain some text.
func (r *rig) logged(id, with string, n int) {
	r.t.Helper()
	r.until(fmt.Sprintf("%d lines %q of %s", n, with, id), func() bool { return r.lines(id, with) >= n })
}

func (r *rig) lines(id, with string) (n int) {
	for line := range strings.Lines(r.log.String()) {
		if strings.Contains(line, with) && strings.Contains(line, " id="+id+" ") {
			n++
		}
	}
	return n
}

// events is what a call's log lines say, in order, without identity.
func (r *rig) events(id string) string {
	var out []string
	for line := range strings.Lines(r.log.String()) {
		what, who, _ := strings.Cut(strings.TrimPrefix(line, toolName+" "), " id=")
		if strings.HasPrefix(who, id+" ") {
			out = append(out, what)
		}
	}
	return strings.Join(out, ", ")
}

// gauge reads one number from /metrics.
func (r *rig) metric(name string) string {
	r.t.Helper()
	c := dial(r.t, r.addr)
	defer c.Close()
	fmt.Fprintf(c, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	resp, body := c.response()
	if resp.StatusCode != 200 {
		r.t.Fatalf("/metrics: %s", resp.Status)
	}
	m := regexp.MustCompile(`(?m)^` + name + `\{tool="build_report"\} (.*)$`).FindStringSubmatch(body)
	if m == nil {
		r.t.Fatalf("no %s in:\n%s", name, body)
	}
	return m[1]
}

// client is one connection.
type client struct {
	net.Conn
	t  *testing.T
	br *bufio.Reader
}

func dial(t *testing.T, addr string) *client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(patience))
	return &client{c, t, bufio.NewReader(c)}
}

// ask is one request; its zero value is a build_report without a token.
type ask struct {
	id, method, token, args, user, meta string
	params                              string // instead of those of a tools/call
	head                                string // further header lines
	chunked                             bool
}

func (a ask) body() string {
	if a.method == "" {
		a.method = mcp.MethodToolsCall
	}
	if a.args == "" {
		a.args = `{"month":"2026-09"}`
	}
	if a.params == "" && a.method == mcp.MethodToolsCall {
		a.params = `"name":"build_report","arguments":` + a.args + `,`
	}
	if a.token != "" {
		a.meta += `,"progressToken":"` + a.token + `"`
	}
	return `{"jsonrpc":"2.0","id":"` + a.id + `","method":"` + a.method + `","params":{` + a.params +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}` + a.meta + `}}}`
}

// send writes the request.
func (c *client) send(a ask) *client {
	c.t.Helper()
	body := a.body()
	method := a.method
	head := "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n" +
		"MCP-Protocol-Version: 2026-07-28\r\n" + a.head
	if method == "" {
		method = mcp.MethodToolsCall
		head += "Mcp-Name: build_report\r\n"
	}
	head += "Mcp-Method: " + method + "\r\n"
	if a.user != "" {
		head += "Authorization: Bearer " + a.user + "\r\n"
	}
	if a.chunked {
		head += "Transfer-Encoding: chunked\r\n\r\n"
		body = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	} else {
		head += fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))
	}
	if _, err := io.WriteString(c, head+body); err != nil {
		c.t.Fatal(err)
	}
	return c
}

// call opens a connection for one request.
func (r *rig) call(a ask) *client { return dial(r.t, r.addr).send(a) }

// response reads all of an answer; a stream that breaks off gives what came.
func (c *client) response() (*http.Response, string) {
	c.t.Helper()
	resp, err := http.ReadResponse(c.br, nil)
	if err != nil {
		c.t.Fatalf("no response: %v", err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp, string(body)
}

// answered reads the messages of an answer, streamed or not.
func (c *client) answered() []mcp.Message {
	c.t.Helper()
	resp, body := c.response()
	var texts []string
	if resp.Header.Get("Content-Type") == "text/event-stream" {
		for line := range strings.Lines(body) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				texts = append(texts, data)
			}
		}
	} else {
		texts = append(texts, body)
	}
	var out []mcp.Message
	for _, s := range texts {
		m, err := mcp.DecodeMessage([]byte(s))
		if err != nil {
			c.t.Fatalf("bad message %q: %v", s, err)
		}
		out = append(out, m)
	}
	return out
}

// quick is a target fast enough for tests and slow enough to be cut.
func quick(faults ...FaultKind) Config {
	c := Config{Steps: 4, StepTime: 40 * time.Millisecond, TailTime: 20 * time.Millisecond, SlotWait: 20 * time.Millisecond}
	for _, k := range faults {
		c.Faults = append(c.Faults, Fault{Kind: k})
	}
	return c
}

const allSteps = "step 1 of 4, step 2 of 4, step 3 of 4, step 4 of 4, effect: e-mail to the team, finished"

func TestUncut(t *testing.T) {
	r := newRig(t, quick())
	for _, tt := range []struct {
		ask  ask
		form string
		want int // messages
	}{
		{ask{id: "s", token: "ps", user: "alice"}, "sse", 5},
		{ask{id: "j"}, "json", 1},
		{ask{id: "c", token: "pc", chunked: true}, "sse", 5},
	} {
		t.Run(tt.ask.id, func(t *testing.T) {
			c := r.call(tt.ask)
			defer c.Close()
			msgs := c.answered()
			if len(msgs) != tt.want {
				t.Fatalf("%d messages, want %d: %+v", len(msgs), tt.want, msgs)
			}
			for i, m := range msgs[:len(msgs)-1] {
				if m.Progress.Token != mcp.StringID(tt.ask.token) || m.Progress.Progress != float64(i+1) || m.Progress.Total != 4 {
					t.Errorf("message %d = %+v, want progress %d of 4", i, m, i+1)
				}
			}
			last := msgs[len(msgs)-1]
			if last.Kind != mcp.ResultResponse || last.ID != mcp.StringID(tt.ask.id) || last.Result.Type != mcp.ResultComplete || last.Result.IsError {
				t.Errorf("last message = %+v, want a complete result", last)
			}
			tr := r.ended(tt.ask.id)
			if tr.End != EndFinished || tr.Units != 4 || len(tr.Work) != 4 || len(tr.Effects) != 1 || tr.CutSeen != nil || tr.Form != tt.form || tr.User != tt.ask.user {
				t.Errorf("truth = %+v", tr)
			}
			if got := r.events(tt.ask.id); got != allSteps {
				t.Errorf("log = %s", got)
			}
		})
	}
	for name, want := range map[string]string{"in_flight": "0", "steps_total": "12", "cancelled_total": "0", "finished_total": "3", "effects_total": "3"} {
		if got := r.metric("target_" + name); got != want {
			t.Errorf("target_%s = %s, want %s", name, got, want)
		}
	}
}

// Where and how a client leaves: the phases of a call, as far as this server
// can tell them apart.
type leave struct {
	sent bool // before the first byte; else after the second step
	json bool
}

// cut makes a call, leaves it, and returns what became of it.
func (r *rig) cut(a ask, l leave) Truth {
	r.t.Helper()
	if !l.json && a.token == "" {
		a.token = "p" + a.id
	}
	c := r.call(a)
	if l.sent {
		r.until("the call", func() bool { return r.s.counters.inFlight.Load() > 0 })
	} else {
		r.logged(a.id, "step 2 of", 1)
	}
	c.Close()
	return r.ended(a.id)
}

func TestCut(t *testing.T) {
	const (
		stopsAt0 = "cancelled at step 0 (stream closed)"
		stopsAt2 = "step 1 of 4, step 2 of 4, cancelled at step 2 (stream closed)"
	)
	slow := quick(SlowStop)
	slow.StopDelay = slow.StepTime * 3 / 2
	slow.Steps = 40
	jsonAnswers := quick(DeafJSON)
	jsonAnswers.Answer = AnswerJSON
	for _, tt := range []struct {
		name  string
		cfg   Config
		leave leave
		end   End
		units int // negative: between 2 and all
		sent  int // e-mails
		log   string
	}{
		{"healthy mid", quick(), leave{}, EndCancelled, 2, 0, stopsAt2},
		{"healthy sent", quick(), leave{sent: true}, EndCancelled, 0, 0, stopsAt0},
		{"healthy json", quick(), leave{json: true}, EndCancelled, 2, 0, stopsAt2},
		{"healthy json sent", quick(), leave{json: true, sent: true}, EndCancelled, 0, 0, stopsAt0},
		{"run-on", quick(RunOn), leave{}, EndFinished, 4, 1, allSteps},
		{"run-on sent", quick(RunOn), leave{sent: true}, EndFinished, 4, 1, allSteps},
		{"slow-stop", slow, leave{}, EndCancelled, -1, 0, ""},
		{"deaf-before-headers mid", quick(DeafBeforeHeaders), leave{}, EndCancelled, 2, 0, stopsAt2},
		{"deaf-before-headers sent", quick(DeafBeforeHeaders), leave{sent: true}, EndFinished, 4, 1, allSteps},
		{"deaf-json as sse", quick(DeafJSON), leave{}, EndCancelled, 2, 0, stopsAt2},
		{"deaf-json as json", quick(DeafJSON), leave{json: true}, EndFinished, 4, 1, allSteps},
		{"deaf-json by --answer", jsonAnswers, leave{}, EndFinished, 4, 1, allSteps},
		{"deaf-body mid", quick(DeafBody), leave{}, EndFinished, 4, 1, allSteps},
		{"deaf-body sent", quick(DeafBody), leave{sent: true, json: true}, EndFinished, 4, 1, allSteps},
		{"lying-log", quick(LyingLog), leave{}, EndFinished, 4, 1, stopsAt2},
		{"effect-after", quick(EffectAfter), leave{}, EndCancelled, 2, 1, stopsAt2 + ", effect: e-mail to the team"},
		{"double-effect", quick(DoubleEffect), leave{}, EndCancelled, 2, 1, "step 1 of 4, step 2 of 4, effect: e-mail to the team, cancelled at step 2 (stream closed)"},
		{"slot-leak", quick(SlotLeak), leave{}, EndCancelled, 2, 0, stopsAt2},
		{"effect-after and run-on", quick(EffectAfter, RunOn), leave{}, EndFinished, 4, 1, allSteps},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, tt.cfg)
			tr := r.cut(ask{id: "x"}, tt.leave)
			unitsOK := tr.Units == tt.units || tt.units < 0 && tr.Units >= 2 && tr.Units < tt.cfg.Steps
			// A hang-up takes a moment to be noticed, and a busy machine may do a
			// step meanwhile; everything else must fit.
			late := tt.end == EndCancelled && tr.Units == tt.units+1
			if tr.End != tt.end || !unitsOK && !late || len(tr.Effects) != tt.sent || len(tr.Work) != tr.Units {
				t.Errorf("truth = %+v, want end %s, units %d, %d e-mails", tr, tt.end, tt.units, tt.sent)
			}
			if got := r.events("x"); tt.log != "" && !late && got != tt.log {
				t.Errorf("log = %s\nwant  %s", got, tt.log)
			}
			r.until("an empty gauge", func() bool { return r.metric("target_in_flight") == "0" })
			if got, want := r.metric("target_steps_total"), fmt.Sprint(tr.Units); got != want {
				t.Errorf("target_steps_total = %s, want %s", got, want)
			}
			if got, want := r.metric("target_effects_total"), fmt.Sprint(tt.sent); got != want {
				t.Errorf("target_effects_total = %s, want %s", got, want)
			}
			ends := map[End]string{EndFinished: "finished_total", EndCancelled: "cancelled_total"}
			if got := r.metric("target_" + ends[tt.end]); got != "1" {
				t.Errorf("target_%s = %s, want 1", ends[tt.end], got)
			}
			if tr.CutSeen != nil && tt.name == "slow-stop" && tr.Ended.Sub(*tr.CutSeen) < slow.StopDelay {
				t.Errorf("stopped %v after the hang-up, want at least %v", tr.Ended.Sub(*tr.CutSeen), slow.StopDelay)
			}
			deafBody := slices.Contains(tr.Faults, "deaf-body") && tt.leave.json
			if (tr.CutSeen == nil) != deafBody {
				t.Errorf("cut seen at %v; only a deaf body keeps net/http from noticing", tr.CutSeen)
			}
		})
	}
}

// The lying log's counters and gauge go on while the log is silent.
func TestLyingLogCounters(t *testing.T) {
	cfg := quick(LyingLog)
	cfg.Steps = 1000
	r := newRig(t, cfg)
	c := r.call(ask{id: "x", token: "p"})
	r.logged("x", "step 1 of", 1)
	c.Close()
	r.logged("x", "cancelled at step", 1)
	before := r.s.counters.steps.Load()
	r.until("more steps", func() bool { return r.s.counters.steps.Load() > before+1 })
	if g, n := r.metric("target_in_flight"), r.metric("target_cancelled_total"); g != "1" || n != "0" {
		t.Errorf("in flight %s, cancelled %s, want 1 and 0", g, n)
	}
	if got := r.events("x"); !strings.HasSuffix(got, "(stream closed)") {
		t.Errorf("log goes on after its lie: %s", got)
	}
}

// A half-close is a hang-up to net/http. Nothing may follow on the wire, not
// even the end of the stream.
func TestNothingAfterTheCut(t *testing.T) {
	for _, tt := range []struct {
		name string
		ask  ask
		step string
	}{
		{"mid", ask{id: "x", token: "p"}, "step 2 of"},
		{"json", ask{id: "x"}, "step 2 of"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, quick())
			c := r.call(tt.ask)
			defer c.Close()
			r.logged("x", tt.step, 1)
			c.Conn.(*net.TCPConn).CloseWrite()
			tr := r.ended("x")
			all, err := io.ReadAll(c.br)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(string(all), `"progress":`); tt.ask.token != "" && got != tr.Units || tt.ask.token == "" && len(all) > 0 {
				t.Errorf("%d progress events for %d units; read:\n%s", got, tr.Units, all)
			}
			if strings.HasSuffix(string(all), "0\r\n\r\n") {
				t.Errorf("the stream of a cancelled call was ended in order:\n%s", all)
			}
		})
	}
}

func TestIdempotencyKey(t *testing.T) {
	key := `{"month":"2026-09","idempotency_key":"k"}`
	for _, tt := range []struct {
		name   string
		faults []FaultKind
		asks   []ask
		want   string
	}{
		{"same key", nil, []ask{{id: "a", args: key}, {id: "b", args: key}}, "1"},
		{"no key", nil, []ask{{id: "a"}, {id: "b"}}, "2"},
		{"another user", nil, []ask{{id: "a", args: key}, {id: "b", args: key, user: "bob"}}, "2"},
		{"double-effect", []FaultKind{DoubleEffect}, []ask{{id: "a", args: key}, {id: "b", args: key}}, "2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := quick(tt.faults...)
			cfg.StepTime = time.Millisecond
			r := newRig(t, cfg)
			for _, a := range tt.asks {
				c := r.call(a)
				c.answered()
				c.Close()
			}
			if got := r.metric("target_effects_total"); got != tt.want {
				t.Errorf("%s e-mails, want %s", got, tt.want)
			}
		})
	}
}

func TestCrossTalk(t *testing.T) {
	cfg := quick()
	cfg.Faults = []Fault{{Kind: CrossTalk}}
	r := newRig(t, cfg)
	a, b := r.call(ask{id: "a", token: "pa"}), r.call(ask{id: "b", token: "pb"})
	defer a.Close()
	defer b.Close()
	strays := 0
	for c, own := range map[*client]string{a: "pa", b: "pb"} {
		msgs := c.answered()
		for _, m := range msgs {
			if m.Kind == mcp.Notification && m.Progress.Token != mcp.StringID(own) {
				strays++
			}
		}
		if last := msgs[len(msgs)-1]; last.Kind != mcp.ResultResponse {
			t.Errorf("last message = %+v, want the result", last)
		}
	}
	if strays == 0 {
		t.Error("no foreign progress on either stream, want some")
	}
	alone := r.call(ask{id: "c", token: "pc"})
	defer alone.Close()
	if msgs := alone.answered(); len(msgs) != 5 {
		t.Errorf("%d messages on the only stream, want 5", len(msgs))
	}
}

func TestWrongID(t *testing.T) {
	cfg := quick(WrongID)
	cfg.StepTime = time.Millisecond
	r := newRig(t, cfg)
	key := func(k string) string { return `{"month":"2026-09","idempotency_key":"` + k + `"}` }
	bag := func(k string) string { return `,"baggage":"a=1,mcpflood.call=` + k + `"` }
	for _, tt := range []struct {
		ask  ask
		want string
	}{
		{ask{id: "1", args: key("k")}, "1"},
		{ask{id: "2", args: key("k")}, "1"},
		{ask{id: "3", args: key("other")}, "3"},
		{ask{id: "4", args: key("k"), user: "bob"}, "4"},
		{ask{id: "5", meta: bag("m")}, "5"},
		{ask{id: "6", meta: bag("n")}, "6"},
		{ask{id: "7", meta: bag("m")}, "5"},
		{ask{id: "8"}, "8"},
		{ask{id: "9"}, "8"},
	} {
		c := r.call(tt.ask)
		if got := c.answered()[0].ID; got != mcp.StringID(tt.want) {
			t.Errorf("request %s is answered as %s, want %s", tt.ask.id, got, tt.want)
		}
		c.Close()
	}
}

func TestSpurious(t *testing.T) {
	cfg := quick(Spurious)
	cfg.Steps = 1000
	r := newRig(t, cfg)
	forms := map[string]bool{}
	for n := 0; len(forms) < 3 && n < 50; n++ {
		victim := fmt.Sprint("v", n)
		v := r.call(ask{id: victim, token: "pv"})
		r.logged(victim, "step 1 of", 1)
		r.cut(ask{id: fmt.Sprint("c", n)}, leave{sent: true})
		if tr := r.ended(victim); tr.End != EndSpurious || tr.CutSeen != nil {
			t.Fatalf("truth = %+v, want a spurious end", tr)
		}
		if !strings.HasSuffix(r.events(victim), "(stream closed)") {
			t.Errorf("log = %s, want a cancelled line", r.events(victim))
		}
		msgs := v.answered()
		last := msgs[len(msgs)-1]
		switch {
		case last.Kind == mcp.ErrorResponse && last.Cancelled() && last.ID == mcp.StringID(victim):
			forms["error"] = true
		case last.Kind == mcp.ResultResponse && last.Cancelled():
			forms["isError"] = true
		case last.Kind == mcp.Notification:
			forms["closed"] = true
		default:
			t.Errorf("victim got %+v", last)
		}
		v.Close()
	}
	if len(forms) != 3 {
		t.Errorf("saw only %v, want an error, an isError result and a closed stream", forms)
	}
}

func TestSlotLeak(t *testing.T) {
	cfg := quick(SlotLeak)
	cfg.Slots = 2
	r := newRig(t, cfg)
	r.cut(ask{id: "a"}, leave{})
	c := r.call(ask{id: "ok", token: "p"})
	if msgs := c.answered(); len(msgs) != 5 {
		t.Errorf("with a slot left: %d messages, want 5", len(msgs))
	}
	c.Close()
	r.cut(ask{id: "b"}, leave{})
	c = r.call(ask{id: "no", token: "p"})
	defer c.Close()
	resp, body := c.response()
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || !strings.Contains(body, "no free slot") {
		t.Errorf("without a slot: %s, Retry-After %q, %s", resp.Status, resp.Header.Get("Retry-After"), body)
	}
	if tr := r.ended("no"); tr.End != EndRefused || tr.Units != 0 {
		t.Errorf("truth = %+v", tr)
	}
	d := r.call(ask{id: "d", method: mcp.MethodDiscover})
	defer d.Close()
	if resp, _ := d.response(); resp.StatusCode != 200 {
		t.Errorf("discovery: %s, want 200", resp.Status)
	}
}

func TestBrick(t *testing.T) {
	r := newRig(t, quick(Brick))
	r.cut(ask{id: "a"}, leave{})
	for _, a := range []ask{{id: "b"}, {id: "c", method: mcp.MethodDiscover}} {
		c := r.call(a)
		if resp, _ := c.response(); resp.StatusCode != 500 {
			t.Errorf("request %s: %s, want 500", a.id, resp.Status)
		}
		c.Close()
	}
	if got := r.metric("target_cancelled_total"); got != "1" {
		t.Errorf("target_cancelled_total = %s, want 1: the counters stay readable", got)
	}
}

// Faults of a share meet the requests that the seed says, and no others.
func TestShare(t *testing.T) {
	cfg := quick()
	cfg.Faults = []Fault{{RunOn, 0.5}, {DeafBody, 0.3}}
	cfg.Seed = 7
	shares := sharesOf(cfg.Faults)
	r := newRig(t, cfg)
	var wg sync.WaitGroup
	for n := range 30 {
		wg.Go(func() {
			id := fmt.Sprint("x", n)
			c := dial(t, r.addr)
			c.send(ask{id: id, token: "p" + id})
			r.logged(id, "step 1 of", 1)
			c.Close()
			tr, set := r.ended(id), shares.draw(7, id)
			if want := set != 0; (tr.End == EndFinished) != want || !slices.Equal(tr.Faults, append([]string{}, set.names()...)) {
				t.Errorf("%s: truth %+v, want it to run on: %v", id, tr, want)
			}
		})
	}
	wg.Wait()
}

func TestAnswerForms(t *testing.T) {
	for _, tt := range []struct {
		answer Answer
		token  string
		want   []string // the content types seen over some ids
	}{
		{AnswerAuto, "", []string{"application/json"}},
		{AnswerAuto, "p", []string{"text/event-stream"}},
		{AnswerJSON, "p", []string{"application/json"}},
		{AnswerSSE, "", []string{"text/event-stream"}},
		{AnswerMixed, "p", []string{"application/json", "text/event-stream"}},
	} {
		t.Run(string(tt.answer)+tt.token, func(t *testing.T) {
			cfg := quick()
			cfg.StepTime, cfg.TailTime, cfg.Answer = time.Millisecond, -1, tt.answer
			r := newRig(t, cfg)
			var got []string
			for n := range 12 {
				c := r.call(ask{id: fmt.Sprint(n), token: tt.token})
				resp, body := c.response()
				c.Close()
				if !strings.Contains(body, `"resultType":"complete"`) {
					t.Fatalf("no result in %s", body)
				}
				if kind := resp.Header.Get("Content-Type"); !slices.Contains(got, kind) {
					got = append(got, kind)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("content types %v, want %v", got, tt.want)
			}
		})
	}
}

func TestCloseEndsCalls(t *testing.T) {
	cfg := quick(RunOn)
	cfg.Steps, cfg.LogBuffer = 1000, 1<<16
	r := newRig(t, cfg)
	c := r.call(ask{id: "x", token: "p"})
	defer c.Close()
	r.until("a step", func() bool { return r.s.counters.steps.Load() > 0 })
	if got := r.log.String(); got != "" {
		t.Errorf("a buffered log wrote %q before the block was full", got)
	}
	if err := r.s.Close(); err != nil {
		t.Fatal(err)
	}
	if tr := r.ended("x"); tr.End != EndShutdown {
		t.Errorf("truth = %+v, want a shutdown", tr)
	}
	if got := r.events("x"); !strings.HasPrefix(got, "step 1 of 1000") || strings.Contains(got, "cancelled") {
		t.Errorf("log after Close = %s, want the steps, and no hang-up that was none", got)
	}
}
