package results

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/latency"
	"github.com/mcpflood/mcpflood/internal/metric"
	"github.com/mcpflood/mcpflood/internal/oracle"
	"github.com/mcpflood/mcpflood/internal/stats"
)

// feeder turns judged attempts, which come sorted by call and attempt, into
// metrics, groups and the interval log. Its memory is bounded by the number of
// groups, not of attempts.
type feeder struct {
	run    history.Run
	prices Prices
	reg    *metric.Registry
	groups map[GroupTags]*group
	log    latency.Log
	call   callState
}

// group is what a summary tells of one style at one phase.
type group struct {
	counts Counts
	set    metric.Set
	effects
	ledger   *ledger
	survival stats.Survival
}

type effects struct{ all, afterCut, inRace, duplicate int }

func (e *effects) add(j *oracle.Judged) {
	e.all += j.Effects
	e.afterCut += j.EffectsAfterCut
	e.inRace += j.EffectsInRace
	e.duplicate += j.DuplicateEffects
}

// callState is what the attempts of one call told so far.
type callState struct {
	call      uint64 // 0: none
	intended  time.Duration
	delivered time.Duration
	ended     time.Duration // the last moment seen of it
	last      *oracle.Judged
	firstCut  time.Duration
	cutTags   metric.Tags
	reissued  bool // after the first cut
	tags      metric.Tags
}

func newFeeder(run history.Run, prices Prices, thresholds []metric.Threshold) *feeder {
	return &feeder{run: run, prices: prices, reg: metric.NewRegistry(thresholds), groups: map[GroupTags]*group{}}
}

// attempt takes the next judged attempt.
func (f *feeder) attempt(j *oracle.Judged) {
	if j.Start.Ref.Call != f.call.call {
		f.endCall()
		f.call = callState{call: j.Start.Ref.Call, intended: j.Start.Intended, tags: f.tags(j, nil)}
		f.reg.Count(metric.Calls, f.call.tags, 1)
		f.reg.Populate(metric.AllCalls, f.call.tags, 1)
	}
	t := f.tags(j, j.End.Cut)
	g := f.group(j.End.Cut)
	f.counters(j, t)
	f.times(j, t)
	f.verdict(j, t)
	f.calls(j, t)
	if g != nil {
		g.add(j)
	}
}

// tags are an attempt's tags; with the style and phase of a cut that was
// carried out.
func (f *feeder) tags(j *oracle.Judged, cut *history.CutDone) metric.Tags {
	t := metric.Tags{
		Tool: cmp.Or(j.Start.Tool, f.run.Tool), HTTP: f.run.HTTP, Protocol: f.run.Protocol,
		Scenario: f.run.Scenario, Profile: f.run.Profile,
	}
	if len(f.run.Targets) > j.Start.Instance {
		t.Instance = strconv.Itoa(j.Start.Instance)
	}
	if cut != nil {
		t.Style, t.Phase, t.Grade = cut.Style.String(), cut.Phase.String(), j.Grade.String()
	}
	return t
}

// group finds the group of a cut, nil for none.
func (f *feeder) group(cut *history.CutDone) *group {
	if cut == nil {
		return nil
	}
	key := GroupTags{cut.Style, cut.Phase}
	g := f.groups[key]
	if g == nil {
		g = &group{ledger: newLedger(f.prices)}
		f.groups[key] = g
	}
	return g
}

// sortedGroups lists the groups by style, then phase.
func (f *feeder) sortedGroups() []GroupTags {
	return slices.SortedFunc(maps.Keys(f.groups), func(a, b GroupTags) int {
		return cmp.Or(cmp.Compare(a.Style, b.Style), cmp.Compare(a.Phase, b.Phase))
	})
}

func (g *group) add(j *oracle.Judged) {
	c := &g.counts
	c.Attempts++
	c.Cuts++
	if j.Start.Planned != nil && j.End.Cut.Cause == causePlan {
		c.PlannedCuts++
	}
	if j.End.IsError {
		c.ToolErrors++
	}
	if n := c.Verdicts.of(j.Verdict); n != nil {
		*n++
	}
	c.PostCutEmissions += j.Emissions
	if j.End.After != nil {
		c.PostCutBytes += j.End.After.Bytes
	}
	c.StrayMessages += j.Strays
	g.effects.add(j)
	g.ledger.tally.Add(j)
	survive(&g.survival, j)
}

// causePlan is the cause of a cut that the plan asked for.
const causePlan = "plan"

