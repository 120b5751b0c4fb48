package main

import (
	"fmt"
	"strings"

	"github.com/mcpflood/mcpflood/results"
)

// sideBySide shows two runs of one plan in columns.
func sideBySide(good, leaky *results.Summary) string {
	var b strings.Builder
	row := func(label, g, l string) { fmt.Fprintf(&b, "%-34s %18s %18s\n", label, g, l) }
	row("", "good server", "leaky server")
	both := func(label string, f func(*results.Summary) string) { row(label, f(good), f(leaky)) }
	both("verdict", func(s *results.Summary) string { return strings.ToUpper(s.Verdict.String()) })
	both("calls", func(s *results.Summary) string { return number(s.Counts.Calls) })
	both("streams cut", func(s *results.Summary) string { return fmt.Sprint(s.Counts.Cuts) })
	both("  stopped", func(s *results.Summary) string { return fmt.Sprint(s.Counts.Verdicts.Stopped) })
	both("  ran on", func(s *results.Summary) string { return fmt.Sprint(s.Counts.Verdicts.RanOn) })
	both("  too late to tell, or finished", func(s *results.Summary) string {
		v := s.Counts.Verdicts
		return fmt.Sprint(v.Unknown + v.Finished + v.Late)
	})
	both("e-mails sent after the user left", func(s *results.Summary) string { return number(s.Counts.EffectsAfterCut) })
	both("steps worked", func(s *results.Summary) string { return steps(s, func(w results.Work) *float64 { return w.Total }) })
	both("  after the user left", func(s *results.Summary) string { return steps(s, func(w results.Work) *float64 { return w.RunOn }) })
	both("bill", func(s *results.Summary) string { return money(s, s.Cost.Total) })
	both("  spent after the user left", func(s *results.Summary) string { return money(s, s.Cost.RunOn) })
	both("effectiveness of cancellation", func(s *results.Summary) string {
		if s.Effectiveness == nil {
			return "unknown"
		}
		return fmt.Sprintf("%.3f", *s.Effectiveness)
	})
	return b.String()
}

func number(n *int) string {
	if n == nil {
		return "not seen"
	}
	return fmt.Sprint(*n)
}

func steps(s *results.Summary, of func(results.Work) *float64) string {
	for _, w := range s.Work {
		if v := of(w); w.Unit == "step" && v != nil {
			return fmt.Sprintf("%.0f", *v)
		}
	}
	return "unknown"
}

func money(s *results.Summary, v *float64) string {
	if v == nil {
		return "no price"
	}
	return fmt.Sprintf("%.2f %s", *v, s.Cost.Currency)
}
