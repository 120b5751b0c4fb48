package oracle

import (
	"slices"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// Ids of findings (judging section 6).
const (
	idRunOn       = "run-on"
	idEffect      = "effect-after-cut"
	idEmission    = "emission"
	idStray       = "stray-message"
	idWrongID     = "wrong-id"
	idSpurious    = "spurious-cancel"
	idCancelAny   = "cancel-any"
	idSlotLeak    = "slot-leak"
	idServerDown  = "server-down"
	idUnnoticed   = "unnoticed"
	idLate        = "late"
	idDuplicate   = "duplicate-effect"
	idNoise       = "noise"
	idBuffered    = "buffered"
	idReplay      = "replay"
	idHalfClose   = "half-close"
	idHalfError   = "half-close-error"
	idWrongSignal = "hung-up-on-wrong-signal"
	idClock       = "clock"
	idContradict  = "contradiction"
	idGap         = "witness-gap"
	idAmbiguous   = "ambiguous"
)

// effects counts an attempt's side effects and where they stand to its cut.
// Sources tell of the same effects, so the one that shows most counts.
func (j *judge) effects(v *view, out *verdictOf) {
	type count struct{ all, after, race int }
	by := map[int]*count{}
	signal := v.cut != nil && v.cut.Style.Class() == history.ClassSignal
	for _, it := range v.effects {
		c := by[it.source]
		if c == nil {
			c = &count{}
			by[it.source] = c
		}
		c.all++
		switch {
		case !signal:
		case v.effectAfter(it):
			if c.after++; len(out.notes) == 0 {
				out.notes = append(out.notes, note{idEffect, v.source(it).cite(it)})
			}
		case it.hi > v.cut.C1 && v.end.Outcome != history.Delivered:
			c.race++
		}
	}
	for _, c := range by {
		out.Effects = max(out.Effects, c.all)
		out.EffectsAfterCut = max(out.EffectsAfterCut, c.after)
		out.EffectsInRace = max(out.EffectsInRace, c.race)
	}
}

// effectAfter reports whether an effect of a signal cut surely came after it.
func (v *view) effectAfter(it *item) bool {
	if it.lo > v.limit {
		return true
	}
	for _, s := range v.stops {
		if s.source == it.source && s.seq < it.seq {
			return true
		}
	}
	src := v.source(it)
	if it.hi <= v.cut.C1 || v.end.Outcome == history.Delivered || !src.aheadKnown || v.lossy {
		return false
	}
	ahead := 0.0
	for _, w := range v.work {
		if w.source == it.source && w.seq < it.seq {
			ahead += w.units
		}
	}
	return ahead < src.ahead-1e-9 && !src.blind(v.a.start.Begun, it.hi+src.lag())
}

// duplicates counts the effects of a call beyond those that one clean attempt
// has, once we issued it again.
func (j *judge) duplicates(c *call, out []verdictOf) {
	if len(c.attempts) < 2 {
		return
	}
	type done struct {
		it      *item
		attempt int
	}
	by := map[int][]done{}
	for i, a := range c.attempts {
		for k := range a.items {
			if it := &a.items[k]; it.kind == history.Effect {
				by[it.source] = append(by[it.source], done{it, i})
			}
		}
	}
	for _, src := range j.p.sources.sorted() {
		list := by[src.Source]
		slices.SortFunc(list, func(a, b done) int { return int(a.it.seq - b.it.seq) })
		keyed := !slices.ContainsFunc(list, func(d done) bool { return d.it.key == "" })
		keys := map[string]int64{}
		extra := make([]int, len(out))
		for _, d := range list {
			key, allowed := "", j.p.effects
			if keyed {
				key, allowed = d.it.key, 1
			}
			if keys[key]++; keys[key] > allowed {
				if extra[d.attempt]++; extra[d.attempt] > out[d.attempt].DuplicateEffects {
					out[d.attempt].DuplicateEffects++
					out[d.attempt].notes = append(out[d.attempt].notes, note{idDuplicate, src.cite(d.it)})
				}
			}
		}
	}
}

// messages counts what the wire showed that should not be there.
func (j *judge) messages(v *view, out *verdictOf) {
	w := j.p.sources.get(wire)
	for _, it := range v.strays {
		out.Strays++
		out.notes = append(out.notes, note{idStray, w.cite(it)})
	}
	for _, it := range v.wrongs {
		out.Strays++
		out.WrongIDs++
		out.notes = append(out.notes, note{idWrongID, w.cite(it)})
	}
	if v.cut == nil {
		return
	}
	if v.cut.Style.Class() != history.ClassOpen {
		for _, it := range v.emissions {
			out.Emissions++
			out.notes = append(out.notes, note{idEmission, w.cite(it)})
		}
		return
	}
	v.answers(out)
}

// answers sorts the messages after an open cut: the client still listens, so
// they count only after the attempt's own stop; one error that says so is a
// note. A message was read later than it was sent: what was under way, or lay
// unread because we were late, when the server stopped does not follow it.
func (v *view) answers(out *verdictOf) {
	after := v.end.After
	refused := after != nil && after.Result != 0 && after.IsError
	stop := time.Duration(-1)
	for _, s := range v.stops {
		if stop < 0 || s.hi < stop {
			stop = s.hi
		}
	}
	w := v.p.sources.get(wire)
	for i, it := range v.emissions {
		switch last := i == len(v.emissions)-1; {
		case last && refused:
			out.notes = append(out.notes, note{idHalfError, w.cite(it)})
		case stop >= 0 && it.lo > stop+max(slack, v.p.widen):
			out.Emissions++
			out.notes = append(out.notes, note{idEmission, w.cite(it)})
		}
	}
}
