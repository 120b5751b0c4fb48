package oracle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpflood/mcpflood/history"
)

// TestRun has a catching and a silent history for what concerns whole runs.
func TestRun(t *testing.T) {
	healthy := func(s *sim) {
		for i := uint64(1); i <= 8; i++ {
			at := load + time.Duration(i)*130*ms
			if i%2 == 0 {
				s.uncut(ref(i, 1), at)
			} else {
				s.cut(ref(i, 1), at, cut{after: 350 * ms, does: honest(350 * ms)})
			}
		}
	}
	for _, tt := range []struct {
		name   string
		sim    func(*sim)
		want   history.Judgement
		found  []string
		reason string // in the reasons
		unseen string
	}{
		{name: "healthy", sim: healthy, want: history.Pass, unseen: "rest on the server's own word"},
		{name: "no effects witnessed", sim: func(s *sim) {
			s.log.Shows = []history.Kind{history.Work, history.Stop}
			s.effects = false
			healthy(s)
		}, want: history.Pass, unseen: "effects not witnessed"},
		{name: "no witness", sim: func(s *sim) { s.noLog = true; healthy(s) }, want: history.Undecided, reason: "add --log FILE"},
		{name: "no cuts planned", sim: func(s *sim) { s.cuts = nil; s.uncut(ref(1, 1), load) }, want: history.Pass},
		{name: "a clause never fired", sim: func(s *sim) { s.cuts = append(s.cuts, "vanish@tail"); healthy(s) }, want: history.Undecided, reason: "--cut vanish@tail never fired"},
		{name: "nothing delivered and nothing judged", sim: func(s *sim) { s.cuts = nil; s.noLog = true }, want: history.Undecided, reason: "no call was delivered"},
		{name: "tool too short", sim: func(s *sim) {
			s.stop = 700 * ms
			healthy(s)
		}, want: history.Undecided, reason: "tool too short for --stop-within 700ms"},
		{name: "id pattern matched the clean calls only", sim: func(s *sim) {
			s.cut(ref(1, 1), load, cut{after: 350 * ms, does: does{stopAt: 350 * ms, mute: true}})
		}, want: history.Pass},
		{name: "spurious: the stream ends", sim: func(s *sim) {
			healthy(s)
			broken(s, ref(9, 1), load+2*time.Second, func(e *history.End) { e.Outcome, e.Origin = history.Broken, history.Peer })
		}, want: history.Fail, found: []string{"spurious-cancel"}},
		{name: "spurious: an answer says cancelled", sim: func(s *sim) {
			healthy(s)
			broken(s, ref(9, 1), load+2*time.Second, func(e *history.End) {
				e.Outcome, e.Origin, e.Cancelled, e.Code = history.Refused, history.Peer, true, -32800
			})
		}, want: history.Fail, found: []string{"spurious-cancel"}},
		{name: "an HTTP error is not spurious", sim: func(s *sim) {
			healthy(s)
			broken(s, ref(9, 1), load+2*time.Second, func(e *history.End) { e.Outcome, e.Origin, e.Status = history.Refused, history.Peer, 500 })
		}, want: history.Pass},
		{name: "cross-talk", sim: func(s *sim) {
			healthy(s)
			s.at(load+time.Second, history.Record{Evidence: &history.Evidence{Kind: history.Stray, Ref: ref(2, 1), By: "wire", Text: "progress of another"}})
		}, want: history.Fail, found: []string{"stray-message"}},
		{name: "cross-talk on a clean call", sim: func(s *sim) {
			healthy(s)
			s.at(6*time.Second, history.Record{Evidence: &history.Evidence{Kind: history.Stray, Ref: history.Ref{Role: history.Clean, Call: 1, Attempt: 1}, By: "wire", Text: "progress of another"}})
		}, want: history.Fail, found: []string{"stray-message"}},
		{name: "wrong id", sim: func(s *sim) {
			healthy(s)
			broken(s, ref(9, 1), load+2*time.Second, func(e *history.End) { e.Outcome, e.Origin = history.Broken, history.Peer })
			s.at(load+2*time.Second+ms, history.Record{Evidence: &history.Evidence{Kind: history.WrongID, Ref: ref(9, 1), By: "wire", Text: "result for mf-x-1-1"}})
		}, want: history.Fail, found: []string{"wrong-id"}},
		{name: "emission after the stop of a half-close", sim: func(s *sim) {
			healthy(s)
			halfClosed(s, ref(9, 1), 900*ms, false)
		}, want: history.Fail, found: []string{"emission", "half-close"}},
		{name: "a message under way at the stop of a half-close", sim: func(s *sim) {
			healthy(s)
			halfClosed(s, ref(9, 1), 400*ms, false)
		}, want: history.Pass, found: []string{"half-close"}},
		{name: "an error after the stop of a half-close", sim: func(s *sim) {
			healthy(s)
			halfClosed(s, ref(9, 1), 900*ms, true)
		}, want: history.Pass, found: []string{"half-close", "half-close-error"}},
		{name: "canary out for three probes", sim: func(s *sim) { healthy(s); probes(s, "11000111") }, want: history.Fail, found: []string{"server-down"}},
		{name: "canary out for two probes", sim: func(s *sim) { healthy(s); probes(s, "11001111") }, want: history.Pass},
		{name: "nobody can connect", sim: func(s *sim) { healthy(s); unreachable(s, 100, 20) }, want: history.Fail, found: []string{"server-down"}},
		{name: "nobody can connect while older calls still answer", sim: func(s *sim) {
			healthy(s)
			unreachable(s, 100, 20)
			s.uncut(ref(99, 1), load+2*time.Second) // it answers after the first of them have failed
		}, want: history.Fail, found: []string{"server-down"}},
		{name: "every second one cannot connect", sim: func(s *sim) {
			healthy(s)
			for i := range uint64(30) {
				unreachable(s, 100+2*i, 1)
				s.uncut(ref(101+2*i, 1), load+3*time.Second)
			}
		}, want: history.Pass},
		{name: "some cannot connect", sim: func(s *sim) { healthy(s); unreachable(s, 100, 19) }, want: history.Pass},
		{name: "streams are buffered", sim: func(s *sim) { s.buffered = true; healthy(s) }, want: history.Pass, found: []string{"buffered"}},
		{name: "noise", sim: func(s *sim) {
			healthy(s)
			for range 4 {
				s.at(load+time.Second, history.Record{Evidence: &history.Evidence{Source: 1, Kind: history.Noise, Text: "ERROR stream closed"}})
			}
		}, want: history.Pass, found: []string{"noise"}},
		{name: "a clock that contradicts itself", sim: func(s *sim) {
			healthy(s)
			s.timed = true
			s.at(load+300*ms, history.Record{Evidence: &history.Evidence{Source: 1, Kind: history.Work, Units: 1, Ref: ref(2, 1), By: "id", Timed: true, Lo: 50 * time.Hour, Hi: 50*time.Hour + 1}})
		}, want: history.Pass, found: []string{"clock"}},
		{name: "a send that was stamped late", sim: func(s *sim) {
			s.timed = true
			healthy(s)
			for _, r := range s.recs {
				if r.End != nil && r.End.Outcome == history.Delivered && r.End.Ref.Call%4 == 0 {
					r.End.Sent += 150 * ms // a busy machine: after the first record of the call
				}
			}
		}, want: history.Pass},
		{name: "slot-leak: refused", sim: func(s *sim) { healthy(s); reissues(s, 3, 503, 0) }, want: history.Fail, found: []string{"slot-leak"}},
		{name: "two refused re-issues", sim: func(s *sim) { healthy(s); reissues(s, 2, 503, 0) }, want: history.Pass},
		{name: "slot-leak: slow", sim: func(s *sim) { healthy(s); reissues(s, 3, 200, 2*time.Second) }, want: history.Fail, found: []string{"slot-leak"}},
		{name: "re-issues as fast as first calls", sim: func(s *sim) { healthy(s); reissues(s, 3, 200, 120*ms) }, want: history.Pass},
		{name: "slow beyond --notice-within", sim: func(s *sim) {
			healthy(s)
			s.cut(ref(9, 1), load+2*time.Second, cut{style: history.Vanish, after: 350 * ms})
			s.extra = append(s.extra, history.Record{Run: &history.Run{Schema: history.Schema, Cuts: s.cuts, Watch: s.watch, Notice: 500 * ms, HTTP: "1.1"}})
		}, want: history.Fail, found: []string{"unnoticed"}},
		{name: "within --notice-within", sim: func(s *sim) {
			healthy(s)
			s.cut(ref(9, 1), load+2*time.Second, cut{style: history.Vanish, after: 350 * ms, does: does{stopAt: 500 * ms}})
			s.extra = append(s.extra, history.Record{Run: &history.Run{Schema: history.Schema, Cuts: s.cuts, Watch: s.watch, Notice: 500 * ms, HTTP: "1.1"}})
		}, want: history.Pass},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSim()
			tt.sim(s)
			r, _ := s.judge(t)
			if r.Judgement != tt.want {
				t.Errorf("run = %v, want %v; reasons %q", r.Judgement, tt.want, r.Reasons)
			}
			if tt.found == nil {
				tt.found = []string{}
			}
			if d := cmp.Diff(tt.found, ids(r)); d != "" {
				t.Errorf("findings (-want +got):\n%s", d)
			}
			if all := strings.Join(r.Reasons, "\n"); !strings.Contains(all, tt.reason) || (all == "") != (tt.want == history.Pass) {
				t.Errorf("reasons = %q, want %q among them", r.Reasons, tt.reason)
			}
			if all := strings.Join(r.Unseen, "\n"); !strings.Contains(all, tt.unseen) {
				t.Errorf("unseen = %q, want %q among it", r.Unseen, tt.unseen)
			}
			for _, f := range r.Findings {
				if f.Text == "" || f.Count == 0 || strings.Contains(f.Text, "%!") {
					t.Errorf("finding %s: count %d, text %q", f.ID, f.Count, f.Text)
				}
			}
		})
	}
}

