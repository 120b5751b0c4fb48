package oracle

import (
	"math"
	"slices"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

const (
	// maxStepBins bounds the step numbers that are told apart.
	maxStepBins = 64
	// maxCleanRecords bounds what is kept of the clean calls' records.
	maxCleanRecords = 1 << 14
	// wholeSlack is the excess, in units, that rounding may cause.
	wholeSlack = 0.01
)

// wholeKinds are the kinds that claims about the whole are compared for, with
// the role that counts them in a scrape.
var wholeKinds = []struct {
	kind history.Kind
	role string
}{{history.Work, "work"}, {history.Completion, "done"}, {history.Effect, "effects"}}

// bin is one thing that is counted: all work, one step of it, completions or
// effects. What is observed of it over the run is compared with what the
// attempts of the run are entitled to.
type bin struct {
	kind history.Kind
	step int // 0: all

	observed float64
	clean    []mark  // of clean calls: what came when
	closing  float64 // during the closing calls
	partial  float64 // what signal cuts were entitled to

	perCall  float64 // of a clean call
	entitled float64
	usable   bool
}

// mark says how many units had come by a time at the latest.
type mark struct {
	at  time.Duration
	sum float64
}

// wholeWatch compares records or counters without identities with the whole run:
// the excess rule of judging section 4.
type wholeWatch struct {
	source  int
	counter bool
	bins    []*bin
	last    map[history.Kind]float64 // counter values of the last scrape
	lastAt  time.Duration            // when it began
	early   bool                     // something was counted before the first call
	many    bool                     // more clean records than are kept
	started bool
	why     string
}

// stages of a run, as far as claims about the whole need them.
type stages struct {
	cleanCalls, closingCalls int
	cleanSent                time.Duration // last clean request complete
	cleanEnd                 time.Duration
	loadBegun                bool
	closingBegun             bool
	failed                   bool // a clean or closing call did not deliver
	whole                    int  // attempts entitled to all that a clean one does
}

func (s *surveyor) whole(source int, counter bool) *wholeWatch {
	for _, w := range s.p.wholes {
		if w.source == source && w.counter == counter {
			return w
		}
	}
	w := &wholeWatch{source: source, counter: counter, last: map[history.Kind]float64{}}
	s.p.wholes = append(s.p.wholes, w)
	if s.begun {
		w.start()
	}
	return w
}

func (w *wholeWatch) start() { w.started = true }

func (w *wholeWatch) bin(kind history.Kind, step int) *bin {
	for _, b := range w.bins {
		if b.kind == kind && b.step == step {
			return b
		}
	}
	b := &bin{kind: kind, step: step}
	w.bins = append(w.bins, b)
	return b
}

// wholeEvidence counts a record that names nobody.
func (s *surveyor) wholeEvidence(at time.Duration, e *history.Evidence) {
	i := slices.IndexFunc(wholeKinds, func(k struct {
		kind history.Kind
		role string
	}) bool {
		return k.kind == e.Kind
	})
	if i < 0 {
		return
	}
	w := s.whole(e.Source, false)
	units := 1.0
	if e.Kind == history.Work {
		units = e.Units
	}
	s.count(w, e.Kind, 0, units, at)
	if e.Kind == history.Work && e.Step > 0 && e.Step <= maxStepBins {
		s.count(w, e.Kind, e.Step, 1, at)
	}
}

// wholeSample counts what counters gained since the scrape before.
func (s *surveyor) wholeSample(r *history.Sample) {
	var w *wholeWatch
	for _, k := range wholeKinds {
		v, ok := r.Values[k.role]
		if !ok {
			continue
		}
		w = s.whole(r.Source, true)
		last, known := w.last[k.kind]
		w.last[k.kind] = v
		switch {
		case !known:
		case v > last:
			s.count(w, k.kind, 0, v-last, w.lastAt)
		case v < last: // the server began anew
			s.count(w, k.kind, 0, v, w.lastAt)
		}
	}
	if w != nil {
		w.lastAt = r.T0
	}
}

func (s *surveyor) count(w *wholeWatch, kind history.Kind, step int, units float64, at time.Duration) {
	if !w.started {
		w.early = true
		return
	}
	b := w.bin(kind, step)
	b.observed += units
	switch {
	case !s.stages.loadBegun && len(b.clean) >= maxCleanRecords:
		w.many = true
	case !s.stages.loadBegun:
		b.clean = append(b.clean, mark{at, b.observed})
	case s.stages.closingBegun:
		b.closing += units
	}
}

// stageOf follows the calls before and after the load.
func (s *surveyor) stageOf(r *history.Start) {
	switch r.Ref.Role {
	case history.Load:
		s.stages.loadBegun = true
	case history.Closing:
		s.stages.closingBegun = true
	}
}

func (s *surveyor) stageEnd(e *history.End) {
	g := &s.stages
	switch e.Ref.Role {
	case history.Clean:
		g.cleanCalls++
		g.cleanSent, g.cleanEnd = max(g.cleanSent, e.Sent), max(g.cleanEnd, e.Ended)
	case history.Closing:
		g.closingCalls++
	default:
		return
	}
	g.failed = g.failed || e.Outcome != history.Delivered || e.IsError
}

// most is the most that one clean call had done of a bin so long after its
// request was complete, as far as records that name nobody can tell.
func (b *bin) most(after time.Duration, g *stages) float64 {
	n, _ := slices.BinarySearchFunc(b.clean, g.cleanSent+after, func(m mark, t time.Duration) int {
		if m.at <= t {
			return -1
		}
		return 1
	})
	if n == 0 || g.cleanCalls == 0 {
		return 0
	}
	return math.Ceil(b.clean[n-1].sum / float64(g.cleanCalls))
}

// countWhole adds what a settled attempt is entitled to.
func (s *surveyor) countWhole(a *attempt) {
	if len(s.p.wholes) == 0 || a.ref().Role == history.Probe {
		return
	}
	e := a.end
	switch {
	case e != nil && e.Outcome == history.Failed && e.Sent == 0:
		return
	case e == nil || e.Cut == nil || e.Outcome == history.Delivered,
		e.Cut.Style.Class() != history.ClassSignal, s.p.showsWork(a):
		s.stages.whole++
		return
	}
	for _, w := range s.p.wholes {
		for _, b := range w.bins {
			b.partial += b.most(elapsed(e, e.Cut.C1)+s.p.stopWithin(), &s.stages)
		}
	}
}

// finishWholes decides which counts can be compared at all.
func (s *surveyor) finishWholes() {
	g := &s.stages
	for _, w := range s.p.wholes {
		src := s.p.sources.get(w.source)
		switch {
		case !w.counter && !src.whole():
			w.why = "its records name attempts"
		case w.early:
			w.why = "it counted before the first call, so others use this server"
		case w.many:
			w.why = "the clean calls showed more records than are kept"
		case g.cleanCalls == 0 || g.closingCalls == 0 || g.failed:
			w.why = "it has no clean calls before and after the load to compare with"
		}
		for _, b := range w.bins {
			if n := len(b.clean); n > 0 && g.cleanCalls > 0 {
				b.perCall = b.clean[n-1].sum / float64(g.cleanCalls)
			}
			b.entitled = float64(g.whole)*b.perCall + b.partial
			closing := b.closing / float64(max(g.closingCalls, 1))
			b.usable = w.why == "" && b.perCall > 0 && math.Abs(closing-b.perCall) < wholeSlack
		}
	}
}

// excess is how much more was counted than the run's attempts are entitled to;
// 0 or less proves nothing.
func (b *bin) excess() float64 {
	if !b.usable || b.observed-b.entitled <= wholeSlack {
		return 0
	}
	return b.observed - b.entitled
}

// attempts is the fewest attempts that explain an excess.
func (b *bin) attempts() int {
	return int(math.Ceil(b.excess()/b.perCall - wholeSlack))
}
