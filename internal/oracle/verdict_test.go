package oracle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpflood/mcpflood/history"
)

// TestVerdict has a catching and a silent history for the rules on one cut
// attempt. Cuts are at 350 ms of ten steps of 100 ms; S is 150 ms.
func TestVerdict(t *testing.T) {
	const at = 350 * ms
	for _, tt := range []struct {
		name   string
		sim    func(*sim)
		cut    cut
		want   history.Verdict
		reason string
		grade  history.Grade
		found  []string
		units  [2]float64 // before, after
	}{
		{name: "honours the hang-up", cut: cut{does: honest(at)}, want: history.Stopped, reason: reasonClaim, grade: history.GradeC, units: [2]float64{3, 0}},
		{name: "stops and says nothing: silence proves it", cut: cut{does: does{stopAt: at}}, want: history.Stopped, reason: reasonSilence, grade: history.GradeC, units: [2]float64{3, 0}},
		{name: "was never seen", cut: cut{does: does{stopAt: at, mute: true}}, want: history.Stopped, reason: reasonNeverSeen, grade: history.GradeC},
		{name: "finishes the step under way", cut: cut{does: does{stopAt: 400 * ms, sayStop: 401 * ms}}, want: history.Stopped, reason: reasonClaim, grade: history.GradeC, units: [2]float64{3, 1}},
		{name: "runs to its end", cut: cut{does: does{}}, want: history.RanOn, reason: reasonRanToEnd, grade: history.GradeC, found: []string{"effect-after-cut", "run-on"}, units: [2]float64{3, 7}},
		{name: "runs to its end without saying so", sim: func(s *sim) { s.effects = false }, cut: cut{does: does{}}, want: history.RanOn, reason: reasonRanToEnd, grade: history.GradeC, found: []string{"run-on"}, units: [2]float64{3, 7}},
		{name: "still works when the watch ends", sim: func(s *sim) { s.watch = time.Second; s.steps = 30 }, cut: cut{does: does{stopAt: 1300 * ms, effect: -1}}, want: history.RanOn, reason: reasonStillAtWork, grade: history.GradeC, found: []string{"run-on"}, units: [2]float64{3, 10}},
		{name: "runs to its end after the watch", sim: func(s *sim) { s.watch = time.Second; s.steps = 30 }, cut: cut{does: does{}}, want: history.RanOn, reason: reasonRanToEnd, grade: history.GradeC, found: []string{"effect-after-cut", "run-on"}, units: [2]float64{3, 27}},
		{name: "stops late and says so", cut: cut{does: does{stopAt: 800 * ms, sayStop: 801 * ms}}, want: history.Late, reason: reasonClaim, grade: history.GradeC, found: []string{"late"}, units: [2]float64{3, 5}},
		{name: "stops late silently", cut: cut{does: does{stopAt: 800 * ms}}, want: history.Late, reason: reasonSilence, grade: history.GradeC, found: []string{"late"}, units: [2]float64{3, 5}},
		{name: "only its stop line is late", cut: cut{does: does{stopAt: at, sayStop: 600 * ms}}, want: history.Late, reason: reasonClaim, grade: history.GradeC, found: []string{"late"}, units: [2]float64{3, 0}},
		{name: "says cancelled and works on", cut: cut{does: does{sayStop: at + ms}}, want: history.RanOn, reason: reasonRanToEnd, grade: history.GradeC, found: []string{"contradiction", "effect-after-cut", "run-on"}, units: [2]float64{3, 7}},
		{name: "says cancelled, does one more step within S", cut: cut{does: does{stopAt: 450 * ms, sayStop: at + ms}}, want: history.Stopped, reason: reasonSilence, grade: history.GradeC, units: [2]float64{3, 1}},
		{name: "the effect alone comes after the stop", cut: cut{does: does{stopAt: at + ms, sayStop: at + ms, effect: at + 20*ms}}, want: history.Stopped, reason: reasonClaim, grade: history.GradeC, found: []string{"effect-after-cut"}, units: [2]float64{3, 0}},
		{name: "the effect alone comes soon, with too little work before it", sim: func(s *sim) { s.noStops = true }, cut: cut{does: does{stopAt: at, effect: at + 20*ms}}, want: history.Stopped, reason: reasonSilence, grade: history.GradeC, found: []string{"effect-after-cut"}, units: [2]float64{3, 0}},
		{name: "is complete before the cut can be known", cut: cut{after: 1250 * ms, does: does{}}, want: history.Finished, grade: history.GradeC, units: [2]float64{10, 0}},
		{name: "is cut too late to tell", sim: func(s *sim) { s.effects, s.noStops = false, true }, cut: cut{after: 1150 * ms, does: does{stopAt: 1150 * ms, effect: -1}}, want: history.Unknown, reason: reasonTooLate, units: [2]float64{10, 0}},
		{name: "has a watch too short for silence", sim: func(s *sim) { s.watch = 700 * ms; s.noStops = true }, cut: cut{does: does{stopAt: at}}, want: history.Unknown, reason: reasonWatch, units: [2]float64{3, 0}},
		{name: "has no witness", sim: func(s *sim) { s.noLog = true }, cut: cut{does: does{stopAt: at}}, want: history.Unknown, reason: reasonNoWitness},
		{name: "has a gap in its watch", sim: func(s *sim) {
			s.noStops = true
			s.extra = append(s.extra, history.Record{T: load + 3*time.Second, Gap: &history.Gap{Source: 1, From: load + 2*time.Second, To: load + 3*time.Second, Reason: "the file vanished"}})
		}, cut: cut{does: does{stopAt: at}}, want: history.Unknown, reason: reasonGap, found: []string{"witness-gap"}, units: [2]float64{3, 0}},
		{name: "has its work at the edge of S", sim: func(s *sim) { s.timed = true; s.noStops = true }, cut: cut{does: does{stopAt: 500 * ms}}, want: history.Unknown, reason: reasonUnclear, units: [2]float64{4, 1}},
		{name: "timed log: honours", sim: func(s *sim) { s.timed = true }, cut: cut{does: honest(at)}, want: history.Stopped, reason: reasonClaim, grade: history.GradeC, units: [2]float64{3, 0}},
		{name: "timed log: runs on", sim: func(s *sim) { s.timed = true }, cut: cut{does: does{}}, want: history.RanOn, reason: reasonRanToEnd, grade: history.GradeC, found: []string{"effect-after-cut", "run-on"}, units: [2]float64{4, 6}},
		{name: "vanished: runs to its end", cut: cut{style: history.Vanish, does: does{}}, want: history.Unnoticed, reason: reasonRanToEnd, grade: history.GradeC, units: [2]float64{3, 7}},
		{name: "vanished: stops and says so", cut: cut{style: history.Vanish, does: does{stopAt: 800 * ms, sayStop: 801 * ms}}, want: history.Noticed, reason: reasonClaim, grade: history.GradeC, units: [2]float64{3, 5}},
		{name: "vanished: falls silent", cut: cut{style: history.Stall, does: does{stopAt: 800 * ms}}, want: history.Noticed, reason: reasonSilence, grade: history.GradeC, units: [2]float64{3, 5}},
		{name: "vanished: no witness", sim: func(s *sim) { s.noLog = true }, cut: cut{style: history.Vanish, does: does{}}, want: history.Unknown, reason: reasonNoWitness},
		{name: "half-close: hangs up", cut: cut{style: history.HalfClose, does: honest(at), more: func(e *history.End) { e.After.PeerEnd, e.After.How = e.Cut.C1+2*ms, "eof" }}, want: history.HungUp, reason: reasonClaim, grade: history.GradeC, found: []string{"half-close"}, units: [2]float64{3, 0}},
		{name: "half-close: answers on", cut: cut{style: history.HalfClose, does: does{}, more: func(e *history.End) {
			e.Outcome, e.Result, e.Ended, e.After.Result = history.Delivered, load+1301*ms, load+1301*ms, load+1301*ms
		}}, want: history.WentOn, grade: history.GradeA, found: []string{"half-close"}, units: [2]float64{10, 0}},
		{name: "cut after the result", cut: cut{after: 1301 * ms, phase: history.PhaseDone, does: does{}, more: func(e *history.End) {
			e.Outcome, e.Result = history.Delivered, load+1301*ms
		}}, want: history.Finished, grade: history.GradeA, units: [2]float64{10, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSim()
			if tt.sim != nil {
				tt.sim(s)
			}
			if tt.cut.after == 0 {
				tt.cut.after = at
			}
			s.cut(ref(1, 1), load, tt.cut)
			for i := uint64(2); i <= 4; i++ {
				s.uncut(ref(i, 1), load+time.Duration(i)*100*ms)
			}
			r, got := s.judge(t)
			j := got[ref(1, 1)]
			if j.Verdict != tt.want || j.Reason != tt.reason || j.Grade != tt.grade {
				t.Errorf("verdict = %v (%s, grade %v; fix %q), want %v (%s, grade %v)", j.Verdict, j.Reason, j.Grade, j.Fix, tt.want, tt.reason, tt.grade)
			}
			if tt.found == nil {
				tt.found = []string{}
			}
			if d := cmp.Diff(tt.found, ids(r)); d != "" {
				t.Errorf("findings (-want +got):\n%s", d)
			}
			var units [2]float64
			for _, w := range j.Work {
				units = [2]float64{units[0] + w.Before, units[1] + w.After}
			}
			if units != tt.units {
				t.Errorf("work before and after the cut = %v, want %v", units, tt.units)
			}
			if j.Verdict == history.Unknown && j.Fix == "" {
				t.Error("unknown without a fix")
			}
			for id, x := range got {
				if x.End.Cut == nil && x.Verdict != history.VerdictNone {
					t.Errorf("uncut %s has the verdict %v", id, x.Verdict)
				}
			}
			if (j.Verdict == history.RanOn) != (r.Judgement == history.Fail && r.finding("run-on") != nil) {
				t.Errorf("run = %v with the verdict %v; reasons %q", r.Judgement, j.Verdict, r.Reasons)
			}
		})
	}
}