// broken is an attempt that ends without a result.
func broken(s *sim, r history.Ref, t time.Duration, more func(*history.End)) {
	s.start(r, t, nil)
	e := s.end(r, t)
	e.Ended = t + 50*ms
	more(e)
	s.at(e.Ended, history.Record{End: e})
	s.over(r, "failed", t, e.Ended)
}

// halfClosed is a half-close, 350 ms in, after which the server stops; a message,
// which is an error or not, is read so long after the call began.
func halfClosed(s *sim, r history.Ref, read time.Duration, isError bool) {
	t := load + 2*time.Second
	message := t + read
	s.at(message, history.Record{Evidence: &history.Evidence{Kind: history.Emission, Ref: r, By: "wire", Text: "a message"}})
	s.cut(r, t, cut{style: history.HalfClose, after: 350 * ms, does: honest(350 * ms), more: func(e *history.End) {
		e.After.Messages = 1
		if isError {
			e.After.Result, e.After.IsError = message, true
		}
	}})
}

// probes are a canary's, a second apart from half a second into the load.
func probes(s *sim, ok string) {
	for i, c := range ok {
		t := load + time.Duration(i)*time.Second + 500*ms
		s.at(t, history.Record{Canary: &history.Canary{At: t, Latency: 2 * ms, OK: c == '1'}})
	}
}

