package metric

import (
	"time"

	"github.com/mcpflood/mcpflood/internal/latency"
)

// Set is every metric over one selection of a run. The zero value is ready for
// use, not concurrently, and must not be copied after its first sample.
type Set struct {
	sums        [count]float64
	values      [count]*float64
	times       [count]latency.Recorder
	populations [populations]float64
}

// Sum is a counter's sum so far.
func (s *Set) Sum(id ID) float64 { return s.sums[id] }

// Times holds a time's samples.
func (s *Set) Times(id ID) *latency.Recorder { return &s.times[id] }

// Count adds to a counter.
func (s *Set) Count(id ID, n float64) {
	mustBe(id, Counter)
	s.sums[id] += n
}

// Time adds a sample to a time; censored if the time is only known to be at
// least d.
func (s *Set) Time(id ID, d time.Duration, censored bool) {
	mustBe(id, Time)
	if censored {
		s.times[id].Censor(d)
	} else {
		s.times[id].Record(d)
	}
}

func mustBe(id ID, k Kind) {
	if defs[id].Kind != k {
		panic("metric: invariant: " + id.String() + " is used as what it is, a " + defs[id].Kind.String())
	}
}

// Selector picks samples whose tags have the given values; the zero Selector
// picks all.
type Selector struct {
	names [numTags]bool
	want  Tags
}

func (t Tags) all() [numTags]string {
	return [10]string{t.Style, t.Phase, t.Tool, t.Instance, t.HTTP, t.Protocol, t.Scenario, t.Profile, t.Grade, t.Kind}
}

func (s Selector) isZero() bool { return s == Selector{} }

func (s Selector) matches(t Tags) bool {
	want, have := s.want.all(), t.all()
	for i, on := range s.names {
		if on && want[i] != have[i] {
			return false
		}
	}
	return true
}

// namesKind holds when the selector asks for a kind.
func (s Selector) namesKind() bool { return s.names[numTags-1] }

// Registry holds the metrics of a run: over all samples, and over each
// selection that a threshold asks for. It is not safe for concurrent use.
type Registry struct {
	whole  Set
	picked map[Selector]*Set
	blind  [count]bool
}

// NewRegistry makes a registry that can answer the thresholds.
func NewRegistry(thresholds []Threshold) *Registry {
	r := &Registry{picked: map[Selector]*Set{}}
	for _, t := range thresholds {
		if !t.selector.isZero() {
			r.picked[t.selector] = &Set{}
		}
	}
	return r
}

// Whole is the metrics over all samples.
func (r *Registry) Whole() *Set { return &r.whole }

func (r *Registry) each(t Tags, f func(*Set)) {
	f(&r.whole)
	for sel, set := range r.picked {
		if sel.matches(t) {
			f(set)
		}
	}
}

// Count adds to a counter.
func (r *Registry) Count(id ID, t Tags, n float64) {
	if n != 0 {
		r.each(t, func(s *Set) { s.Count(id, n) })
	}
}

// Overlay adds to a counter what is already in it under another kind: only a
// selector that names the kind sees it.
func (r *Registry) Overlay(id ID, t Tags, n float64) {
	for sel, set := range r.picked {
		if sel.namesKind() && sel.matches(t) {
			set.Count(id, n)
		}
	}
}

// Time adds a sample to a time.
func (r *Registry) Time(id ID, t Tags, d time.Duration, censored bool) {
	r.each(t, func(s *Set) { s.Time(id, d, censored) })
}

// Set fixes a metric that is one figure.
func (r *Registry) Set(id ID, v float64) {
	mustBe(id, Value)
	r.whole.values[id] = &v
}

// Populate adds to a population.
func (r *Registry) Populate(p Population, t Tags, n float64) {
	r.each(t, func(s *Set) { s.populations[p] += n })
}

// Blind makes a metric unknown: nothing could have seen what it counts.
func (r *Registry) Blind(id ID) { r.blind[id] = true }

func (r *Registry) set(sel Selector) *Set {
	if sel.isZero() {
		return &r.whole
	}
	return r.picked[sel]
}
