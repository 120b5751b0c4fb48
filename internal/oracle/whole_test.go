package oracle

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// flood is a closed model of 20 streams, of which about every second call is cut
// within its first 800 ms.
func flood(s *sim, lasts time.Duration, behave func(after time.Duration) does) {
	rng := rand.New(rand.NewPCG(1, 2))
	next := make([]time.Duration, 20)
	for call := uint64(1); ; call++ {
		i := slices.Index(next, slices.Min(next))
		if next[i] > lasts {
			return
		}
		begun := load + next[i]
		if rng.IntN(2) == 0 {
			next[i] = s.uncut(ref(call, 1), begun) + 5*ms - load
			continue
		}
		after := time.Duration(rng.IntN(800)) * ms
		c := cut{after: after, does: behave(after)}
		if after < 100*ms {
			c.phase = history.PhaseSent
		}
		s.cut(ref(call, 1), begun, c)
		next[i] += after + 5*ms
	}
}

// gauge adds scrapes of an in-flight gauge, with offset the requests of others.
func gauge(s *sim, every time.Duration, offset float64) []history.Record {
	recs := s.build()
	end := recs[len(recs)-1].T
	recs = append(recs, history.Record{Witness: &history.Witness{Source: 2, What: "metrics", Name: "metrics", Grade: history.GradeD, Gauge: true, Timed: true, Poll: every, Shows: []history.Kind{history.Work}}})
	for i := range 3 {
		t := time.Second + time.Duration(i)*every
		recs = append(recs, history.Record{T: t + ms, Sample: &history.Sample{Source: 2, T0: t, T1: t + ms, Values: map[string]float64{"inflight": offset}}})
	}
	for t := 2 * time.Second; t < end-every; t += every {
		n := offset
		for _, w := range s.worked {
			if w.from <= t && t < w.to {
				n++
			}
		}
		recs = append(recs, history.Record{T: t + ms, Sample: &history.Sample{Source: 2, T0: t, T1: t + ms, Values: map[string]float64{"inflight": n}}})
	}
	slices.SortStableFunc(recs, func(a, b history.Record) int { return int(a.T - b.T) })
	return recs
}

func runsOn(time.Duration) does          { return does{} }
func behaves(after time.Duration) does   { return honest(after) }
func slowStop(after time.Duration) does  { return does{stopAt: after + 500*ms} }
func liesInLog(after time.Duration) does { return does{sayStop: after + ms} }

func deafBeforeHead(after time.Duration) does {
	if after < 100*ms {
		return does{}
	}
	return honest(after)
}

// TestGauge sees whole faults by the gauge alone, and nothing in health.
func TestGauge(t *testing.T) {
	for _, tt := range []struct {
		name   string
		behave func(time.Duration) does
		lasts  time.Duration
		fail   bool
	}{
		{"healthy", behaves, time.Minute, false}, {"run-on", runsOn, 10 * time.Second, true}, {"slow-stop", slowStop, 10 * time.Second, true},
		// Few attempts leak, and those cut a moment ago may be at work too: it
		// takes a while until the gauge gives them away.
		{"deaf-before-headers", deafBeforeHead, time.Minute, true},
	} {
		for _, offset := range []float64{0, 3} {
			s := newSim()
			s.noLog = true
			flood(s, tt.lasts, tt.behave)
			r, got := judgeAll(t, gauge(s, 200*ms, offset))
			f := r.finding("run-on")
			if (f != nil) != tt.fail || (r.Judgement == history.Fail) != tt.fail {
				t.Errorf("%s: run = %v, findings %v, reasons %q", tt.name, r.Judgement, ids(r), r.Reasons)
			}
			named := 0
			for _, j := range got {
				if j.Verdict == history.RanOn {
					named++
				}
			}
			g := r.Witnesses[len(r.Witnesses)-1].Gauge
			if g.Baseline != offset || g.Why != "" || g.Samples == 0 {
				t.Errorf("%s: gauge %+v", tt.name, *g)
			}
			switch {
			case named != 0:
				t.Errorf("%s: %d attempts are named by a gauge", tt.name, named)
			case tt.fail && (r.Unnamed < 1 || r.Counts.Verdicts[history.RanOn] != r.Unnamed || g.Inside):
				t.Errorf("%s: %d unnamed, counts %v, inside %v", tt.name, r.Unnamed, r.Counts.Verdicts, g.Inside)
			case !tt.fail && (!g.Inside || r.Counts.Verdicts[history.Stopped] == 0):
				t.Errorf("%s: inside %v, counts %v", tt.name, g.Inside, r.Counts.Verdicts)
			}
		}
	}
}

