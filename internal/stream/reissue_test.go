package stream

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mcpflood/mcpflood/history"
)

func TestParseBackoff(t *testing.T) {
	for s, want := range map[string]Backoff{
		"":                         {},
		"none":                     {},
		"fixed(1s)":                {Base: time.Second, Cap: time.Second},
		"fixed( 20ms )":            {Base: 20 * time.Millisecond, Cap: 20 * time.Millisecond},
		"full-jitter(100ms,5s)":    {Base: 100 * time.Millisecond, Cap: 5 * time.Second, Jitter: true},
		"full-jitter(100ms, 5s)":   {Base: 100 * time.Millisecond, Cap: 5 * time.Second, Jitter: true},
		"full-jitter(100ms,100ms)": {Base: 100 * time.Millisecond, Cap: 100 * time.Millisecond, Jitter: true},
	} {
		if got, err := ParseBackoff(s); err != nil || got != want {
			t.Errorf("ParseBackoff(%q) = %+v, %v, want %+v", s, got, err, want)
		}
	}
	for _, s := range []string{"fixed", "fixed()", "fixed(1s", "fixed(1s)x", "fixed(1s,2s)", "fixed(-1s)", "fixed(1)", "full-jitter(1s)",
		"full-jitter(5s,1s)", "full-jitter(1s,2s,3s)", "none()", "never", "exp(1s)", "(1s)"} {
		if got, err := ParseBackoff(s); err == nil {
			t.Errorf("ParseBackoff(%q) = %+v, want an error", s, got)
		}
	}
}

func TestBackoffRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.Map(rapid.Int64Range(0, int64(1000*time.Hour)), func(n int64) time.Duration { return time.Duration(n) })
		b := Backoff{Base: d.Draw(t, "base"), Cap: d.Draw(t, "cap"), Jitter: rapid.Bool().Draw(t, "jitter")}
		if b.Cap = max(b.Cap, b.Base); !b.Jitter {
			b.Cap = b.Base
		}
		got, err := ParseBackoff(b.String())
		if err != nil || got != b {
			t.Fatalf("ParseBackoff(%q) = %+v, %v, want %+v", b.String(), got, err, b)
		}
	})
}

func TestBackoffWait(t *testing.T) {
	jitter := Backoff{Base: 100 * time.Millisecond, Cap: 5 * time.Second, Jitter: true}
	for _, tt := range []struct {
		b       Backoff
		attempt uint32
		draw    float64
		want    time.Duration
	}{
		{Backoff{}, 1, 0.9, 0},
		{Backoff{Base: time.Second, Cap: time.Second}, 1, 0.1, time.Second},
		{Backoff{Base: time.Second, Cap: time.Second}, 9, 0.1, time.Second},
		{jitter, 1, 0, 0},
		{jitter, 1, 0.5, 50 * time.Millisecond},
		{jitter, 2, 0.5, 100 * time.Millisecond},
		{jitter, 6, 0.5, 1600 * time.Millisecond},
		{jitter, 7, 0.5, 2500 * time.Millisecond},
		{jitter, 4_000_000_000, 0.5, 2500 * time.Millisecond},
		{Backoff{Base: time.Hour, Cap: 3 * time.Hour, Jitter: true}, 25, 0.5, 90 * time.Minute},
		{Backoff{Cap: time.Second, Jitter: true}, 5, 0.5, 0},
	} {
		if got := tt.b.Wait(tt.attempt, tt.draw); got != tt.want {
			t.Errorf("%s.Wait(%d, %v) = %s, want %s", tt.b, tt.attempt, tt.draw, got, tt.want)
		}
	}
}

// TestBackoffBounds holds the formula, min(cap, base·2^(n-1)), without the
// overflow that the formula has.
func TestBackoffBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Backoff{Base: time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "base")), Cap: time.Duration(rapid.Int64Range(0, 1<<63-1).Draw(t, "cap"))}
		b.Cap = max(b.Cap, b.Base)
		n := rapid.Uint32Range(1, 100).Draw(t, "attempt")
		want := b.Base
		for range n - 1 {
			if want > b.Cap/2 {
				want = b.Cap
				break
			}
			want *= 2
		}
		if b.Base == 0 {
			want = 0
		}
		if got := b.Wait(n, 0); got != want {
			t.Fatalf("%+v.Wait(%d) = %d, want %d", b, n, got, want)
		}
	})
}

