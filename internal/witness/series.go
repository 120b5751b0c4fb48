package witness

import (
	"fmt"
	"math"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

const (
	// maxSeries bounds the series of one witness that are followed from scrape
	// to scrape.
	maxSeries = 20_000
	// maxEffects bounds the records one series gives for one scrape; a counter
	// that leaps further is no count of effects.
	maxEffects = 100
)

// series follows the selected series from scrape to scrape: a pure machine.
type series struct {
	nonce     history.Nonce
	selectors []selector
	prev      map[string]followed // by role and series, of the scrape before
	before    time.Duration       // when that scrape began
	scraped   bool                // there was one
	named     map[string]bool     // roles of which a series named an attempt of ours
	met       []bool              // selectors that picked anything yet
}

// followed is one series as a scrape had it.
type followed struct {
	value   float64
	counter bool
	named   bool // it names an attempt, of this run or another
}

func newSeries(n history.Nonce, s []selector) *series {
	return &series{nonce: n, selectors: s, named: map[string]bool{}, met: make([]bool, len(s))}
}

// reading is what one scrape says.
type reading struct {
	values   map[string]float64 // aggregates by role; of a role without series 0
	evidence []history.Evidence
	moved    map[history.Kind]bool // aggregates that rose
	gaps     []string              // why what lies between the two scrapes was not seen
}

// read takes the series of a scrape made in [t0, t1]. Series that name an
// attempt become evidence: what a counter rose by since the scrape before, a
// gauge that is not zero now. All other series of a role are summed up.
func (s *series) read(all []sample, t0, t1 time.Duration) reading {
	out := reading{values: map[string]float64{}, moved: map[history.Kind]bool{}}
	next := make(map[string]followed, len(s.prev))
	anonymous := map[string]bool{}
	over := 0
	for i, sel := range s.selectors {
		picked := sel.pick(all)
		s.met[i] = s.met[i] || len(picked) > 0
		// What does not exist yet counts 0: exporters make a labelled series
		// when it is first counted.
		out.values[sel.role] += 0
		for _, m := range picked {
			text := m.String()
			key := sel.role + " " + text
			if _, twice := next[key]; twice {
				continue
			}
			if len(next) >= maxSeries {
				over++
				continue
			}
			who := s.who(m)
			f := followed{m.value, sel.role != roleInflight, who.by != "" || who.foreign}
			next[key] = f
			old, known := s.prev[key]
			if f.counter && f.value < old.value {
				old.value = 0 // it began again
			}
			if f.named {
				s.named[sel.role] = s.named[sel.role] || who.by != ""
				out.evidence = append(out.evidence, s.evidence(sel, who, text, old.value, m.value, !known, t0, t1)...)
				continue
			}
			anonymous[sel.role] = true
			out.values[sel.role] += m.value
			if s.scraped && m.value > old.value {
				out.moved[sel.kind] = true
			}
		}
	}
	for role := range s.named {
		if !anonymous[role] {
			delete(out.values, role) // its evidence is by attempt, a zero would be a claim
		}
	}
	if n := s.resets(next); n > 0 {
		out.gaps = append(out.gaps, fmt.Sprintf("counter reset: %d series fell or vanished", n))
	}
	if over > 0 {
		out.gaps = append(out.gaps, fmt.Sprintf("%d series beyond the first %d were not followed", over, maxSeries))
	}
	s.prev, s.before, s.scraped = next, t0, true
	return out
}

// resets counts the counters that fell since the scrape before, and those that
// vanished. One that names an attempt may be dropped once that is over.
func (s *series) resets(next map[string]followed) int {
	n := 0
	for key, old := range s.prev {
		now, ok := next[key]
		if old.counter && now.value < old.value && (ok || !old.named) {
			n++
		}
	}
	return n
}

// ranks orders the identities: the first that a series carries counts.
var ranks = map[string]int{byID: 1, byTrace: 2, byMarker: 3}

// who tells which attempt the labels of a series name.
func (s *series) who(m sample) attribution {
	var best attribution
	for _, l := range m.labels {
		a := attribute(s.nonce, identities{l.value, l.value, l.value})
		if a.by != "" && (best.by == "" || ranks[a.by] < ranks[best.by]) {
			best = a
		}
		if best.by == "" {
			best.foreign = best.foreign || a.foreign
		}
	}
	return best
}

// evidence is what a series that names an attempt says: between the start of
// the scrape before and the end of this one a counter rose from old to now; or
// a gauge stands at now during this one. Both times are our own clock's.
func (s *series) evidence(sel selector, who attribution, text string, old, now float64, fresh bool, t0, t1 time.Duration) []history.Evidence {
	e := history.Evidence{
		Kind: sel.kind, Ref: who.ref, By: who.by, Foreign: who.foreign,
		Timed: true, Lo: s.before, Hi: t1,
	}
	if !who.foreign {
		e.Text = text
	}
	n := 1
	switch {
	case sel.role == roleInflight:
		if now <= 0 || who.foreign && !fresh {
			return nil
		}
		e.Lo = t0
	case now <= old:
		return nil
	case sel.role == roleWork:
		e.Units = now - old
	case sel.role == roleEffects:
		n = int(min(max(math.Round(now-old), 1), maxEffects))
	}
	out := make([]history.Evidence, n)
	for i := range out {
		out[i] = e
	}
	return out
}