func (f *feeder) counters(j *oracle.Judged, t metric.Tags) {
	f.reg.Count(metric.Attempts, t, 1)
	f.reg.Populate(metric.AllAttempts, t, 1)
	if j.End.Cut != nil && j.End.Cut.Cause == causePlan {
		f.reg.Count(metric.Cuts, t, 1)
	}
	f.reg.Count(metric.PostCutEmissions, t, float64(j.Emissions))
	f.reg.Count(metric.StrayMessages, t, float64(j.Strays))
	f.reg.Count(metric.EffectsAfterCut, t, float64(j.EffectsAfterCut))
	f.reg.Count(metric.DuplicateEffects, t, float64(j.DuplicateEffects))
}

// verdictMetrics is which counter a verdict moves; the others have none.
var verdictMetrics = map[history.Verdict]metric.ID{
	history.Stopped: metric.Stopped, history.Late: metric.Late, history.RanOn: metric.RanOn,
	history.Finished: metric.Finished, history.Unknown: metric.Unknown,
}

func (f *feeder) verdict(j *oracle.Judged, t metric.Tags) {
	if j.Verdict == history.VerdictNone {
		return
	}
	if id, ok := verdictMetrics[j.Verdict]; ok {
		f.reg.Count(id, t, 1)
	}
	f.reg.Populate(metric.AllVerdicts, t, 1)
	if j.Verdict == history.Unknown {
		return
	}
	f.reg.Populate(metric.JudgedCuts, t, 1)
	if j.Class == history.ClassSignal {
		f.reg.Populate(metric.JudgedSignal, t, 1)
	}
}

// time adds a sample that was complete at run time at.
func (f *feeder) time(id metric.ID, t metric.Tags, at, d time.Duration, censored bool) {
	f.reg.Time(id, t, d, censored)
	if censored {
		f.log.Censor(id.String(), at, d)
	} else {
		f.log.Record(id.String(), at, d)
	}
	if g := f.groupOf(t); g != nil {
		g.set.Time(id, d, censored)
	}
}

func (f *feeder) groupOf(t metric.Tags) *group {
	if t.Style == "" {
		return nil
	}
	var key GroupTags
	if key.Style.UnmarshalText([]byte(t.Style)) != nil || key.Phase.UnmarshalText([]byte(t.Phase)) != nil {
		return nil
	}
	return f.groups[key]
}

// lookedUntil is when we stopped waiting for an attempt's answer: its cut,
// unless the cut left the answer wanted.
func lookedUntil(e *history.End) time.Duration {
	if e.Cut != nil && e.Cut.Style.Class() != history.ClassOpen && (e.Result == 0 || e.Result > e.Cut.C0) {
		return e.Cut.C0
	}
	return e.Ended
}

func (f *feeder) times(j *oracle.Judged, t metric.Tags) {
	e := &j.End
	if e.Outcome == history.OutcomeNone {
		return // the history was cut short before its end
	}
	until := lookedUntil(e)
	since := func(id metric.ID, moment time.Duration) {
		if moment > 0 {
			f.time(id, t, moment, moment-e.Begun, false)
		} else {
			f.time(id, t, until, until-e.Begun, true)
		}
	}
	since(metric.FirstByte, e.FirstByte)
	since(metric.FirstEvent, e.FirstEvent)
	answered := e.Result
	if e.Outcome == history.Refused && answered == 0 {
		answered = e.Ended
	}
	since(metric.AttemptDuration, answered)
	if cut := e.Cut; cut != nil {
		f.cutTimes(j, cut, t)
	}
}

func (f *feeder) cutTimes(j *oracle.Judged, cut *history.CutDone, t metric.Tags) {
	if cut.Cause == causePlan {
		f.time(metric.CutLateness, t, cut.C0, max(0, cut.C0-cut.Due), false)
	}
	switch j.Class {
	case history.ClassSignal:
		if j.Timed {
			f.time(metric.TimeToStop, t, cut.C1+j.TimeToStop, j.TimeToStop, j.Censored)
		}
		if j.SignalLatency >= 0 && !j.FirstStop.IsZero() {
			f.time(metric.SignalLatency, t, cut.C1+j.SignalLatency, j.SignalLatency, false)
		}
	case history.ClassSilent:
		switch {
		case j.Verdict == history.Noticed && j.NoticeTime >= 0:
			f.time(metric.NoticeTime, t, cut.C1+j.NoticeTime, j.NoticeTime, false)
		case j.Verdict == history.Unnoticed:
			f.time(metric.NoticeTime, t, cut.C1+f.run.Watch, f.run.Watch, true)
		}
	}
}

