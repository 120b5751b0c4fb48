package results

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/metric"
	"github.com/mcpflood/mcpflood/internal/oracle"
)

const ms = time.Millisecond

func ref(call uint64, attempt uint32) history.Ref { return history.Ref{Call: call, Attempt: attempt} }

// delivered is an attempt nobody cut: begun at from, 1 ms to the first byte, 10
// to the first event, 100 to the result.
func delivered(r history.Ref, from time.Duration) oracle.Judged {
	return oracle.Judged{
		Start: history.Start{Ref: r, Intended: from, Begun: from},
		End: history.End{Ref: r, Outcome: history.Delivered, Begun: from, Sent: from + ms/2, FirstByte: from + ms,
			FirstEvent: from + 10*ms, Result: from + 100*ms, Ended: from + 100*ms},
		Completed: true, SignalLatency: -1, NoticeTime: -1,
	}
}

// cutAt is the same attempt cut in a style after a while, which must be later
// than its first event.
func cutAt(r history.Ref, from time.Duration, style history.Style, after time.Duration, v history.Verdict) oracle.Judged {
	j := delivered(r, from)
	j.Start.Planned = &history.Planned{Style: style, Moment: "after(" + after.String() + ")"}
	c0 := from + after
	j.End.Outcome, j.End.Origin, j.End.Result, j.End.Ended = history.Cut, history.Chaos, 0, c0+ms
	j.End.Cut = &history.CutDone{Style: style, Phase: history.PhaseMid, Cause: causePlan, Due: c0 - 2*ms, C0: c0, C1: c0 + ms}
	j.Class, j.Verdict, j.Grade, j.Completed, j.Discriminates = style.Class(), v, history.GradeC, false, true
	return j
}

func feedAll(t *testing.T, run history.Run, r *oracle.Report, thresholds []metric.Threshold, attempts ...oracle.Judged) *feeder {
	t.Helper()
	f := newFeeder(run, Prices{}, thresholds)
	for i := range attempts {
		f.attempt(&attempts[i])
	}
	f.finish(r)
	return f
}

// times is count and censored of each time that has samples, and its median in
// milliseconds.
func times(s *metric.Set) map[string][3]float64 {
	out := map[string][3]float64{}
	for _, d := range metric.Defs() {
		if d.Kind != metric.Time {
			continue
		}
		if r := s.Times(d.ID); r.Count() > 0 {
			v, _ := r.Percentile(50)
			out[d.Name] = [3]float64{float64(r.Count()), float64(r.Censored()), math.Round(float64(v.Time)/float64(ms)*10) / 10}
		}
	}
	return out
}

func sums(s *metric.Set) map[string]float64 {
	out := map[string]float64{}
	for _, d := range metric.Defs() {
		if d.Kind == metric.Counter && s.Sum(d.ID) != 0 {
			out[d.Name] = s.Sum(d.ID)
		}
	}
	return out
}

func TestFeedUncut(t *testing.T) {
	f := feedAll(t, history.Run{}, &oracle.Report{}, nil, delivered(ref(1, 1), 0), delivered(ref(2, 1), time.Second))
	if d := cmp.Diff(map[string]float64{"mcp_calls": 2, "mcp_attempts": 2}, sums(f.reg.Whole())); d != "" {
		t.Errorf("counters (-want +got):\n%s", d)
	}
	want := map[string][3]float64{"mcp_first_byte": {2, 0, 1}, "mcp_first_event": {2, 0, 10}, "mcp_attempt_duration": {2, 0, 100}, "mcp_call_duration": {2, 0, 100}}
	if d := cmp.Diff(want, times(f.reg.Whole())); d != "" {
		t.Errorf("times (-want +got):\n%s", d)
	}
	if len(f.groups) != 0 {
		t.Errorf("%d groups without a cut", len(f.groups))
	}
}