func TestGaugeTellsNothing(t *testing.T) {
	s := newSim()
	s.noLog = true
	flood(s, 10*time.Second, runsOn)
	for name, tt := range map[string]struct {
		change func([]history.Record)
		why    string
	}{
		"no baseline": {func(recs []history.Record) {
			n := 0.0 // others come and go before the first call
			for _, r := range recs {
				if r.Sample != nil && r.T < 5*time.Second {
					r.Sample.Values["inflight"] = n
					n++
				}
			}
		}, "no baseline"},
		"another tool's": {func(recs []history.Record) {
			for _, r := range recs {
				if r.Sample != nil {
					r.Sample.Values["inflight"] = 0
				}
			}
		}, "does not follow"},
	} {
		recs := gauge(s, 200*ms, 0)
		tt.change(recs)
		r, _ := judgeAll(t, recs)
		if g := r.Witnesses[len(r.Witnesses)-1].Gauge; !strings.Contains(g.Why, tt.why) || r.finding("run-on") != nil || r.Judgement != history.Undecided {
			t.Errorf("%s: %+v, run %v, findings %v", name, *g, r.Judgement, ids(r))
		}
	}
}

// TestGaugeContradicts has a log that says "cancelled" at once while the gauge
// shows that the work goes on: verdicts by id stay, and the run fails.
func TestGaugeContradicts(t *testing.T) {
	s := newSim()
	flood(s, 10*time.Second, func(after time.Duration) does { return does{stopAt: after, sayStop: after + ms} })
	recs := gauge(s, 200*ms, 0)
	if r, _ := judgeAll(t, recs); r.Judgement != history.Pass || len(r.Findings) != 0 {
		t.Fatalf("log and gauge agree: run = %v, findings %v, %q", r.Judgement, ids(r), r.Reasons)
	}
	lying := newSim()
	flood(lying, 10*time.Second, liesInLog)
	recs = gauge(lying, 200*ms, 0)
	// The log says nothing after the stop line.
	stopped := map[history.Ref]time.Duration{}
	for _, r := range recs {
		if r.Evidence != nil && r.Evidence.Kind == history.Stop {
			stopped[r.Evidence.Ref] = r.T
		}
	}
	recs = slices.DeleteFunc(recs, func(r history.Record) bool {
		if r.Evidence == nil {
			return false
		}
		at, ok := stopped[r.Evidence.Ref]
		return ok && r.T > at
	})
	r, _ := judgeAll(t, recs)
	if f := r.finding("run-on"); r.Judgement != history.Fail || f == nil || f.Severity != history.SeverityFail {
		t.Errorf("run = %v, findings %v", r.Judgement, ids(r))
	}
	if f := r.finding("contradiction"); f == nil {
		t.Error("no contradiction")
	}
	if n := r.Counts.Verdicts[history.Stopped]; n == 0 || r.Counts.Verdicts[history.RanOn] != r.Unnamed {
		t.Errorf("verdicts by id do not stay: %v", r.Counts.Verdicts)
	}
}

