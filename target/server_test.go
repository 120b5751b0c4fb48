package target

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpflood/mcpflood/internal/mcp"
)

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
