// Package cost turns judged attempts into work and money: what was useful, what
// was lost with a cut stream, what was spent after the user had left. It is
// arithmetic and holds no attempt.
package cost

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/oracle"
)

// Units that need no witness to count them. A step is what a witness counts
// unless it says otherwise.
const (
	Step   = "step"
	Second = "second" // of server time: request sent to the last witnessed work
	Call   = "call"   // 1 for each attempt the server saw
)

// Class is what became of an attempt's work.
type Class uint8

// The classes. Each attempt is in one.
const (
	Useful    Class = iota // its result was delivered
	CutSignal              // cut and not delivered: before is lost, after run-on
	CutSilent              // before is lost, after unnoticed
	CutOpen                // cut and not delivered, but the server was not told: all lost
	Errored                // it ended in an error
	Abandoned              // ended by us, or not known
)

// ClassOf sorts an attempt.
func ClassOf(j *oracle.Judged) Class {
	switch j.End.Outcome {
	case history.Delivered, history.TaskHandle, history.MoreInput:
		return Useful
	case history.Drained, history.OutcomeNone:
		return Abandoned
	case history.Cut:
		switch j.Class {
		case history.ClassSignal:
			return CutSignal
		case history.ClassSilent:
			return CutSilent
		}
		return CutOpen
	}
	return Errored
}

// Amounts splits work of one unit, or money. The first seven add up to Total;
// RunOnProjected, Duplicate and Counterfactual stand beside the sum.
type Amounts struct {
	Useful, Lost, RunOn, Unnoticed, Errored, Abandoned, Unattributed float64
	// RunOnProjected is RunOn with what attempts that still worked when their
	// watch ended would do to their end.
	RunOnProjected float64
	// Duplicate is work of later attempts of calls of which an earlier attempt
	// ran to its end all the same.
	Duplicate float64
	// Counterfactual is the total a server would have come to that nobody tells
	// of a hang-up: every signal cut works on to a clean attempt's median.
	Counterfactual float64
	Total          float64
}

// sum fills Total.
func (a *Amounts) sum() {
	a.Total = a.Useful + a.Lost + a.RunOn + a.Unnoticed + a.Errored + a.Abandoned + a.Unattributed
}

// add adds b times a price.
func (a *Amounts) add(b Amounts, price float64) {
	a.Useful += b.Useful * price
	a.Lost += b.Lost * price
	a.RunOn += b.RunOn * price
	a.Unnoticed += b.Unnoticed * price
	a.Errored += b.Errored * price
	a.Abandoned += b.Abandoned * price
	a.Unattributed += b.Unattributed * price
	a.RunOnProjected += b.RunOnProjected * price
	a.Duplicate += b.Duplicate * price
	a.Counterfactual += b.Counterfactual * price
	a.sum()
}

// Tally adds up attempts. Its memory is bounded by the number of units.
type Tally struct {
	prices map[string]float64
	units  map[string]*unit
}

// unit is one unit's account.
type unit struct {
	Amounts
	// judged is the set effectiveness speaks of, told the rest of the signal
	// cuts, by how much they had done before the cut.
	judged, told befores
	after        float64 // of judged, projected
}

// befores counts attempts by the work done before their cut, to three digits.
type befores map[float64]int

func (b befores) add(v float64) { b[coarse(v)]++ }

// left is what these attempts would still have done up to the median.
func (b befores) left(median float64) (sum float64, n int) {
	for _, v := range slices.Sorted(maps.Keys(b)) {
		sum += max(0, median-v) * float64(b[v])
		n += b[v]
	}
	return sum, n
}

// coarse keeps three digits of what is not a small whole number, so that the
// number of different values is bounded.
func coarse(v float64) float64 {
	if v == math.Trunc(v) && v < 1000 || v <= 0 {
		return max(v, 0)
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-2)
	return math.Round(v/unit) * unit
}

// NewTally makes an account; prices name the units that are counted beside
// those the witnesses show.
func NewTally(prices map[string]float64) *Tally {
	t := &Tally{prices: prices, units: map[string]*unit{}}
	for name := range prices {
		t.unit(name)
	}
	t.unit(Step)
	return t
}

func (t *Tally) unit(name string) *unit {
	u := t.units[name]
	if u == nil {
		u = &unit{judged: befores{}, told: befores{}}
		t.units[name] = u
	}
	return u
}