// calls follows a call from attempt to attempt.
func (f *feeder) calls(j *oracle.Judged, t metric.Tags) {
	c, e := &f.call, &j.End
	if prev := c.last; prev != nil && prev.End.Outcome != history.MoreInput {
		f.reg.Count(metric.Reissues, t, 1)
		from, tags := prev.End.Ended, f.tags(prev, prev.End.Cut)
		if prev.End.Cut != nil {
			from = prev.End.Cut.C1
		}
		if until := lookedUntil(e); e.Outcome != history.OutcomeNone {
			if e.FirstEvent > 0 {
				f.time(metric.ReissueLatency, tags, e.FirstEvent, max(0, e.FirstEvent-from), false)
			} else {
				f.time(metric.ReissueLatency, tags, until, max(0, until-from), true)
			}
		}
		c.reissued = c.reissued || c.firstCut > 0
	}
	c.ended = max(c.ended, e.Ended)
	if e.Outcome == history.Delivered {
		c.delivered = e.Result
	} else if e.Cut != nil && c.firstCut == 0 {
		c.firstCut, c.cutTags = e.Cut.C1, t
	}
	c.last = j
}

// endCall settles the call whose attempts have all come.
func (f *feeder) endCall() {
	c := &f.call
	if c.call == 0 || c.ended == 0 {
		return
	}
	end, censored := c.ended, true
	if c.delivered > 0 {
		end, censored = c.delivered, false
	}
	f.time(metric.CallDuration, c.tags, end, end-c.intended, censored)
	if c.reissued {
		f.time(metric.Recovery, c.cutTags, end, max(0, end-c.firstCut), censored)
	}
}

// finish takes what the oracle says of the whole run.
func (f *feeder) finish(r *oracle.Report) {
	f.endCall()
	f.call = callState{}
	none := metric.Tags{}
	calls := f.reg.Whole().Sum(metric.Calls)
	f.reg.Count(metric.DroppedArrivals, none, float64(r.Counts.DroppedArrivals))
	f.reg.Populate(metric.Arrivals, none, calls+float64(r.Counts.DroppedArrivals))
	f.reg.Count(metric.CanaryFailures, none, float64(r.Canary.Failures))
	f.reg.Populate(metric.Probes, none, float64(r.Canary.Probes))
	if r.Driver.Streams > 0 {
		f.reg.Set(metric.Streams, float64(r.Driver.Streams))
	}
	f.unnamed(r)
	if !shows(r, history.Effect) {
		f.reg.Blind(metric.EffectsAfterCut)
		f.reg.Blind(metric.DuplicateEffects)
	}
	if r.Driver.Limited {
		for _, d := range metric.Defs() {
			if d.Kind == metric.Time {
				f.reg.Blind(d.ID)
			}
		}
	}
}

// unnamed adds what the oracle counts beyond the attempts it names: verdicts
// from aggregate gauges and counters, which know how many but not which.
func (f *feeder) unnamed(r *oracle.Report) {
	t := metric.Tags{HTTP: f.run.HTTP, Protocol: f.run.Protocol, Scenario: f.run.Scenario, Profile: f.run.Profile, Grade: history.GradeD.String()}
	whole := f.reg.Whole()
	moved := 0.0
	for _, v := range history.Verdicts() {
		id, ok := verdictMetrics[v]
		if !ok {
			continue
		}
		more := float64(r.Counts.Verdicts[v]) - whole.Sum(id)
		f.reg.Count(id, t, more)
		if v != history.Unknown {
			moved += more
		}
	}
	if moved != 0 {
		f.reg.Populate(metric.JudgedCuts, t, moved)
		f.reg.Populate(metric.JudgedSignal, t, moved)
	}
	for id, n := range map[metric.ID]int{
		metric.PostCutEmissions: r.Counts.PostCutEmissions, metric.StrayMessages: r.Counts.StrayMessages,
		metric.EffectsAfterCut: r.Counts.EffectsAfterCut, metric.DuplicateEffects: r.Counts.DuplicateEffects,
	} {
		f.reg.Count(id, t, float64(n)-whole.Sum(id))
	}
}

// shows reports whether a witness beside the wire can show the kind.
func shows(r *oracle.Report, k history.Kind) bool {
	return slices.ContainsFunc(r.Witnesses, func(w oracle.Seen) bool {
		return w.What != "wire" && slices.Contains(w.Shows, k)
	})
}