func unreachable(s *sim, from uint64, n int) {
	for i := range n {
		t := load + 3*time.Second + time.Duration(i)*10*ms
		broken(s, ref(from+uint64(i), 1), t, func(e *history.End) {
			*e = history.End{Ref: e.Ref, Begun: e.Begun, Ended: e.Ended, Outcome: history.Failed, Origin: history.Network, Error: "connection refused"}
		})
	}
}

// reissues are n calls that are cut and sent again.
func reissues(s *sim, n int, status int, answer time.Duration) {
	for i := range n {
		t := load + 2*time.Second + time.Duration(i)*50*ms
		first, second := ref(uint64(20+i), 1), ref(uint64(20+i), 2)
		s.cut(first, t, cut{after: 350 * ms, does: honest(350 * ms), again: true})
		t += 400 * ms
		if status != 200 {
			broken(s, second, t, func(e *history.End) {
				e.Outcome, e.Origin, e.Status, e.Error = history.Refused, history.Peer, status, "busy"
			})
			continue
		}
		at := s.uncut(second, t)
		for _, r := range s.recs {
			if r.End != nil && r.End.Ref == second {
				r.End.FirstEvent = min(r.End.Sent+answer, at+time.Hour)
			}
		}
	}
}

func TestCounts(t *testing.T) {
	s := newSim()
	s.uncut(ref(1, 1), load)
	s.cut(ref(2, 1), load, cut{after: 350 * ms, does: honest(350 * ms), again: true})
	s.uncut(ref(2, 2), load+time.Second)
	s.cut(ref(3, 1), load, cut{after: 350 * ms})
	s.start(ref(4, 1), load+time.Second, nil)
	s.at(load+time.Second, history.Record{Dropped: &history.Dropped{Count: 3, Reason: "streams"}})
	s.at(load+time.Second, history.Record{Evidence: &history.Evidence{Source: 1, Kind: history.Work, Units: 2, Text: "no id"}})
	s.at(load+time.Second, history.Record{Evidence: &history.Evidence{Source: 1, Kind: history.Work, Units: 4, Ref: ref(77, 1), By: "id"}})
	s.at(load+time.Second, history.Record{Evidence: &history.Evidence{Source: 1, Kind: history.Work, Units: 1, Foreign: true}})
	r, got := s.judge(t)
	want := Counts{
		Calls: 4, Delivered: 2, Failed: 1, Abandoned: 1, Attempts: 5, Reissues: 1, PlannedCuts: 2, Cuts: 2, DroppedArrivals: 3,
		Verdicts: map[history.Verdict]int{history.Stopped: 1, history.RanOn: 1}, Effects: 3, EffectsAfterCut: 1,
		Attributed: 12 + 12 + 4 + 12, Unattributed: 2, Foreign: 1,
	}
	if d := cmp.Diff(want, r.Counts); d != "" {
		t.Errorf("counts (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]float64{"step": 6}, r.Unattributed); d != "" {
		t.Errorf("unattributed (-want +got):\n%s", d)
	}
	wantParams := Params{
		StopWithin: 150 * ms, Watch: 5 * time.Second, CleanMedian: 1300 * ms, Gap: r.Params.Gap,
		UnitsMin: 10, UnitsMedian: 10, UnitsMax: 10, UnitMedians: map[string]float64{"step": 10},
	}
	if d := cmp.Diff(wantParams, r.Params); d != "" {
		t.Errorf("params (-want +got):\n%s", d)
	}
	if g := r.Params.Gap; g < 298*ms || g > 320*ms {
		t.Errorf("g = %v, want the quiet before the result, 300ms, and the log's lag", g)
	}
	ran := got[ref(3, 1)]
	if !ran.Completed || ran.RecordsAfter != 7 || ran.TimeToStop < 650*ms || ran.TimeToStop > 660*ms || !ran.Timed || ran.Censored {
		t.Errorf("ran_on attempt: completed %v, %d records after, time to stop %v", ran.Completed, ran.RecordsAfter, ran.TimeToStop)
	}
	if stopped := got[ref(2, 1)]; stopped.SignalLatency < ms || stopped.SignalLatency > 5*ms || stopped.TimeToStop != 0 {
		t.Errorf("stopped attempt: signal latency %v, time to stop %v", stopped.SignalLatency, stopped.TimeToStop)
	}
}

func TestDuplicates(t *testing.T) {
	s := newSim()
	// All work and the effect came before the cut; the call is sent again and does it again.
	s.cut(ref(1, 1), load, cut{after: 1050 * ms, phase: history.PhaseTail, does: does{stopAt: 1050 * ms, sayStop: 1051 * ms}, again: true})
	s.uncut(ref(1, 2), load+2*time.Second)
	// The first attempt runs on to its end beside the second.
	s.cut(ref(2, 1), load, cut{after: 350 * ms, again: true})
	s.uncut(ref(2, 2), load+time.Second)
	// Cut before the effect: done once.
	s.cut(ref(3, 1), load, cut{after: 350 * ms, does: honest(350 * ms), again: true})
	s.uncut(ref(3, 2), load+time.Second)
	r, got := s.judge(t)
	for id, want := range map[history.Ref][2]any{ref(1, 1): {0, false}, ref(1, 2): {1, true}, ref(2, 2): {1, true}, ref(3, 2): {0, false}} {
		if j := got[id]; j.DuplicateEffects != want[0] || j.Duplicate != want[1] {
			t.Errorf("%s: %d duplicate effects, duplicate %v; want %v", id, j.DuplicateEffects, j.Duplicate, want)
		}
	}
	if f := r.finding("duplicate-effect"); f == nil || f.Count != 2 || f.Severity != history.SeverityWarn {
		t.Errorf("duplicate-effect = %+v, want a warning that counts 2", f)
	}
}

// TestTailMoves holds that an effect after a tail cut shows that the tail was
// not reached.
func TestTailMoves(t *testing.T) {
	s := newSim()
	s.cut(ref(1, 1), load, cut{after: 950 * ms, phase: history.PhaseTail, does: does{}})
	_, got := s.judge(t)
	if p := got[ref(1, 1)].End.Cut.Phase; p != history.PhaseMid {
		t.Errorf("phase = %v, want mid", p)
	}
}

func TestMarkers(t *testing.T) {
	s := newSim()
	s.log.ByAttempt, s.log.ByCall = false, true
	s.cut(ref(1, 1), load, cut{after: 350 * ms, does: does{}})                                                 // alone: all evidence is its own
	s.cut(ref(2, 1), load, cut{after: 350 * ms, does: does{stopAt: 350 * ms, sayStop: 355 * ms}, again: true}) // sent again soon
	s.uncut(ref(2, 2), load+400*ms)
	r, got := s.judge(t)
	if j := got[ref(1, 1)]; j.Verdict != history.RanOn {
		t.Errorf("lone attempt by marker: %v (%s), want ran_on", j.Verdict, j.Reason)
	}
	if j := got[ref(2, 1)]; j.Verdict != history.Stopped || len(j.Work) == 0 || j.Work[0].Total() != 3 {
		t.Errorf("first attempt of two by marker: %v (%s), work %v; want stopped with the 3 steps before the second", j.Verdict, j.Reason, j.Work)
	}
	if r.Counts.Ambiguous != 12 || r.finding("ambiguous") == nil {
		t.Errorf("ambiguous = %d, want the 12 records of the second attempt while the first may run on", r.Counts.Ambiguous)
	}
}

// TestCutShort ends a history in the middle of a watch.
func TestCutShort(t *testing.T) {
	s := newSim()
	s.cut(ref(1, 1), load, cut{after: 350 * ms, does: honest(350 * ms)})
	s.cut(ref(2, 1), load, cut{after: 350 * ms, does: does{}})
	s.start(ref(3, 1), load+100*ms, nil)
	var recs []history.Record
	for _, r := range s.build() {
		if r.T < load+1200*ms {
			recs = append(recs, r)
		}
	}
	r, got := judgeAll(t, recs)
	if !r.CutShort {
		t.Error("not reported as cut short")
	}
	for id, want := range map[history.Ref]history.Verdict{ref(1, 1): history.Unknown, ref(2, 1): history.RanOn, ref(3, 1): history.VerdictNone} {
		if j := got[id]; j.Verdict != want {
			t.Errorf("%s = %v (%s), want %v", id, j.Verdict, j.Reason, want)
		}
	}
}

// TestLateEvidence has evidence that arrives long after its attempts were
// settled: it is attributed all the same.
func TestLateEvidence(t *testing.T) {
	for _, delay := range []time.Duration{20 * time.Second, 3 * time.Minute} {
		s := newSim()
		for i := uint64(1); i <= 5; i++ {
			s.cut(ref(i, 1), load+time.Duration(i)*100*ms, cut{after: 350 * ms, does: honest(350 * ms)})
		}
		s.uncut(ref(6, 1), load+time.Second)
		at := load + delay
		s.at(at, history.Record{Evidence: &history.Evidence{Source: 1, Kind: history.Work, Units: 3, Ref: ref(2, 1), By: "id", Text: "late"}})
		s.at(at, history.Record{Evidence: &history.Evidence{Source: 1, Kind: history.Work, Units: 1, Ref: ref(99, 1), By: "id", Text: "nobody's"}})
		s.uncut(ref(7, 1), at+10*time.Second)
		r, got := s.judge(t)
		j := got[ref(2, 1)]
		if j.Verdict != history.RanOn || j.LateEvidence != 1 || j.Work[0].After != 3 {
			t.Errorf("after %v: %v (%s), late %d, work %v; want ran_on by one late record", delay, j.Verdict, j.Reason, j.LateEvidence, j.Work)
		}
		if r.Counts.Late != 1 || r.Counts.Unattributed != 1 || r.Counts.Verdicts[history.Stopped] != 4 {
			t.Errorf("after %v: counts %+v", delay, r.Counts)
		}
		if !slices.ContainsFunc(j.Cites, func(c Cite) bool { return c.Text == "late" }) {
			t.Errorf("after %v: cites %v do not quote the late record", delay, j.Cites)
		}
	}
}

// TestBuffered has a log that holds its last lines back: silence after the last
// watch is not confirmed.
func TestBuffered(t *testing.T) {
	s := newSim()
	s.noStops = true
	s.cut(ref(1, 1), load, cut{after: 350 * ms, does: does{stopAt: 350 * ms}})
	s.cut(ref(2, 1), load+20*time.Second, cut{after: 350 * ms, does: does{stopAt: 350 * ms}})
	recs := s.build()
	recs = slices.DeleteFunc(recs, func(r history.Record) bool {
		return r.Evidence != nil && r.Evidence.Ref.Role == history.Closing
	})
	r, got := judgeAll(t, recs)
	if j := got[ref(1, 1)]; j.Verdict != history.Stopped {
		t.Errorf("confirmed by a later call: %v (%s), want stopped", j.Verdict, j.Reason)
	}
	if j := got[ref(2, 1)]; j.Verdict != history.Unknown || j.Reason != reasonBuffered {
		t.Errorf("not confirmed: %v (%s), want unknown, buffered", j.Verdict, j.Reason)
	}
	if r.Judgement != history.Undecided {
		t.Errorf("run = %v, want unknown", r.Judgement)
	}
}

// TestTimeouts are signal cuts of ours: judged, and not planned.
func TestTimeouts(t *testing.T) {
	s := newSim()
	s.uncut(ref(1, 1), load)
	s.cuts = nil
	s.cut(ref(2, 1), load, cut{after: 350 * ms, more: func(e *history.End) {
		e.Planned, e.Cut.Cause, e.Origin = nil, "timeout", history.Us
	}})
	for i := range s.recs {
		if st := s.recs[i].Start; st != nil {
			st.Planned = nil
		}
	}
	r, got := s.judge(t)
	if j := got[ref(2, 1)]; j.Verdict != history.RanOn {
		t.Errorf("a time-out that the server ignores: %v, want ran_on", j.Verdict)
	}
	if c := r.Counts; c.PlannedCuts != 0 || c.Cuts != 1 {
		t.Errorf("planned %d, cuts %d; want 0, 1", c.PlannedCuts, c.Cuts)
	}
}

func TestDriverLimited(t *testing.T) {
	for _, tt := range []struct {
		name string
		add  func(*sim)
		want bool
	}{
		{"quiet", func(s *sim) {}, false},
		{"EMFILE", func(s *sim) {
			s.at(load, history.Record{Driver: &history.Driver{Trouble: "EMFILE"}})
		}, true},
		{"busy, but on time", func(s *sim) {
			for i := range 6 {
				s.at(load+time.Duration(i)*time.Second, history.Record{Driver: &history.Driver{CPU: 0.95}})
			}
		}, false},
		{"cuts late", func(s *sim) {
			for _, r := range s.recs {
				if r.End != nil && r.End.Cut != nil {
					r.End.Cut.Due -= 60 * ms
				}
			}
		}, true},
	} {
		s := newSim()
		s.cut(ref(1, 1), load, cut{after: 350 * ms, does: honest(350 * ms)})
		tt.add(s)
		if r, _ := s.judge(t); r.Driver.Limited != tt.want {
			t.Errorf("%s: limited = %v (%s), want %v", tt.name, r.Driver.Limited, r.Driver.Why, tt.want)
		}
	}
}

func TestCalibrate(t *testing.T) {
	s := newSim()
	var recs []history.Record
	for _, r := range s.build() {
		if r.T < load-2*time.Second {
			recs = append(recs, r)
		}
	}
	c, err := Calibrate(inMemory(recs))
	if err != nil {
		t.Fatal(err)
	}
	want := history.Budget{StopWithin: 150 * ms, CleanMedian: 1300 * ms, Gap: 100 * ms, TailGap: 300 * ms, Events: 10, Units: 10}
	if d := cmp.Diff(want, c.Budget); d != "" {
		t.Errorf("budget (-want +got):\n%s", d)
	}
	if c.Calls != 3 || c.Delivered != 3 || len(c.Sources) != 1 || !c.Sources[0].Silence || len(c.Sources[0].Missing) != 0 {
		t.Errorf("calibration %+v", c)
	}
	for gap, want := range map[time.Duration]time.Duration{0: time.Second, ms: 100 * ms, time.Second: 1500 * ms, time.Minute: 2 * time.Second} {
		if got := stopWithin(gap); got != want {
			t.Errorf("stopWithin(%v) = %v, want %v", gap, got, want)
		}
	}
}

func TestCause(t *testing.T) {
	for _, tt := range []struct {
		where, other cut
		form         string // of all answers
		want         string
	}{
		{where: cut{phase: history.PhaseSent, after: 50 * ms}, other: cut{after: 350 * ms, does: honest(350 * ms)}, want: "Only cuts before the response head leak"},
		{where: cut{after: 350 * ms, more: func(e *history.End) { e.Form = "json" }}, other: cut{after: 350 * ms, does: honest(350 * ms)}, want: "Only calls answered as plain JSON leak"},
		{where: cut{phase: history.PhaseSent, after: 350 * ms}, other: cut{phase: history.PhaseSent, after: 450 * ms}, form: "json", want: "All answers are plain JSON"},
		{where: cut{after: 350 * ms}, other: cut{after: 350 * ms}, want: "never told"},
	} {
		s := newSim()
		if tt.form != "" {
			s.form = tt.form
		}
		s.cut(ref(1, 1), load, tt.where)
		s.uncut(ref(3, 1), load)
		s.cut(ref(2, 1), load, tt.other)
		r, _ := s.judge(t)
		if f := r.finding("run-on"); f == nil || !strings.Contains(f.Text, tt.want) {
			t.Errorf("run-on = %s, want %q in it", fmt.Sprint(f), tt.want)
		}
	}
}
