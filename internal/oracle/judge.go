package oracle

import (
	"math"
	"slices"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// Judge judges a history in two passes. visit takes every attempt of a load
// call once, sorted by call and attempt; clean and closing calls only feed the
// parameters. What Judge holds at one time is the open calls and those whose
// evidence may still come, not the run.
func Judge(open Source, visit func(Judged)) (*Report, error) {
	p, _, err := survey(open, false)
	if err != nil {
		return nil, err
	}
	j := newJudge(p, visit)
	if err := walk(open, j.record); err != nil {
		return nil, err
	}
	j.track.finish()
	j.order.flush()
	return j.report(), nil
}

// judge is pass 2.
type judge struct {
	p      *params
	track  *tracker
	order  *order
	visit  func(Judged)
	counts Counts
	found  *findings
	tally  tally
	damage *damage
	canary canaryWatch
	// seen scrapes of gauges that may still decide an attempt
	scrapes      []Interval
	unattributed map[int]map[uint16]float64 // by source and unit
	loadBegun    bool
	attributed   map[int]int
}

func newJudge(p *params, visit func(Judged)) *judge {
	j := &judge{
		p: p, visit: visit, found: newFindings(), tally: newTally(), damage: newDamage(p),
		unattributed: map[int]map[uint16]float64{}, attributed: map[int]int{},
	}
	j.counts.Verdicts = map[history.Verdict]int{}
	j.order = newOrder(p.disorder, j.count)
	j.track = newTracker(&p.units, p.orphans)
	j.track.texts = true
	j.track.hold, j.track.settle, j.track.stray = p.hold, j.settle, j.stray
	return j
}

func (j *judge) record(seq int64, rec *history.Record) {
	switch {
	case rec.Start != nil && rec.Start.Ref.Role == history.Load:
		j.loadBegun = true
		j.order.begin(rec.Start.Ref)
	case rec.Dropped != nil:
		j.counts.DroppedArrivals += rec.Dropped.Count
	case rec.Evidence != nil && rec.Evidence.Foreign:
		j.counts.Foreign++
	case rec.Evidence != nil && rec.Evidence.Kind == history.Noise:
		j.tally.noise++
	case rec.Evidence != nil && rec.Evidence.Kind == history.Replayed:
		j.tally.replays++
	case rec.Sample != nil:
		j.scrape(rec.Sample)
	case rec.Canary != nil:
		j.canary.probe(rec.Canary)
	case rec.End != nil:
		j.damage.end(rec.End, j.before(rec.End.Ref))
	}
	j.damage.advance(rec.T)
	j.track.record(seq, rec)
}

// before is the outcome of the attempt before ref.
func (j *judge) before(ref history.Ref) history.Outcome {
	if c := j.track.calls[ref.Whole()]; c != nil && ref.Attempt > 1 {
		if a := c.find(ref.Attempt - 1); a != nil && a.end != nil {
			return a.end.Outcome
		}
	}
	return history.OutcomeNone
}

// scrape remembers when the gauge was read, as long as an attempt may ask.
func (j *judge) scrape(r *history.Sample) {
	if len(j.p.gauges) == 0 {
		return
	}
	if _, ok := r.Values[roleInflight]; !ok || len(j.scrapes) >= maxPending {
		return
	}
	if begun, ok := j.track.oldest(); ok {
		n := 0
		for n < len(j.scrapes) && j.scrapes[n].Hi < begun-startSlack {
			n++
		}
		j.scrapes = j.scrapes[n:]
	} else {
		j.scrapes = j.scrapes[:0]
	}
	j.scrapes = append(j.scrapes, Interval{r.T0, r.T1})
}

// stray takes evidence that fits no call.
func (j *judge) stray(ref history.Ref, it item) {
	src := j.p.sources.get(it.source)
	if ref.IsZero() && src.whole() && !j.loadBegun {
		return // of the clean calls, which are in no count
	}
	if ref.IsZero() || ref.Role == history.Load {
		j.counts.Unattributed++
	}
	if it.kind != history.Work {
		return
	}
	sums := j.unattributed[it.source]
	if sums == nil {
		sums = map[uint16]float64{}
		j.unattributed[it.source] = sums
	}
	sums[it.unit] += it.units
}

// verdictOf is one judged attempt with what the findings need of it.
type verdictOf struct {
	Judged
	disputed *Cite // a claim that the verdict's evidence contradicts
	notes    []note
	overdue  bool   // silent class: past --notice-within
	blind    bool   // unknown for a gap
	outcome  string // of the call
}

// note is one fact of an attempt that a finding counts.
type note struct {
	id   string
	cite Cite
}

// settle judges a call that is over.
func (j *judge) settle(c *call) {
	var m misfits
	j.p.distribute(c, &m)
	for _, a := range c.attempts {
		j.p.place(a)
		for i := range a.items {
			n := a.items[i].source
			j.attributed[n]++
			if c.ref.Role == history.Load && n != wire {
				j.counts.Attributed++
			}
		}
	}
	if c.ref.Role != history.Load {
		j.beside(c)
		return
	}
	j.counts.Ambiguous += len(m.ambiguous)
	for _, it := range m.unplaced {
		j.stray(c.ref, it)
	}
	for i := range m.ambiguous {
		j.found.ambiguous(c.ref, j.p.sources.get(m.ambiguous[i].source).cite(&m.ambiguous[i]))
	}
	out := make([]verdictOf, len(c.attempts))
	ran := false
	for i, a := range c.attempts {
		out[i] = j.attempt(a, c.overflow)
		out[i].Duplicate = ran
		ran = ran || out[i].Completed
	}
	out[0].outcome = c.outcome
	j.duplicates(c, out)
	j.order.done(c.ref.Call, out)
}

// beside reports what calls beside the load show of the server; they are in no
// count.
func (j *judge) beside(c *call) {
	for _, a := range c.attempts {
		if a.end == nil {
			continue
		}
		o := j.attempt(a, false)
		for _, n := range o.notes {
			j.found.attempt(n.id, severityOf[n.id], &o, n.cite)
		}
		if c.ref.Role == history.Closing {
			j.spurious(&o)
		}
	}
}

// attempt judges one attempt.
func (j *judge) attempt(a *attempt, lossy bool) verdictOf {
	out := verdictOf{Judged: Judged{Start: a.start, SignalLatency: -1, NoticeTime: -1}}
	if a.end == nil {
		out.fill(j.p, a)
		return out
	}
	out.End = *a.end
	v := newView(j.p, a, lossy)
	out.Seen = v.seen
	out.Completed = v.completed()
	out.LateEvidence = v.late
	out.fill(j.p, a)
	j.effects(v, &out)
	j.messages(v, &out)
	if v.cut == nil {
		return out
	}
	out.Class = v.cut.Style.Class()
	out.Discriminates = out.Class == history.ClassSignal && v.discriminates()
	var r ruling
	switch out.Class {
	case history.ClassSignal:
		r = j.byGauge(v, v.signal())
	case history.ClassSilent:
		r = v.quiet()
	case history.ClassOpen:
		r = v.open()
	}
	j.apply(v, r, &out)
	return out
}

// byGauge lets a gauge that fits throughout decide what ids leave unknown.
func (j *judge) byGauge(v *view, r ruling) ruling {
	if r.verdict != history.Unknown || !slices.ContainsFunc(j.p.gauges, (*gaugeWatch).inside) {
		return r
	}
	switch r.reason {
	case reasonNoWitness, reasonFewClean, reasonGap, reasonWatch, reasonBuffered:
	default:
		return r
	}
	from := v.limit + slack
	to := v.cut.C1 + j.p.median - elapsed(v.end, v.cut.C1)
	for _, s := range j.scrapes {
		if s.Lo > from && s.Hi < to {
			return ruling{verdict: history.Stopped, reason: reasonGauge, grade: history.GradeD}
		}
	}
	return r
}

// apply writes a ruling and the times that go with it.
func (j *judge) apply(v *view, r ruling, out *verdictOf) {
	out.Verdict, out.Reason, out.Fix, out.Grade = r.verdict, r.reason, r.fix, r.grade
	out.Working = r.working
	out.blind = r.reason == reasonGap
	for _, it := range r.proof {
		c := v.source(it).cite(it)
		if len(out.Cites) < MaxCites && !slices.Contains(out.Cites, c) {
			out.Cites = append(out.Cites, c)
		}
	}
	if r.disputed != nil {
		c := v.source(r.disputed).cite(r.disputed)
		out.disputed = &c
	}
	last := v.lastAfter()
	if last != nil {
		out.TimeToStop = max(last.hi-v.cut.C1, 0)
	}
	switch r.verdict {
	case history.Stopped, history.Late, history.RanOn:
		out.Timed = true
		out.Censored = r.working
	case history.Unknown:
		out.Timed = last != nil
		out.Censored = true
	}
	if v.firstStop != nil {
		out.SignalLatency = max(v.firstStop.hi-v.cut.C1, 0)
	}
	j.project(r, out)
	if out.Class == history.ClassSilent {
		j.notice(v, r, out)
	}
	if out.End.Cut.Phase == history.PhaseTail && v.effectCame() {
		moved := *out.End.Cut
		moved.Phase = history.PhaseMid
		out.End.Cut = &moved
	}
}

// notice adds when a silent cut was noticed and whether that was in time.
func (j *judge) notice(v *view, r ruling, out *verdictOf) {
	bound := j.p.run.Notice
	lastLo := time.Duration(math.MinInt64)
	if v.lastProof != nil {
		lastLo = v.lastProof.lo
	}
	switch r.verdict {
	case history.Noticed:
		at := v.cut.C1
		if r.reason == reasonClaim {
			at, lastLo = r.proof[0].hi, r.proof[0].lo
		} else if v.lastProof != nil {
			at = v.lastProof.hi
		}
		out.NoticeTime = max(at-v.cut.C1, 0)
	case history.Unnoticed:
	default:
		return
	}
	out.overdue = bound > 0 && lastLo > v.cut.C1+bound
}

// project adds what a ran_on attempt that was still at work would do to its
// end.
func (j *judge) project(r ruling, out *verdictOf) {
	if r.verdict != history.RanOn || !r.working {
		return
	}
	for i := range out.Work {
		w := &out.Work[i]
		w.Projected = max(w.After, j.p.unitMedian(j.p.units.index(w.Unit))-w.Before)
	}
}

// lastAfter is the last work that is proven to lie after the cut.
func (v *view) lastAfter() *item {
	var last *item
	for _, it := range v.work {
		if it.lo > v.cut.C1 {
			last = later(last, it)
		}
	}
	return last
}

// effectCame reports whether the attempt's effect is proven to lie after its
// cut.
func (v *view) effectCame() bool {
	return slices.ContainsFunc(v.effects, func(it *item) bool { return it.lo > v.cut.C1 })
}

// fill splits the attempt's work at its cut.
func (o *verdictOf) fill(p *params, a *attempt) {
	c := a.cut()
	split := c != nil && a.end.Outcome != history.Delivered
	after := map[[2]int]float64{}
	all := map[[2]int]float64{}
	for i := range a.items {
		it := &a.items[i]
		if it.kind != history.Work {
			continue
		}
		k := [2]int{int(it.unit), it.source}
		all[k] += it.units
		if c != nil && it.lo > c.C1 {
			o.RecordsAfter++
			if split {
				after[k] += it.units
			}
		}
		if o.LastWork.IsZero() || it.hi > o.LastWork.Hi {
			o.LastWork = Interval{it.lo, it.hi}
		}
	}
	for i := range a.items {
		if it := &a.items[i]; it.kind == history.Stop && (o.FirstStop.IsZero() || it.lo < o.FirstStop.Lo) {
			o.FirstStop = Interval{it.lo, it.hi}
		}
	}
	o.Work = splitWork(p, all, after)
}

// splitWork makes one Work a unit, by the source that shows most of it.
func splitWork(p *params, all, after map[[2]int]float64) []Work {
	best := map[int][2]int{}
	for k, v := range all {
		b, ok := best[k[0]]
		if !ok || v > all[b] || v == all[b] && (after[k] > after[b] || after[k] == after[b] && k[1] < b[1]) {
			best[k[0]] = k
		}
	}
	out := make([]Work, 0, len(best))
	for unit, k := range best {
		out = append(out, Work{Unit: p.units.names[unit], Before: all[k] - after[k], After: after[k], Projected: after[k]})
	}
	slices.SortFunc(out, func(a, b Work) int {
		if a.Unit < b.Unit {
			return -1
		}
		return 1
	})
	return out
}
