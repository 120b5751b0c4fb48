package results

import (
	"fmt"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/latency"
	"github.com/mcpflood/mcpflood/internal/metric"
	"github.com/mcpflood/mcpflood/internal/oracle"
)

// assembly puts a summary together from what was judged.
type assembly struct {
	report   *oracle.Report
	feed     *feeder
	whole    *ledger
	manifest Manifest
	strict   bool
}

func (a *assembly) summary(thresholds []metric.Threshold) *Summary {
	r := a.report
	s := &Summary{
		Schema: SummarySchema, Run: a.run(), Verdict: r.Judgement, Reasons: []string{},
		Counts: a.counts(), Times: allTimes(a.feed.reg.Whole()), StopWithin: secondsOrNull(r.Params.StopWithin, r.Params.StopWithin > 0),
		Clean:  Clean{Median: secondsOrNull(r.Params.CleanMedian, r.Params.CleanMedian > 0), Gap: secondsOrNull(r.Params.Gap, r.Params.Gap > 0)},
		Canary: a.canary(),
		Driver: Driver{round(r.Driver.CPUMax), seconds(r.Driver.LatenessP99), r.Driver.OpenFiles, r.Driver.Limited},
		Groups: []Group{}, Survival: []Survival{}, Witnesses: []Witness{}, Findings: []Finding{}, Thresholds: []Threshold{},
	}
	if r.Params.UnitsMedian > 0 {
		s.Clean.Units = ptr(round(r.Params.UnitsMedian))
	}
	b := a.whole.bill(r)
	b.measure(a.feed.reg)
	s.Work, s.Cost, s.Effectiveness, s.EffectivenessN = b.work, b.cost, b.effectiveness, b.n
	a.groups(s)
	for _, w := range r.Witnesses {
		s.Witnesses = append(s.Witnesses, Witness{Visible(w.What), Visible(w.Name), w.Grade, w.Events, w.Attributed})
	}
	for _, f := range r.Findings {
		s.Findings = append(s.Findings, finding(f))
	}
	a.verdict(s, thresholds)
	return s
}

func (a *assembly) run() Run {
	r := a.report.Run
	run := Run{
		ID: Visible(r.ID), Seed: r.Seed, Started: r.Started, Duration: seconds(a.report.Duration), Command: Opt(a.manifest.Command),
		Scenario: Opt(r.Scenario), Targets: []string{}, HTTP: Opt(r.HTTP), Protocol: Opt(r.Protocol), Version: Opt(r.Version),
	}
	for _, t := range r.Targets {
		run.Targets = append(run.Targets, Visible(t))
	}
	if a.manifest.Host != (Host{}) {
		run.Host = ptr(a.manifest.Host)
	}
	return run
}

func (a *assembly) counts() Counts {
	c := a.report.Counts
	out := Counts{
		Calls: ptr(c.Calls), Delivered: ptr(c.Delivered), Failed: ptr(c.Failed), Attempts: c.Attempts, Reissues: ptr(c.Reissues),
		PlannedCuts: c.PlannedCuts, Cuts: c.Cuts, MissedCuts: ptr(c.MissedCuts), DroppedArrivals: ptr(c.DroppedArrivals),
		Abandoned: ptr(c.Abandoned), ToolErrors: c.ToolErrors,
		PostCutEmissions: c.PostCutEmissions, PostCutBytes: c.PostCutBytes, StrayMessages: c.StrayMessages,
		Evidence: &Evidence{c.Attributed, c.Unattributed, c.Ambiguous, c.Foreign, c.Late},
	}
	for v, n := range c.Verdicts {
		if p := out.Verdicts.of(v); p != nil {
			*p = n
		}
	}
	out.effects(a.report, effects{c.Effects, c.EffectsAfterCut, c.EffectsInRace, c.DuplicateEffects})
	return out
}