// TestWhole sees whole faults in a log whose lines name nobody.
func TestWhole(t *testing.T) {
	for _, tt := range []struct {
		name   string
		behave func(time.Duration) does
		want   history.Judgement
		found  string
	}{
		{"healthy", behaves, history.Undecided, ""},
		{"run-on", runsOn, history.Fail, "run-on"},
		{"slow-stop", slowStop, history.Fail, "run-on"},
		{"deaf-before-headers", deafBeforeHead, history.Fail, "run-on"},
		{"effect-after", func(after time.Duration) does {
			return does{stopAt: after, sayStop: after, effect: after + 10*ms}
		}, history.Fail, "effect-after-cut"},
	} {
		s := newSim()
		s.log.ByAttempt, s.log.Grade = false, history.GradeD
		flood(s, 10*time.Second, tt.behave)
		r, got := s.judge(t)
		if r.Judgement != tt.want || tt.found != "" && r.finding(tt.found) == nil || tt.found == "" && len(r.Findings) > 0 {
			t.Errorf("%s: run = %v, findings %v, reasons %q", tt.name, r.Judgement, ids(r), r.Reasons)
		}
		for id, j := range got {
			if j.Class == history.ClassSignal && j.Verdict != history.Unknown {
				t.Fatalf("%s: %s = %v by a log that names nobody", tt.name, id, j.Verdict)
			}
		}
		if tt.want == history.Undecided && !strings.Contains(strings.Join(r.Reasons, " "), "log the JSON-RPC id") {
			t.Errorf("%s: reasons %q do not say what to log", tt.name, r.Reasons)
		}
	}
}

// TestWholeOthers has another client's lines in the log: its counts prove
// nothing.
func TestWholeOthers(t *testing.T) {
	s := newSim()
	s.log.ByAttempt = false
	flood(s, 10*time.Second, runsOn)
	recs := append(s.build(), history.Record{T: time.Second, Evidence: &history.Evidence{Source: 1, Kind: history.Work, Units: 1}})
	slices.SortStableFunc(recs, func(a, b history.Record) int { return int(a.T - b.T) })
	if r, _ := judgeAll(t, recs); r.Judgement != history.Undecided {
		t.Errorf("run = %v, findings %v", r.Judgement, ids(r))
	}
}

// TestCounters reads the same from counters that scrapes sum up.
func TestCounters(t *testing.T) {
	for name, tt := range map[string]struct {
		behave func(time.Duration) does
		want   history.Judgement
	}{"healthy": {behaves, history.Undecided}, "run-on": {runsOn, history.Fail}, "slow-stop": {slowStop, history.Fail}} {
		s := newSim()
		flood(s, 10*time.Second, tt.behave)
		r, _ := judgeAll(t, counted(s.build(), 200*ms))
		if r.Judgement != tt.want {
			t.Errorf("%s: run = %v, findings %v, reasons %q", name, r.Judgement, ids(r), r.Reasons)
		}
	}
}

// counted turns the log of a history into counters that are scraped.
func counted(recs []history.Record, every time.Duration) []history.Record {
	role := map[history.Kind]string{history.Work: "work", history.Completion: "done", history.Effect: "effects"}
	values := map[string]float64{"work": 0, "done": 0, "effects": 0}
	out := []history.Record{}
	next := time.Second
	for _, r := range recs {
		for ; next < r.T; next += every {
			v := map[string]float64{}
			for k, n := range values {
				v[k] = n
			}
			out = append(out, history.Record{T: next, Sample: &history.Sample{Source: 1, T0: next - ms, T1: next, Values: v}})
		}
		switch {
		case r.Evidence != nil:
			values[role[r.Evidence.Kind]]++
		case r.Witness != nil:
			out = append(out, history.Record{Witness: &history.Witness{Source: 1, What: "metrics", Name: "metrics", Grade: history.GradeD, Timed: true, Poll: every, Shows: []history.Kind{history.Work, history.Completion, history.Effect}}})
		default:
			out = append(out, r)
		}
	}
	return out
}
