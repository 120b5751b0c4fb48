package results

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/cost"
	"github.com/mcpflood/mcpflood/internal/metric"
	"github.com/mcpflood/mcpflood/internal/oracle"
	"github.com/mcpflood/mcpflood/internal/stats"
)

// DefaultCurrency is what prices are in unless somebody says otherwise.
const DefaultCurrency = "USD"

// Validate reports every problem of the prices at once.
func (p Prices) Validate() error {
	var errs []error
	for _, unit := range slices.Sorted(maps.Keys(p.PerUnit)) {
		x := p.PerUnit[unit]
		if unit == "" || !(x >= 0) || math.IsInf(x, 0) {
			errs = append(errs, fmt.Errorf("price %s=%v: want a unit (step, second, token, call) and an amount of 0 or more", unit, x))
		}
	}
	return errors.Join(errs...)
}

// ledger is the account of a run, or of a group of its attempts.
type ledger struct {
	prices Prices
	tally  *cost.Tally
}

func newLedger(p Prices) *ledger { return &ledger{p, cost.NewTally(p.PerUnit)} }

// bill is a closed account in the form of a summary.
type bill struct {
	work          []Work
	cost          Cost
	effectiveness *float64
	n             int
}

// bill closes the account. What no witness could count is null.
func (l *ledger) bill(r *oracle.Report) bill {
	b := l.tally.Bill(r.Params.CleanMedian, r.Params.UnitMedians)
	counted := shows(r, history.Work)
	out := bill{work: []Work{}, cost: Cost{Currency: Opt(Visible(cmp.Or(l.prices.Currency, DefaultCurrency)))}, n: b.N}
	if !math.IsNaN(b.Effectiveness) {
		out.effectiveness = ptr(round(b.Effectiveness))
	}
	priced, known := false, true
	for _, line := range b.Lines {
		priced = priced || line.Priced
		switch seen := counted || line.Unit == cost.Second || line.Unit == cost.Call; {
		case seen && (line.Priced || line.Unit == cost.Step || line.Total > 0):
			out.work = append(out.work, Work{Visible(line.Unit), amounts(line.Amounts)})
		case !seen && (line.Priced || line.Unit == cost.Step):
			out.work = append(out.work, Work{Unit: Visible(line.Unit)})
			known = known && !line.Priced
		}
	}
	if priced && known {
		out.cost.Amounts = amounts(b.Money)
	}
	return out
}

func amounts(a cost.Amounts) Amounts {
	p := func(x float64) *float64 { return ptr(round(x)) }
	return Amounts{
		Useful: p(a.Useful), Lost: p(a.Lost), RunOn: p(a.RunOn), RunOnProjected: p(a.RunOnProjected), Unnoticed: p(a.Unnoticed),
		Errored: p(a.Errored), Abandoned: p(a.Abandoned), Unattributed: p(a.Unattributed), Duplicate: p(a.Duplicate),
		Total: p(a.Total), Counterfactual: p(a.Counterfactual),
	}
}

// measure feeds work and money to their metrics.
func (b *bill) measure(reg *metric.Registry) {
	for _, w := range b.work {
		if w.Unit == cost.Step {
			w.Amounts.measure(reg, metric.WorkUnits)
		}
	}
	b.cost.Amounts.measure(reg, metric.Cost)
	if b.effectiveness != nil {
		reg.Set(metric.Effectiveness, *b.effectiveness)
	}
}

func (a Amounts) measure(reg *metric.Registry, id metric.ID) {
	if a.Total == nil {
		reg.Blind(id)
		return
	}
	for _, part := range []struct {
		kind string
		n    *float64
	}{{"useful", a.Useful}, {"lost", a.Lost}, {"run_on", a.RunOn}, {"unnoticed", a.Unnoticed}, {"errored", a.Errored}, {"abandoned", a.Abandoned}, {"unattributed", a.Unattributed}} {
		reg.Count(id, metric.Tags{Kind: part.kind}, *part.n)
	}
	reg.Overlay(id, metric.Tags{Kind: "run_on_projected"}, *a.RunOnProjected)
	reg.Overlay(id, metric.Tags{Kind: "duplicate"}, *a.Duplicate)
	reg.Overlay(id, metric.Tags{Kind: "counterfactual"}, *a.Counterfactual)
}

// survive adds a signal cut whose end of work is known, or known not to have
// come yet.
func survive(s *stats.Survival, j *oracle.Judged) {
	if j.Class == history.ClassSignal && j.Timed {
		s.Add(j.TimeToStop, j.Censored)
	}
}

func points(s *stats.Survival) [][2]float64 {
	var out [][2]float64
	for _, p := range s.Curve() {
		out = append(out, [2]float64{seconds(p.T), math.Round(p.Share*1e6) / 1e6})
	}
	return out
}