// effects stay null where no witness can see one.
func (c *Counts) effects(r *oracle.Report, e effects) {
	if shows(r, history.Effect) {
		c.Effects, c.EffectsAfterCut, c.EffectsInRace, c.DuplicateEffects = ptr(e.all), ptr(e.afterCut), ptr(e.inRace), ptr(e.duplicate)
	}
}

func allTimes(s *metric.Set) map[string]Times {
	out := map[string]Times{}
	for _, d := range metric.Defs() {
		if d.Kind == metric.Time {
			out[d.Name] = statistics(s.Times(d.ID))
		}
	}
	return out
}

func statistics(r *latency.Recorder) Times {
	get := func(v latency.Value, ok bool) *float64 { return secondsOrNull(v.Time, ok) }
	return Times{
		Count: r.Count(), Censored: r.Censored(), Min: get(r.Min()), Mean: get(r.Mean()), P50: get(r.Percentile(50)), P90: get(r.Percentile(90)),
		P95: get(r.Percentile(95)), P99: get(r.Percentile(99)), P999: get(r.Percentile(99.9)), Max: get(r.Max()),
	}
}

func (a *assembly) canary() Canary {
	c := a.report.Canary
	var r latency.Recorder
	for _, d := range c.Latencies {
		r.Record(d)
	}
	t := statistics(&r)
	return Canary{c.Probes, c.Failures, t.P50, t.P99, seconds(c.LongestOutage)}
}

func (a *assembly) groups(s *Summary) {
	for _, key := range a.feed.sortedGroups() {
		g := a.feed.groups[key]
		counts := g.counts
		counts.effects(a.report, g.effects)
		b := g.ledger.bill(a.report)
		s.Groups = append(s.Groups, Group{
			Tags: key, Counts: counts, Times: allTimes(&g.set), Work: b.work, Cost: b.cost, Effectiveness: b.effectiveness,
		})
		if p := points(&g.survival); len(p) > 0 {
			s.Survival = append(s.Survival, Survival{key.Style, key.Phase, p})
		}
	}
}

func finding(f oracle.Finding) Finding {
	where := Where{Opt(f.Where.Style.String()), Opt(f.Where.Phase.String()), Opt(Visible(f.Where.Tool)), Opt(Visible(f.Where.Instance))}
	return Finding{
		ID: f.ID, Severity: f.Severity, Text: Visible(f.Text), Where: where, Count: f.Count,
		Attempts: append([]history.Ref{}, f.Attempts...), Evidence: cites(f.Evidence),
	}
}

// verdict adds to the oracle's judgement what thresholds and strictness make of
// the run, and says why.
func (a *assembly) verdict(s *Summary, thresholds []metric.Threshold) {
	r := a.report
	say := func(format string, args ...any) { s.Reasons = append(s.Reasons, Visible(fmt.Sprintf(format, args...))) }
	for _, text := range r.Reasons {
		say("%s", text)
	}
	for _, t := range thresholds {
		res := a.feed.reg.Evaluate(t, r.Duration)
		s.Thresholds = append(s.Thresholds, Threshold{Visible(res.Metric), Visible(res.Expr), res.OK, roundOrNull(res.Value)})
		switch {
		case res.OK == nil:
			s.Verdict = s.Verdict.Worse(history.Undecided)
			say("threshold %s is unknown: %s", t, res.Why)
		case !*res.OK && res.AtLeast:
			s.Verdict = history.Fail
			say("threshold %s is missed: the figure is at least %s, and open at the end", t, digits(*res.Value, 5))
		case !*res.OK:
			s.Verdict = history.Fail
			say("threshold %s is missed: the figure is %s", t, digits(*res.Value, 5))
		}
	}
	if a.strict {
		for _, f := range r.Findings {
			if f.Severity != history.SeverityFail {
				s.Verdict = s.Verdict.Worse(f.Judgement(true))
				say("strict: %s %s counts as %s", f.Severity, f.ID, f.Judgement(true))
			}
		}
	}
	for _, text := range r.Unseen {
		say("%s%s", notExcluded, text)
	}
}