// A call is cut, re-issued, cut again before its first event, and delivered.
func TestFeedReissue(t *testing.T) {
	first := cutAt(ref(1, 1), 0, history.Fin, 50*ms, history.Stopped)
	first.Timed, first.TimeToStop = true, 20*ms
	first.FirstStop, first.SignalLatency = oracle.Interval{Lo: 60 * ms, Hi: 61 * ms}, 9*ms
	second := cutAt(ref(1, 2), 100*ms, history.Fin, 5*ms, history.RanOn)
	second.End.FirstEvent = 0
	second.Timed, second.TimeToStop, second.Censored = true, 15*time.Second, true
	third := delivered(ref(1, 3), 200*ms)
	f := feedAll(t, history.Run{}, &oracle.Report{Counts: oracle.Counts{Verdicts: map[history.Verdict]int{history.Stopped: 1, history.RanOn: 1}}}, nil, first, second, third)
	want := map[string][3]float64{
		"mcp_first_byte":       {3, 0, 1},
		"mcp_first_event":      {3, 1, 10},
		"mcp_attempt_duration": {3, 2, 50}, // 100, ≥50 and ≥5 ms: the median is at least the middle of these
		"mcp_call_duration":    {1, 0, 300},
		"mcp_reissue_latency":  {2, 1, 104}, // from 106 to 210 ms; from 51 at least to 105 ms
		"mcp_recovery":         {1, 0, 249}, // from 51 to 300 ms
		"mcp_time_to_stop":     {2, 1, 20},
		"mcp_signal_latency":   {1, 0, 9},
		"mcp_cut_lateness":     {2, 0, 2},
	}
	if d := cmp.Diff(want, times(f.reg.Whole())); d != "" {
		t.Errorf("times (-want +got):\n%s", d)
	}
	wantSums := map[string]float64{"mcp_calls": 1, "mcp_attempts": 3, "mcp_reissues": 2, "mcp_cuts": 2, "mcp_stopped": 1, "mcp_ran_on": 1}
	if d := cmp.Diff(wantSums, sums(f.reg.Whole())); d != "" {
		t.Errorf("counters (-want +got):\n%s", d)
	}
	g := f.groups[GroupTags{history.Fin, history.PhaseMid}]
	if g == nil || g.counts.Attempts != 2 || g.counts.Verdicts != (Verdicts{Stopped: 1, RanOn: 1}) || g.set.Times(metric.TimeToStop).Count() != 2 {
		t.Errorf("group fin at mid = %+v", g)
	}
}

// A further attempt that answers the server's question is no re-issue.
func TestFeedMoreInput(t *testing.T) {
	first := delivered(ref(1, 1), 0)
	first.End.Outcome = history.MoreInput
	f := feedAll(t, history.Run{}, &oracle.Report{}, nil, first, delivered(ref(1, 2), 100*ms))
	if got := f.reg.Whole().Sum(metric.Reissues); got != 0 {
		t.Errorf("re-issues = %v, want 0", got)
	}
	if got := times(f.reg.Whole())["mcp_call_duration"]; got != [3]float64{1, 0, 200} {
		t.Errorf("call duration = %v", got)
	}
}

func TestFeedSilentAndOpen(t *testing.T) {
	noticed := cutAt(ref(1, 1), 0, history.Vanish, 50*ms, history.Noticed)
	noticed.NoticeTime = 700 * ms
	noticed.End.Ended = 20 * time.Second // the socket is held until it is settled
	unnoticed := cutAt(ref(2, 1), 0, history.Stall, 50*ms, history.Unnoticed)
	halfClosed := cutAt(ref(3, 1), 0, history.HalfClose, 50*ms, history.WentOn)
	halfClosed.End.Outcome, halfClosed.End.Result, halfClosed.End.Ended = history.Delivered, 100*ms, 100*ms
	f := feedAll(t, history.Run{Watch: 15 * time.Second}, &oracle.Report{}, nil, noticed, unnoticed, halfClosed)
	got := times(f.reg.Whole())
	want := map[string][3]float64{"mcp_notice_time": {2, 1, 700}, "mcp_attempt_duration": {3, 2, 50}}
	for name, w := range want {
		if got[name] != w {
			t.Errorf("%s = %v, want %v", name, got[name], w)
		}
	}
	if _, ok := got["mcp_time_to_stop"]; ok {
		t.Error("a silent cut has a time to stop")
	}
}

