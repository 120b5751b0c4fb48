package cost

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/oracle"
)

func judged(outcome history.Outcome, style history.Style, v history.Verdict, before, after, projected float64) *oracle.Judged {
	j := &oracle.Judged{Verdict: v, Seen: true, Discriminates: true, Work: []oracle.Work{{Unit: Step, Before: before, After: after, Projected: projected}}}
	j.End = history.End{Outcome: outcome, Sent: time.Second, Ended: 5 * time.Second}
	if style != history.StyleNone {
		j.Class = style.Class()
		j.End.Cut = &history.CutDone{Style: style, C0: 3 * time.Second, C1: 3 * time.Second}
	}
	return j
}

func TestBuckets(t *testing.T) {
	tally := NewTally(map[string]float64{Step: 0.5, Second: 2})
	for _, j := range []*oracle.Judged{
		judged(history.Delivered, history.StyleNone, history.VerdictNone, 10, 0, 0),
		judged(history.Cut, history.Fin, history.Stopped, 4, 0, 0),
		judged(history.Cut, history.Fin, history.RanOn, 3, 2, 7),
		judged(history.Cut, history.Vanish, history.Unnoticed, 1, 9, 9),
		judged(history.Cut, history.HalfClose, history.HungUp, 2, 1, 1),
		judged(history.Refused, history.StyleNone, history.VerdictNone, 5, 0, 0),
		judged(history.Drained, history.StyleNone, history.VerdictNone, 6, 0, 0),
	} {
		tally.Add(j)
	}
	tally.Unattributed(Step, 8)
	b := tally.Bill(4*time.Second, map[string]float64{Step: 10})
	steps := b.Lines[0]
	want := Amounts{Useful: 10, Lost: 4 + 3 + 1 + 3, RunOn: 2, Unnoticed: 9, Errored: 5, Abandoned: 6, Unattributed: 8, RunOnProjected: 7, Total: 51, Counterfactual: 51 - 2 + 6 + 7}
	if steps.Unit != Step || steps.Amounts != want {
		t.Errorf("steps:\n%+v, want\n%+v", steps.Amounts, want)
	}
	// Stopped: nothing of 6 that were left; ran_on: 7 of 7.
	if got, want := b.Effectiveness, 1-7.0/13; math.Abs(got-want) > 1e-12 || b.N != 2 {
		t.Errorf("effectiveness %v of %d, want %v of 2", got, b.N, want)
	}
	seconds := b.Lines[1]
	if seconds.Unit != Second || seconds.Useful != 4 || seconds.Lost != 2*4 {
		t.Errorf("seconds: %+v", seconds)
	}
	if got, want := b.Money.Total, 0.5*steps.Total+2*seconds.Total; math.Abs(got-want) > 1e-9 {
		t.Errorf("money %v, want %v", got, want)
	}
}

func TestNothingToSay(t *testing.T) {
	b := NewTally(nil).Bill(0, nil)
	if !math.IsNaN(b.Effectiveness) || b.N != 0 || len(b.Lines) != 1 {
		t.Errorf("an empty account says %+v", b)
	}
}

func TestSums(t *testing.T) {
	outcomes := []history.Outcome{history.OutcomeNone, history.Delivered, history.Cut, history.Refused, history.Broken, history.Failed, history.Drained, history.MoreInput, history.TaskHandle}
	rapid.Check(t, func(t *rapid.T) {
		tally := NewTally(map[string]float64{Step: 0.25, Call: 1, Second: 0.125})
		steps := 0.0
		for range rapid.IntRange(0, 50).Draw(t, "n") {
			outcome := rapid.SampledFrom(outcomes).Draw(t, "outcome")
			style := history.StyleNone
			if outcome == history.Cut {
				style = rapid.SampledFrom(history.Styles()).Draw(t, "style")
			}
			before, after := float64(rapid.IntRange(0, 20).Draw(t, "before")), float64(rapid.IntRange(0, 20).Draw(t, "after"))
			steps += before + after
			tally.Add(judged(outcome, style, history.Stopped, before, after, after))
		}
		b := tally.Bill(time.Second, map[string]float64{Step: 10})
		money := 0.0
		for _, l := range b.Lines {
			sum := l.Useful + l.Lost + l.RunOn + l.Unnoticed + l.Errored + l.Abandoned + l.Unattributed
			if math.Abs(sum-l.Total) > 1e-9 {
				t.Fatalf("%s: parts %v, total %v", l.Unit, sum, l.Total)
			}
			if l.Unit == Step && math.Abs(l.Total-steps) > 1e-9 {
				t.Fatalf("steps total %v, want %v", l.Total, steps)
			}
			money += l.Total * map[string]float64{Step: 0.25, Call: 1, Second: 0.125}[l.Unit]
		}
		if math.Abs(money-b.Money.Total) > 1e-6 {
			t.Fatalf("money %v, want %v", b.Money.Total, money)
		}
	})
}

func TestWorkPerCall(t *testing.T) {
	honoured, ignored := WorkPerCall(10*time.Second, 0.1)
	if math.Abs(honoured-10*(math.E-1)) > 1e-9 || math.Abs(ignored-10*math.E) > 1e-9 {
		t.Errorf("at one cut a length: %v and %v", honoured, ignored)
	}
	if a, b := WorkPerCall(10*time.Second, 0); a != 10 || b != 10 {
		t.Errorf("without cuts: %v and %v", a, b)
	}
}