// Add adds one attempt.
func (t *Tally) Add(j *oracle.Judged) {
	for _, w := range j.Work {
		t.unit(w.Unit).add(j, w)
	}
	for name, u := range t.units {
		if !slices.ContainsFunc(j.Work, func(w oracle.Work) bool { return w.Unit == name }) {
			u.add(j, derived(name, j))
		}
	}
}

// derived is the work in a unit that no witness counted for this attempt.
func derived(name string, j *oracle.Judged) oracle.Work {
	w := oracle.Work{Unit: name}
	switch name {
	case Call:
		if j.Seen {
			w.Before = 1
		}
	case Second:
		w.Before, w.After = seconds(j)
		w.Projected = w.After
	}
	return w
}

// seconds are an attempt's seconds of server time before and after its cut. A
// time that is an interval counts with its lower end: run-on is a lower bound.
func seconds(j *oracle.Judged) (before, after float64) {
	e := &j.End
	if e.Sent == 0 {
		return 0, 0
	}
	if e.Cut == nil || j.Class == history.ClassNone {
		return max(0, e.Ended-e.Sent).Seconds(), 0
	}
	last := j.LastWork
	if last.IsZero() {
		last = j.FirstStop
	}
	return max(0, e.Cut.C0-e.Sent).Seconds(), max(0, last.Lo-e.Cut.C1).Seconds()
}

func (u *unit) add(j *oracle.Judged, w oracle.Work) {
	switch ClassOf(j) {
	case Useful:
		u.Useful += w.Total()
	case CutSignal:
		u.Lost += w.Before
		u.RunOn += w.After
		u.RunOnProjected += max(w.After, w.Projected)
		if effective(j) {
			u.judged.add(w.Before)
			u.after += max(w.After, w.Projected)
		} else {
			u.told.add(w.Before)
		}
	case CutSilent:
		u.Lost += w.Before
		u.Unnoticed += w.After
	case CutOpen:
		u.Lost += w.Total()
	case Errored:
		u.Errored += w.Total()
	case Abandoned:
		u.Abandoned += w.Total()
	}
	if j.Duplicate {
		u.Duplicate += w.Total()
	}
}

// effective reports whether an attempt is in the set effectiveness speaks of.
func effective(j *oracle.Judged) bool {
	return j.Discriminates && (j.Verdict == history.Stopped || j.Verdict == history.Late || j.Verdict == history.RanOn)
}

// Unattributed adds work that fits no attempt.
func (t *Tally) Unattributed(unit string, n float64) { t.unit(unit).Unattributed += n }

// Line is the account of one unit.
type Line struct {
	Unit   string
	Priced bool
	Amounts
}

// Bill is a finished account.
type Bill struct {
	Lines []Line  // steps first, then by name
	Money Amounts // of the priced units
	// Effectiveness is 1 if every cut stopped at once, 0 if all worked on as if
	// nobody had left, below 0 if they did even more; NaN if it is not known.
	Effectiveness float64
	N             int // attempts it speaks of
}

// Bill closes the account. clean is the median time of a clean attempt, medians
// its work by unit.
func (t *Tally) Bill(clean time.Duration, medians map[string]float64) Bill {
	b := Bill{Effectiveness: math.NaN()}
	for _, name := range slices.SortedFunc(maps.Keys(t.units), byUnit) {
		u := t.units[name]
		a := u.Amounts
		a.sum()
		median := medianOf(name, clean, medians)
		rest, _ := u.told.left(median)
		left, n := u.judged.left(median)
		a.Counterfactual = max(a.Total, a.Total-a.RunOn+rest+left)
		price, priced := t.prices[name]
		b.Lines = append(b.Lines, Line{Unit: name, Priced: priced, Amounts: a})
		if priced {
			b.Money.add(a, price)
		}
		if b.N == 0 && n > 0 && left > 0 {
			b.Effectiveness, b.N = 1-u.after/left, n
		}
	}
	return b
}

func byUnit(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == Step || b != Step && a < b:
		return -1
	}
	return 1
}

func medianOf(name string, clean time.Duration, medians map[string]float64) float64 {
	if m, ok := medians[name]; ok {
		return m
	}
	switch name {
	case Call:
		return 1
	case Second:
		return clean.Seconds()
	}
	return 0
}

// WorkPerCall is the expected time of work a call takes whose every attempt
// takes d and starts from zero, under cuts at a rate of perSecond: when cuts
// stop the work, and when they do not.
func WorkPerCall(d time.Duration, perSecond float64) (honoured, ignored float64) {
	s := d.Seconds()
	if perSecond <= 0 {
		return s, s
	}
	e := math.Exp(perSecond * s)
	return (e - 1) / perSecond, s * e
}
