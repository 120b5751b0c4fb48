package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

const (
	// wire is the source number of what the client itself sees.
	wire = 0
	// maxGaps bounds the gaps kept of one source; later ones widen the last.
	maxGaps = 1024
	// workedClean is in how many clean attempts a source must have shown work
	// before its silence proves anything.
	workedClean = 3
	// maxWaiting bounds the clean attempts that wait for a source to prove that
	// it has told all of them.
	maxWaiting = 1024
)

// source is one witness and what the whole run tells about it.
type source struct {
	history.Witness
	declared bool
	events   int
	gaps     []history.Gap
	gapCount int
	shown    map[history.Kind]int // on clean calls before the load

	timed    bool // some record carried the source's own time
	untimed  bool // some record on a clean attempt carried none
	offset   Interval
	placed   bool // offset is set
	lateness time.Duration
	cadence  cadence

	waiting    []*undisturbed // clean attempts it may not have told all of yet
	worked     int            // clean attempts in which it showed work
	unitsMin   map[uint16]float64
	ahead      float64 // fewest units that came before the effect in a clean attempt
	aheadKnown bool

	ownLatest  time.Duration // latest own time of a record
	ownSeen    bool
	sentLatest time.Duration // latest send of an attempt that it showed
	broken     string
}

// cadence keeps the largest gaps a source left in clean attempts, by its own
// times and by arrival; which of the two counts is known at the end.
type cadence struct {
	own, arrival gaps
}

type gaps struct{ first, between, last time.Duration }

func (g *gaps) add(sent, result time.Duration, spans []Interval) {
	for i, s := range spans {
		if i == 0 {
			g.first = max(g.first, s.Hi-sent)
		} else {
			g.between = max(g.between, s.Hi-spans[i-1].Lo)
		}
		if i == len(spans)-1 {
			g.last = max(g.last, result-s.Lo)
		}
	}
}

// ourClock reports whether the times of its records are our own: of what the
// wire shows, and of scrapes. They need no offset.
func (s *source) ourClock() bool { return s.Source == wire || s.What == "metrics" }

// useTimes reports whether the times of its records can be placed on our clock.
func (s *source) useTimes() bool {
	return s.timed && (s.ourClock() || s.placed && s.offset.Lo <= s.offset.Hi)
}

// clockBroken reports whether its records contradict any one clock offset.
func (s *source) clockBroken() bool { return s.placed && s.offset.Lo > s.offset.Hi }

// lag is L: how long its evidence may take to arrive.
func (s *source) lag() time.Duration { return s.Poll + s.lateness }

// settling is how long after a watch its evidence is waited for.
func (s *source) settling() time.Duration {
	if s.What == "metrics" {
		return s.lag() + 2*s.Poll
	}
	return s.lag()
}

// span places a record's time in run time. Nothing is made after it arrived.
func (s *source) span(it *item) Interval {
	switch {
	case s.Source == wire && !it.timed:
		return Interval{it.lo, it.hi} // we were there
	case it.timed && s.useTimes():
		v := Interval{it.lo + s.offset.Lo, min(it.hi+s.offset.Hi, it.at)}
		v.Lo = min(v.Lo, v.Hi)
		return v
	case it.timed:
		return Interval{it.at - s.lag(), it.at}
	}
	return Interval{it.lo - s.lag(), it.hi}
}

// gap is g: the largest gap it left in clean attempts; 0: not known.
func (s *source) gap() time.Duration {
	if s.worked == 0 {
		return 0
	}
	g, l := s.cadence.arrival, s.lag()
	if s.useTimes() && !s.untimed {
		g = s.cadence.own
		return max(g.first+s.offset.Hi, g.between, g.last-s.offset.Lo, 1)
	}
	return max(g.first, g.between+l, g.last+l, 1)
}

// confirmed is up to when silence counts: the source has delivered a record
// made later than that.
func (s *source) confirmed() time.Duration {
	if s.ownSeen && s.useTimes() {
		return max(s.sentLatest, s.ownLatest+s.offset.Lo)
	}
	return s.sentLatest
}

// blind reports whether the source could not see all of [from, to].
func (s *source) blind(from, to time.Duration) bool {
	return slices.ContainsFunc(s.gaps, func(g history.Gap) bool {
		return g.From <= to && (g.To == 0 || g.To >= from)
	})
}

func (s *source) addGap(g history.Gap) {
	s.gapCount++
	if len(s.gaps) < maxGaps {
		s.gaps = append(s.gaps, g)
		return
	}
	last := &s.gaps[maxGaps-1]
	last.From = min(last.From, g.From)
	if last.To != 0 && (g.To == 0 || g.To > last.To) {
		last.To = g.To
	}
}

// shows reports whether the source declares a kind.
func (s *source) shows(k history.Kind) bool { return slices.Contains(s.Shows, k) }

// whole reports whether its records are claims about all attempts together.
func (s *source) whole() bool { return s.Source != wire && !s.ByAttempt && !s.ByCall }

// place narrows the clock offset: a record of a delivered attempt was made
// between its send and its result.
func (s *source) place(it *item, sent, result time.Duration) {
	if s.ourClock() {
		return
	}
	v := Interval{sent - it.hi, result - it.lo}
	if s.placed {
		v = Interval{max(s.offset.Lo, v.Lo), min(s.offset.Hi, v.Hi)}
	}
	s.offset, s.placed = v, true
}

// sources are all witnesses of a run by number.
type sources map[int]*source

func (m sources) get(n int) *source {
	s := m[n]
	if s == nil {
		s = &source{Witness: history.Witness{Source: n, What: "undeclared", Name: fmt.Sprintf("source %d", n), Grade: history.GradeD, ByAttempt: true}}
		if n == wire {
			s.Witness = history.Witness{What: "wire", Name: "wire", Grade: history.GradeA, ByAttempt: true, Timed: true}
		}
		s.shown, s.unitsMin = map[history.Kind]int{}, map[uint16]float64{}
		m[n] = s
	}
	return s
}

func (m sources) declare(w *history.Witness) {
	s := m.get(w.Source)
	s.Witness, s.declared = *w, true
}

// sorted lists the sources by number.
func (m sources) sorted() []*source {
	out := make([]*source, 0, len(m))
	for _, s := range m {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *source) int { return cmp.Compare(a.Source, b.Source) })
	return out
}

// settling is the longest of all sources.
func (m sources) settling() time.Duration {
	l := time.Duration(0)
	for _, s := range m {
		l = max(l, s.settling())
	}
	return l
}

func (s *source) cite(it *item) Cite {
	return Cite{Source: s.Source, Name: s.Name, Line: it.line, Kind: it.kind, Lo: it.lo, Hi: it.hi, Text: it.text}
}
