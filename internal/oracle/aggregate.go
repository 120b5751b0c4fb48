package oracle

import (
	"fmt"

	"github.com/mcpflood/mcpflood/history"
)

// convict is what claims about the whole prove: at least so many attempts ran
// on, without a name.
type convict struct {
	attempts int
	source   int
	text     string
	cite     Cite
}

// aggregates adds what gauges and counters without identities prove. The excess
// goes first to attempts that ids leave unknown; what is left over contradicts
// the verdicts by id, which stay.
func (j *judge) aggregates() (unnamed int) {
	worst := convict{}
	for _, c := range append(j.gaugeConvicts(), j.wholeConvicts()...) {
		if c.attempts > worst.attempts {
			worst = c
		}
	}
	j.wholeEffects()
	if worst.attempts == 0 {
		return 0
	}
	open := 0
	for _, v := range j.tally.signal {
		open += v[history.Unknown]
	}
	unnamed = min(worst.attempts, open)
	rest := min(worst.attempts-unnamed, j.tally.stopped())
	j.counts.Verdicts[history.RanOn] += unnamed
	j.counts.Verdicts[history.Unknown] -= unnamed

	// Silence of a meter or a trace outranks a gauge: neither wins.
	weak := j.tally.gradeStopped[history.GradeC] + j.tally.gradeStopped[history.GradeD]
	shown := unnamed + min(rest, weak)
	if shown > 0 {
		x := j.found.get(idRunOn, history.SeverityFail)
		x.Count += shown
		x.Text = worst.text
		x.cite(worst.cite)
	}
	if rest > 0 {
		x := j.found.whole(idContradict, history.SeverityFail, rest, fmt.Sprintf(
			"%s that were judged stopped by id or by silence are at odds with %s: %s. One of the two witnesses is wrong; a log that says \"cancelled\" while the work goes on is the usual case. Verdicts by id stand; believe the one that counts real work.",
			plural(rest, "attempt"), j.p.sources.get(worst.source).Name, worst.text), worst.cite)
		x.UndecidedOnly = shown == 0
	}
	return unnamed
}

func (t *tally) stopped() int {
	n := 0
	for _, v := range t.signal {
		n += v[history.Stopped]
	}
	return n
}

func (j *judge) gaugeConvicts() (out []convict) {
	for _, g := range j.p.gauges {
		if !g.tells() || g.zombies == 0 {
			continue
		}
		src, x := j.p.sources.get(g.source), g.worst
		out = append(out, convict{
			attempts: g.zombies, source: g.source,
			text: fmt.Sprintf("the in-flight gauge of %s stood at %s with at most %s that may still be at work, in two scrapes in a row: at least %s ran on after the hang-up",
				src.Name, number(x.value-g.base), plural(x.hi, "call"), plural(g.zombies, "attempt")),
			cite: Cite{Source: g.source, Name: src.Name, Kind: history.Work, Lo: x.t0, Hi: x.t1,
				Text: fmt.Sprintf("in flight %s, baseline %s, between %d and %d expected", number(x.value), number(g.base), x.lo, x.hi)},
		})
	}
	return out
}

// wholeConvicts lists the excess of work and of completions.
func (j *judge) wholeConvicts() (out []convict) {
	for _, w := range j.p.wholes {
		for _, b := range w.bins {
			if b.kind == history.Effect || b.excess() == 0 {
				continue
			}
			what := "units of work"
			switch {
			case b.kind == history.Completion:
				what = "completions"
			case b.step > 0:
				what = fmt.Sprintf("times step %d", b.step)
			}
			out = append(out, convict{
				attempts: max(b.attempts(), 1), source: w.source,
				text: fmt.Sprintf("%s shows %s %s, %s more than all calls of the run are entitled to: at least %s ran on after the hang-up",
					j.p.sources.get(w.source).Name, number(b.observed), what, number(b.excess()), plural(max(b.attempts(), 1), "attempt")),
				cite: j.excessCite(w, b),
			})
		}
	}
	return out
}

// wholeEffects reports effects that no call of the run is entitled to.
func (j *judge) wholeEffects() {
	for _, w := range j.p.wholes {
		for _, b := range w.bins {
			if b.kind != history.Effect || b.excess() == 0 {
				continue
			}
			n := max(int(b.excess()+0.5), 1)
			x := j.found.get(idEffect, history.SeverityFail)
			x.Count += n
			j.counts.EffectsAfterCut += n
			x.cite(j.excessCite(w, b))
			if x.Text == "" {
				x.Text = fmt.Sprintf("%s shows %s side effects, %s more than all calls of the run are entitled to: at least %s came after a hang-up. Check for the cancellation once more right before the effect.",
					j.p.sources.get(w.source).Name, number(b.observed), number(b.excess()), plural(n, "effect"))
			}
		}
	}
}

func (j *judge) excessCite(w *wholeWatch, b *bin) Cite {
	return Cite{Source: w.source, Name: j.p.sources.get(w.source).Name, Kind: b.kind, Lo: 0, Hi: j.p.last,
		Text: fmt.Sprintf("%s counted, %s by entitlement", number(b.observed), number(b.entitled))}
}
