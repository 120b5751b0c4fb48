package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpflood/mcpflood/chaos"
	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/oracle"
)

func judged(k Key, v history.Verdict, stop time.Duration) oracle.Judged {
	j := oracle.Judged{Verdict: v, Class: k.Style.Class(), Timed: true, TimeToStop: stop, SignalLatency: -1, NoticeTime: -1}
	j.Start = history.Start{Ref: history.Ref{Call: 1, Attempt: 1}, Variant: variant(k.Form), Planned: &history.Planned{Style: k.Style, Phase: k.Phase}}
	j.End.Cut = &history.CutDone{Style: k.Style, Phase: k.Phase, Cause: "plan"}
	if v == history.Noticed {
		j.NoticeTime = stop
	}
	return j
}

func TestCells(t *testing.T) {
	at := func(p history.Phase, s history.Style) Key { return Key{FormSSE, p, s} }
	for _, tc := range []struct {
		key      Key
		verdicts []history.Verdict
		change   func(*oracle.Judged)
		want     history.Judgement
		text     string
	}{
		{at(history.PhaseMid, history.Fin), []history.Verdict{history.Stopped, history.Stopped}, nil, history.Pass, "stops"},
		{at(history.PhaseMid, history.Fin), []history.Verdict{history.Stopped, history.RanOn}, nil, history.Fail, "RAN ON"},
		{at(history.PhaseMid, history.Reset), []history.Verdict{history.Late, history.Stopped}, nil, history.Pass, "late"},
		{at(history.PhaseMid, history.Reset), []history.Verdict{history.Stopped, history.Unknown}, nil, history.Undecided, "unknown"},
		{at(history.PhaseMid, history.Reset), []history.Verdict{history.Finished, history.Finished}, nil, history.Undecided, "unknown"},
		{at(history.PhaseSent, history.Fin), []history.Verdict{history.Stopped}, func(j *oracle.Judged) { j.EffectsAfterCut = 1 }, history.Fail, "EFFECT"},
		{at(history.PhaseTail, history.Fin), []history.Verdict{history.Unknown}, nil, history.Pass, "no harm"},
		{at(history.PhaseTail, history.Fin), []history.Verdict{history.Unknown}, func(j *oracle.Judged) { j.EffectsAfterCut = 1 }, history.Fail, "EFFECT"},
		{at(history.PhaseDone, history.Fin), []history.Verdict{history.Finished}, nil, history.Pass, "unchanged"},
		{at(history.PhaseBody, history.Reset), []history.Verdict{history.Stopped}, nil, history.Pass, "unseen"},
		{at(history.PhaseBody, history.Reset), []history.Verdict{history.RanOn}, nil, history.Fail, "RAN ON"},
		{at(history.PhaseMid, history.Vanish), []history.Verdict{history.Unnoticed}, nil, history.Pass, "unnoticed"},
		{at(history.PhaseMid, history.Stall), []history.Verdict{history.Noticed}, nil, history.Pass, "notices"},
		{at(history.PhaseMid, history.HalfClose), []history.Verdict{history.HungUp}, nil, history.Pass, "hangs up"},
		{at(history.PhaseMid, history.WrongSignal), []history.Verdict{history.WentOn}, nil, history.Pass, "goes on"},
		{at(history.PhaseMid, history.Fin), []history.Verdict{history.VerdictNone}, func(j *oracle.Judged) { j.End.Cut = nil; j.End.Missed = true }, history.Undecided, "missed"},
	} {
		cells := collector{}
		for _, v := range tc.verdicts {
			j := judged(tc.key, v, 300*time.Millisecond)
			if tc.change != nil {
				tc.change(&j)
			}
			cells.add(j)
		}
		g := cells.grid(nil)
		found := false
		for _, c := range g.Cells {
			if (Key{c.Form, c.Phase, c.Style}) != tc.key {
				continue
			}
			found = true
			if c.Verdict != tc.want || !strings.HasPrefix(c.Text, tc.text) || c.Verdict == history.Undecided && c.Why == "" {
				t.Errorf("%+v with %v: %v %q (%s), want %v %q", tc.key, tc.verdicts, c.Verdict, c.Text, c.Why, tc.want, tc.text)
			}
		}
		if !found || g.Judged != tc.want {
			t.Errorf("%+v: found %v, the grid is %v, want %v", tc.key, found, g.Judged, tc.want)
		}
	}
}

// TestEveryCellCanBeCutOrSaysWhy holds that no cell is forgotten: each either
// has a cut at its own phase, or a reason.
func TestEveryCellCanBeCutOrSaysWhy(t *testing.T) {
	clean := chaos.Clean{Median: time.Second, TailGap: 200 * time.Millisecond, Events: 10}
	for _, s := range []server{{streams: true, json: true, events: 10}, {streams: true, events: 0}, {json: true}} {
		for _, form := range forms {
			for _, phase := range history.Phases() {
				for _, style := range styles {
					k := Key{form, phase, style}
					if s.cannot(k) != "" {
						continue
					}
					c, err := k.cut(7, history.Ref{Call: 3, Attempt: 1}, clean)
					if err != nil || c.Style != style || c.Trigger.Named() != phase {
						t.Errorf("cell %+v: cut %+v, %v", k, c, err)
					}
				}
			}
		}
	}
}

func TestTextHasNoEmptyCell(t *testing.T) {
	cells := collector{}
	cells.add(judged(Key{FormSSE, history.PhaseMid, history.Fin}, history.Stopped, 0))
	text := cells.grid(map[Key]string{{FormJSON, history.PhaseConnect, history.WrongSignal}: "the server streams all answers"}).Text()
	for _, want := range []string{"stops 0s", "answers without progress: n/a", "not done"} {
		if !strings.Contains(text, want) {
			t.Errorf("the grid does not show %q:\n%s", want, text)
		}
	}
}
