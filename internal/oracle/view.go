package oracle

import (
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// view is one ended attempt with its evidence sorted for judging. All times are
// run time.
type view struct {
	p   *params
	a   *attempt
	end *history.End
	cut *history.CutDone // nil: not cut
	// limit is c1 + S; wend the end of the watch; horizon the same, or the end
	// of a history that was cut short before it.
	limit, wend, horizon time.Duration
	lossy                bool // evidence was lost: it was too much

	work, effects, completions, stops []*item
	emissions, strays, wrongs         []*item
	lastWork, lastProof               *item // by hi
	firstStop                         *item // by lo
	late                              int
	lateUnclear                       bool
	seen                              bool
}

// place gives items their run times and tells which came late.
func (p *params) place(a *attempt) {
	for i := range a.items {
		it := &a.items[i]
		src := p.sources.get(it.source)
		s := src.span(it)
		if !it.sure {
			s.Lo -= p.widen
			s.Hi += p.widen
		}
		it.lo, it.hi = s.Lo, s.Hi
		if c := a.cut(); c != nil {
			it.late = it.at > c.C1+p.run.Watch+src.settling()
		}
	}
}

func newView(p *params, a *attempt, lossy bool) *view {
	v := &view{p: p, a: a, end: a.end, cut: a.cut(), lossy: lossy}
	if v.cut != nil {
		v.limit = v.cut.C1 + p.stopWithin()
		v.wend = v.cut.C1 + p.run.Watch
		v.horizon = v.wend
		if p.cutShort {
			v.horizon = min(v.wend, p.last)
		}
	}
	for i := range a.items {
		v.sort(&a.items[i])
	}
	return v
}

func (v *view) sort(it *item) {
	v.seen = v.seen || it.source != wire
	switch it.kind {
	case history.Work:
		v.work = append(v.work, it)
		v.lastWork = later(v.lastWork, it)
	case history.Effect:
		v.effects = append(v.effects, it)
	case history.Completion:
		v.completions = append(v.completions, it)
	case history.Stop:
		v.stops = append(v.stops, it)
		if v.firstStop == nil || it.lo < v.firstStop.lo {
			v.firstStop = it
		}
	case history.Emission:
		v.emissions = append(v.emissions, it)
	case history.Stray:
		v.strays = append(v.strays, it)
	case history.WrongID:
		v.wrongs = append(v.wrongs, it)
	}
	if !proves(it.kind) {
		return
	}
	v.lastProof = later(v.lastProof, it)
	if it.late && it.kind == history.Work {
		v.late++
	}
	if it.late && it.lo <= v.limit && v.limit < it.hi {
		v.lateUnclear = true
	}
}

func later(a, b *item) *item {
	if a == nil || b.hi >= a.hi {
		return b
	}
	return a
}

// unfinished reports whether the history ended before the attempt's watch.
func (v *view) unfinished() bool { return v.horizon < v.wend }

func (v *view) source(it *item) *source { return v.p.sources.get(it.source) }

// discriminates reports whether a server that heard the cut and one that did not
// would differ (judging section 1).
func (v *view) discriminates() bool {
	return v.p.median > 0 && v.p.median-elapsed(v.end, v.cut.C1) > 2*v.p.stopWithin()
}

// beyond is the proof of work, effect or completion past S that comes first.
func (v *view) beyond() *item {
	var first *item
	for _, list := range [][]*item{v.work, v.effects, v.completions} {
		for _, it := range list {
			if it.lo > v.limit && (first == nil || it.lo < first.lo) {
				first = it
			}
		}
	}
	return first
}

// reachedClean reports whether the attempt did as much as the least that a
// clean one did: it ran to its end.
func (v *view) reachedClean() bool {
	type key struct {
		source int
		unit   uint16
	}
	sums := map[key]float64{}
	for _, it := range v.work {
		sums[key{it.source, it.unit}] += it.units
	}
	for k, sum := range sums {
		if fewest, ok := v.p.sources.get(k.source).unitsMin[k.unit]; ok && sum > fewest-1e-9 {
			return true
		}
	}
	return false
}

// atWork reports whether work may still have gone on when the watch ended.
func (v *view) atWork() *item {
	for i := len(v.work) - 1; i >= 0; i-- {
		it := v.work[i]
		if g := v.source(it).gap(); g > 0 && it.hi > v.horizon-2*g {
			return it
		}
	}
	return nil
}

// follows reports whether b came after a: in the order of one source, or surely
// later.
func follows(a, b *item) bool {
	if a.source == b.source {
		return b.seq > a.seq
	}
	return b.lo > a.hi
}

// stopFollows is stop evidence after the attempt's last work.
func (v *view) stopFollows() *item {
	for _, s := range v.stops {
		if v.lastWork == nil || follows(v.lastWork, s) {
			return s
		}
	}
	return nil
}

// stopClaim is stop evidence within S that no later work belies.
func (v *view) stopClaim() *item {
	var best *item
	for _, s := range v.stops {
		if s.hi > v.limit {
			continue
		}
		belied := false
		for _, w := range v.work {
			belied = belied || follows(s, w)
		}
		if !belied && (best == nil || v.source(s).Grade < v.source(best).Grade) {
			best = s
		}
	}
	return best
}

// rested is a source that proves that nothing came in the 2g or more between
// the attempt's last record and the end of its watch.
func (v *view) rested() *source {
	from := v.cut.C1
	if v.lastProof != nil {
		from = max(from, v.lastProof.hi)
	}
	for _, s := range v.stops {
		from = max(from, s.hi)
	}
	var best *source
	for _, src := range v.p.sources.sorted() {
		until := v.horizon
		if v.unfinished() {
			until = min(until, src.confirmed())
		}
		g := src.gap()
		if src.worked >= workedClean && until-from >= 2*g && src.confirmed() >= until &&
			!src.blind(from, until+src.lag()) && (best == nil || src.Grade < best.Grade) {
			best = src
		}
	}
	return best
}

// completed reports whether the attempt ran to its end, by evidence or by its
// result.
func (v *view) completed() bool {
	return len(v.completions) > 0 || v.end.Outcome == history.Delivered || v.reachedClean()
}