// Verdicts that the oracle counts without naming attempts reach the counters,
// and with them their population.
func TestFeedUnnamed(t *testing.T) {
	r := &oracle.Report{Counts: oracle.Counts{Verdicts: map[history.Verdict]int{history.RanOn: 3, history.Unknown: 1}, EffectsAfterCut: 2}}
	var attempts []oracle.Judged
	for i := range uint64(4) {
		attempts = append(attempts, cutAt(ref(i+1, 1), 0, history.Fin, 50*ms, history.Unknown))
	}
	var thresholds []metric.Threshold
	for _, s := range []string{"mcp_ran_on: count==3", "mcp_ran_on{style:fin}: count==0", "mcp_unknown: count==1", "mcp_ran_on{grade:D}: rate==1"} {
		th, err := metric.ParseThreshold(s)
		if err != nil {
			t.Fatal(err)
		}
		thresholds = append(thresholds, th)
	}
	f := feedAll(t, history.Run{}, r, thresholds, attempts...)
	for i, want := range []string{"true", "unknown", "true", "true"} {
		got := "unknown"
		if res := f.reg.Evaluate(thresholds[i], time.Second); res.OK != nil {
			got = map[bool]string{true: "true", false: "false"}[*res.OK]
		}
		if got != want {
			t.Errorf("%s: %s, want %s", thresholds[i], got, want)
		}
	}
}

func TestFeedBlind(t *testing.T) {
	check := func(r *oracle.Report, text string) *bool {
		th, err := metric.ParseThreshold(text)
		if err != nil {
			t.Fatal(err)
		}
		r.Counts.Verdicts = map[history.Verdict]int{history.Stopped: 1}
		j := cutAt(ref(1, 1), 0, history.Fin, 50*ms, history.Stopped)
		j.Timed = true
		f := feedAll(t, history.Run{}, r, []metric.Threshold{th}, j)
		return f.reg.Evaluate(th, time.Second).OK
	}
	wire := oracle.Seen{Witness: history.Witness{What: "wire", Shows: []history.Kind{history.Effect}}}
	log := oracle.Seen{Witness: history.Witness{What: "log", Shows: []history.Kind{history.Work, history.Effect}}}
	if ok := check(&oracle.Report{Witnesses: []oracle.Seen{wire}}, "mcp_effects_after_cut: count==0"); ok != nil {
		t.Errorf("effects without a witness: %v, want unknown", *ok)
	}
	if ok := check(&oracle.Report{Witnesses: []oracle.Seen{wire, log}}, "mcp_effects_after_cut: count==0"); ok == nil || !*ok {
		t.Error("effects with a witness that saw none: want met")
	}
	if ok := check(&oracle.Report{Driver: oracle.Driver{Limited: true}}, "mcp_time_to_stop: max<1000"); ok != nil {
		t.Errorf("a time of a limited driver: %v, want unknown", *ok)
	}
}

// A history cut short leaves attempts without an end.
func TestFeedCutShort(t *testing.T) {
	j := oracle.Judged{Start: history.Start{Ref: ref(1, 1), Begun: ms}}
	f := feedAll(t, history.Run{}, &oracle.Report{}, nil, j)
	if d := cmp.Diff(map[string]float64{"mcp_calls": 1, "mcp_attempts": 1}, sums(f.reg.Whole())); d != "" || len(times(f.reg.Whole())) != 0 {
		t.Errorf("%v\n%s", times(f.reg.Whole()), d)
	}
}
