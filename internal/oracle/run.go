package oracle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mcpflood/mcpflood/history"
)

// undecidedShare is how much of the discriminating signal cuts may stay
// unknown.
const undecidedShare = 0.01

// report puts together what the two passes found.
func (j *judge) report() *Report {
	p := j.p
	j.canary.finish(p.last)
	j.damage.finish()
	unnamed := j.aggregates()
	j.general()
	j.word()
	j.unclaimed()
	r := &Report{
		Run: p.run, Budget: p.budget, Params: p.figures(), Counts: j.counts,
		Canary: j.canary.Canary, Driver: p.driver, Findings: j.found.sorted(),
		Unnamed: unnamed, Unattributed: j.unattributedWork(),
		CutShort: p.cutShort, Duration: p.last, Closed: p.closed,
	}
	for _, src := range p.sources.sorted() {
		if src.declared || src.events > 0 {
			r.Witnesses = append(r.Witnesses, j.seen(src))
		}
	}
	j.conclude(r)
	return r
}

// unclaimed counts the late evidence whose call never began.
func (j *judge) unclaimed() {
	var refs []history.Ref
	for ref := range j.p.orphans.byCall {
		if !j.track.claimed[ref] {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, history.Ref.Compare)
	for _, ref := range refs {
		for _, it := range j.p.orphans.byCall[ref] {
			j.stray(ref, it)
		}
	}
}

func (p *params) figures() Params {
	out := Params{StopWithin: p.stopWithin(), Watch: p.run.Watch, CleanMedian: p.median, UnitMedians: map[string]float64{}}
	for _, src := range p.sources {
		if src.worked >= workedClean {
			out.Gap = max(out.Gap, src.gap())
		}
	}
	most := int64(0)
	for i := range p.done {
		s := &p.done[i]
		if s.n == 0 {
			continue
		}
		out.UnitMedians[p.units.names[i]] = p.unitMedian(uint16(i))
		if s.n > most {
			most = s.n
			out.UnitsMin, out.UnitsMedian, out.UnitsMax = float64(s.min)/1000, p.unitMedian(uint16(i)), float64(s.max)/1000
		}
	}
	return out
}

func (j *judge) seen(src *source) Seen {
	s := Seen{
		Witness: src.Witness, Events: src.events, Attributed: j.attributed[src.Source], Gaps: src.gapCount,
		Lag: src.lag(), Broken: src.broken,
	}
	if src.useTimes() {
		s.Offset = src.offset
	}
	for _, g := range j.p.gauges {
		if g.source == src.Source {
			s.Gauge = g.summary(j.tally.signalCuts)
			if s.Broken == "" {
				s.Broken = s.Gauge.Why
			}
		}
	}
	return s
}

// unattributedWork is work that fits no attempt. Sources tell of the same work,
// so of each unit the one that shows most counts.
func (j *judge) unattributedWork() map[string]float64 {
	out := map[string]float64{}
	for _, sums := range j.unattributed {
		for unit, v := range sums {
			name := j.p.units.names[unit]
			out[name] = max(out[name], v)
		}
	}
	return out
}

// conclude fixes the run's judgement with its reasons (judging section 6),
// thresholds aside.
func (j *judge) conclude(r *Report) {
	verdict := history.Pass
	for _, f := range r.Findings {
		if v := f.Judgement(false); v != history.Pass {
			verdict = verdict.Worse(v)
			r.Reasons = append(r.Reasons, f.ID+": "+f.Text)
		}
	}
	if why := j.undecided(); len(why) > 0 {
		verdict = verdict.Worse(history.Undecided)
		r.Reasons = append(r.Reasons, why...)
	}
	if r.Driver.Limited {
		r.Reasons = append(r.Reasons, "mcpflood itself was the limit, so times and capacity of this run are not the server's: "+r.Driver.Why)
	}
	if r.CutShort {
		r.Reasons = append(r.Reasons, "the history was cut short: what was still open or watched at its end is not judged")
	}
	if n := j.tally.untold; n > 0 && verdict == history.Pass {
		r.Reasons = append(r.Reasons, fmt.Sprintf("%d of %s stayed unknown: %s", n, plural(j.tally.tells, "cut"), j.why()))
	}
	r.Judgement = verdict
	r.Unseen = j.unseen()
}

// undecided lists why the run cannot pass although nothing failed.
func (j *judge) undecided() (why []string) {
	t := &j.tally
	if t.delivered == 0 && t.judgedCuts == 0 {
		why = append(why, "no call was delivered and no cut judged")
	}
	for i, text := range j.p.run.Cuts {
		switch k := t.clauses[i]; {
		case k == nil || k.fired == 0:
			why = append(why, fmt.Sprintf("--cut %s never fired: its moment comes after the calls' end, its share is too small, or the run too short", text))
		case k.tells > 0 && k.untold == k.tells, k.others > 0 && k.unknown == k.others:
			why = append(why, fmt.Sprintf("all cuts of --cut %s stayed unknown: %s", text, j.why()))
		}
	}
	if t.early > 0 && t.earlyTells == 0 {
		why = append(why, fmt.Sprintf("tool too short for --stop-within %s: a clean call takes %s, so a server that stops and one that does not look alike. Use a longer call, cut earlier, or set a smaller --stop-within", text(j.p.stopWithin()), text(j.p.median)))
	}
	if float64(t.untold) > undecidedShare*float64(t.tells) {
		why = append(why, fmt.Sprintf("%d of %s stayed unknown: %s", t.untold, plural(t.tells, "cut"), j.why()))
	}
	if j.p.orphans.full {
		why = append(why, fmt.Sprintf("more than %d records came after their calls were settled and could not be kept: the log is too late to judge by", maxOrphans))
	}
	return why
}

// why sums up the reasons of unknown attempts, the most frequent one with its
// fix.
func (j *judge) why() string {
	type reason struct {
		id string
		n  int
	}
	var all []reason
	for id, n := range j.tally.unknowns {
		all = append(all, reason{id, n})
	}
	slices.SortFunc(all, func(a, b reason) int { return cmp.Or(-cmp.Compare(a.n, b.n), cmp.Compare(a.id, b.id)) })
	if len(all) == 0 {
		return addWitness
	}
	if all[0].id != reasonNoWitness {
		return j.tally.fixes[all[0].id]
	}
	return "no witness names attempts: " + j.noWitness()
}

// noWitness says what to add, knowing what there is.
func (j *judge) noWitness() string {
	for _, src := range j.p.sources.sorted() {
		if src.Source != wire && src.whole() && src.What == "log" {
			return "log the JSON-RPC id or the traceparent in " + src.Name + " and match it with a group id or trace"
		}
	}
	for _, g := range j.p.gauges {
		if g.why != "" {
			return fmt.Sprintf("the gauge of %s tells nothing (%s); %s", j.p.sources.get(g.source).Name, g.why, addWitness)
		}
	}
	return addWitness
}

// unseen says what a pass cannot exclude with these witnesses.
func (j *judge) unseen() (out []string) {
	effects, work := false, false
	for _, src := range j.p.sources.sorted() {
		effects = effects || src.shows(history.Effect)
		work = work || src.shows(history.Work) && !src.whole()
	}
	t := &j.tally
	if !effects {
		out = append(out, "effects not witnessed: whether a side effect happened after a cut, or twice, cannot be told (add --log-effect or --metric effects=NAME)")
	}
	if t.claims > 0 {
		what := "work that the log does not show"
		if !work {
			what = "work that nothing shows"
		}
		out = append(out, fmt.Sprintf("%s rest on the server's own word that it stopped: %s is not excluded (add --metric inflight=NAME or a labelled work metric)", plural(t.claims, "verdict"), what))
	}
	if n := t.gradeStopped[history.GradeD]; n > 0 {
		out = append(out, fmt.Sprintf("%s rest on an aggregate gauge: single attempts that ran on between two scrapes are not excluded", plural(n, "verdict")))
	}
	if j.p.run.HTTP != "2" && t.signalCuts > 0 {
		out = append(out, "after fin and reset over HTTP/1.1 no message can be seen: what the server still writes goes nowhere")
	}
	if t.untold > 0 {
		out = append(out, fmt.Sprintf("%s are unknown", plural(t.untold, "cut attempt")))
	}
	return out
}