// TestReissue holds section 7 of the judging rules: which ends are issued again.
func TestReissue(t *testing.T) {
	cut := func(style history.Style, phase history.Phase, cause string) history.End {
		return history.End{Outcome: history.Cut, Origin: history.Chaos, Cut: &history.CutDone{Style: style, Phase: phase, Cause: cause}}
	}
	open := func(how string, status int) history.End {
		e := cut(history.HalfClose, history.PhaseMid, "plan")
		e.Status, e.After = status, &history.After{How: how}
		return e
	}
	answered := open("", 200)
	answered.After.Result, answered.After.IsError = 1, true
	refused := func(status, code int) history.End {
		return history.End{Outcome: history.Refused, Origin: history.Peer, Status: status, Code: code}
	}
	delivered := history.End{Outcome: history.Delivered, Origin: history.Peer}
	atDone := delivered
	atDone.Cut = &history.CutDone{Style: history.Fin, Phase: history.PhaseDone}
	for _, tt := range []struct {
		name string
		end  history.End
		want bool
	}{
		{"fin", cut(history.Fin, history.PhaseMid, "plan"), true},
		{"fin at sent", cut(history.Fin, history.PhaseSent, "plan"), true},
		{"reset at tail", cut(history.Reset, history.PhaseTail, "plan"), true},
		{"stream-reset", cut(history.StreamReset, history.PhaseMid, "plan"), true},
		{"time-out", cut(history.Fin, history.PhaseMid, "timeout"), true},
		{"vanish", cut(history.Vanish, history.PhaseMid, "plan"), true},
		{"stall", cut(history.Stall, history.PhaseEvent, "plan"), true},
		{"half-close, still open at the end of its watch", open("", 200), false},
		{"half-close, EOF without a result", open("eof", 200), true},
		{"half-close, reset before any head", open("reset", 0), true},
		{"half-close, answered by an error", answered, false},
		{"half-close, 400", open("refused", 400), false},
		{"half-close, 503", open("refused", 503), true},
		{"wrong-signal", cut(history.WrongSignal, history.PhaseMid, "plan"), false},
		{"cut at done", cut(history.Fin, history.PhaseDone, "plan"), false},
		{"delivered", delivered, false},
		{"delivered, cut at done", atDone, false},
		{"EOF or reset", history.End{Outcome: history.Broken, Origin: history.Peer}, true},
		{"the network broke it", history.End{Outcome: history.Broken, Origin: history.Network}, true},
		{"we broke it", history.End{Outcome: history.Broken, Origin: history.Us}, false},
		{"connection refused", history.End{Outcome: history.Failed, Origin: history.Network}, true},
		{"peer failed the handshake", history.End{Outcome: history.Failed, Origin: history.Peer}, true},
		{"no descriptors", history.End{Outcome: history.Failed, Origin: history.Us}, false},
		{"JSON-RPC error", refused(200, -32603), false},
		{"JSON-RPC error, status 400", refused(400, -32602), false},
		{"garbage", refused(0, 0), false},
		{"wrong content type", refused(200, 0), false},
		{"301", refused(301, 0), false},
		{"401", refused(401, 0), false},
		{"404", refused(404, -32601), false},
		{"429", refused(429, 0), true},
		{"500", refused(500, 0), false},
		{"501", refused(501, 0), false},
		{"502", refused(502, 0), true},
		{"503", refused(503, 0), true},
		{"503 with a JSON-RPC error", refused(503, -32000), true},
		{"504", refused(504, 0), true},
		{"505", refused(505, 0), false},
		{"drained", history.End{Outcome: history.Drained, Origin: history.Us}, false},
		{"input_required", history.End{Outcome: history.MoreInput}, false},
		{"task", history.End{Outcome: history.TaskHandle}, false},
		{"no end", history.End{}, false},
	} {
		tt.end.Ref = testRef
		if _, got := (Reissue{Max: 3}).Next(&tt.end, 0, 0.5); got != tt.want {
			t.Errorf("%s: issued again %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestReissueWaits(t *testing.T) {
	second := Backoff{Base: time.Second, Cap: time.Second}
	for _, tt := range []struct {
		name       string
		max        int
		attempt    uint32
		rounds     int
		status     int
		retryAfter time.Duration
		wait       time.Duration
		again      bool
	}{
		{"first of none", 0, 1, 0, 503, 0, 0, false},
		{"first of one", 1, 1, 0, 503, 0, time.Second, true},
		{"second of one", 1, 2, 0, 503, 0, 0, false},
		{"rounds use nothing up", 1, 4, 3, 503, 0, time.Second, true},
		{"and no more than that", 1, 5, 3, 503, 0, 0, false},
		{"Retry-After of 503", 1, 1, 0, 503, 7 * time.Second, 7 * time.Second, true},
		{"Retry-After of 429", 1, 1, 0, 429, 7 * time.Second, 7 * time.Second, true},
		{"a shorter Retry-After", 1, 1, 0, 429, time.Millisecond, time.Second, true},
		{"an endless Retry-After", 1, 1, 0, 429, 1000 * time.Hour, MaxRetryAfter, true},
		{"Retry-After of 502 means nothing", 1, 1, 0, 502, 7 * time.Second, time.Second, true},
	} {
		end := history.End{Ref: history.Ref{Call: 1, Attempt: tt.attempt}, Outcome: history.Refused, Status: tt.status, RetryAfter: tt.retryAfter}
		wait, again := Reissue{Max: tt.max, Backoff: second}.Next(&end, tt.rounds, 0.5)
		if wait != tt.wait || again != tt.again {
			t.Errorf("%s: wait %s, again %v, want %s, %v", tt.name, wait, again, tt.wait, tt.again)
		}
	}
}
