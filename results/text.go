package results

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/cost"
	"github.com/mcpflood/mcpflood/internal/metric"
	"github.com/mcpflood/mcpflood/internal/oracle"
)

// Bounds of what a report shows of one finding.
const (
	shownAttempts = 8
	shownEvidence = 3
	shownText     = 240 // runes of a quoted line
	shownPoints   = 6
	shownFindings = 50
)

// Text is the report for people: the verdict and the money first, then what was
// found and by which evidence, then the figures, then how to repeat it. It is
// made of the summary alone. No line is wider than [Width], and no control
// character of a foreign text reaches it.
func (s *Summary) Text() string {
	var b strings.Builder
	s.headline(&b)
	s.textReasons(&b)
	s.textFindings(&b)
	s.textUnseen(&b)
	s.textThresholds(&b)
	s.textCuts(&b)
	s.textSurvival(&b)
	s.textCalls(&b)
	s.textTimes(&b)
	s.textWork(&b)
	s.textWitnesses(&b)
	s.textHealth(&b)
	s.textRepeat(&b)
	return b.String()
}

func section(b *strings.Builder, title string) { b.WriteString("\n" + title + "\n") }

func (s *Summary) headline(b *strings.Builder) {
	wrap(b, "", "      ", strings.ToUpper(s.Verdict.String())+": "+s.verdictSentence())
	wrap(b, "", "", s.moneySentence())
	if s.Effectiveness != nil {
		wrap(b, "", "", fmt.Sprintf("Effectiveness %s over %s (1: each stopped the work at once, 0: none did).",
			digits(math.Round(*s.Effectiveness*1000)/1000, 3), plural(s.EffectivenessN, "hang-up", "hang-ups")))
	}
	if s.Driver.Limited {
		wrap(b, "", "", "mcpflood itself was the bottleneck of this run: none of its times is the server's.")
	}
}

// signalCuts is how many cuts told the server that the client had left, and how
// many of them are judged.
func (v Verdicts) signalCuts() int { return v.Stopped + v.Late + v.RanOn + v.Finished }

func (s *Summary) verdictSentence() string {
	v := s.Counts.Verdicts
	judged := v.signalCuts()
	var parts []string
	add := func(n int, one, many string) {
		if n > 0 {
			parts = append(parts, plural(n, one, many))
		}
	}
	if judged > 0 {
		whole := "of " + plural(judged, "judged hang-up", "judged hang-ups")
		within := "in time"
		if s.StopWithin != nil {
			within = "within " + span(*s.StopWithin)
		}
		head := fmt.Sprintf("%s, %d went on working", whole, v.RanOn)
		if v.RanOn == 0 {
			head = whole + ", none went on working"
		}
		for _, p := range []struct {
			n    int
			what string
		}{{v.Late, "stopped late"}, {v.Stopped, "stopped " + within}, {v.Finished, "had finished first"}} {
			if p.n > 0 {
				head += fmt.Sprintf(", %d %s", p.n, p.what)
			}
		}
		parts = append(parts, head)
	}
	add(v.Noticed, "silent client was noticed", "silent clients were noticed")
	add(v.Unnoticed, "silent client was not noticed", "silent clients were not noticed")
	add(v.WentOn, "call that still listened was answered", "calls that still listened were answered")
	add(v.HungUp, "call that still listened was given up", "calls that still listened were given up")
	add(v.Unknown, "cut could not be judged", "cuts could not be judged")
	if n := s.Counts.EffectsAfterCut; n != nil {
		add(*n, "side effect came after the hang-up", "side effects came after the hang-up")
	}
	if len(parts) == 0 {
		if s.Counts.Attempts == 0 {
			return "no call was made."
		}
		return "no cut was judged."
	}
	return strings.Join(parts, "; ") + "."
}

func (s *Summary) moneySentence() string {
	a, unit := s.Cost.Amounts, string(s.Cost.Currency)
	if a.Total == nil {
		a, unit = Amounts{}, ""
		for _, w := range s.Work {
			if w.Unit == cost.Step && w.Total != nil {
				a, unit = w.Amounts, "steps"
			}
		}
	}
	if a.Total == nil {
		return "No witness counted work, so none can be priced."
	}
	sum := func(parts ...*float64) float64 {
		t := 0.0
		for _, p := range parts {
			if p != nil {
				t += *p
			}
		}
		return t
	}
	idle := sum(a.RunOn, a.Unnoticed)
	share := ""
	if *a.Total > 0 {
		share = " (" + percent(idle / *a.Total) + ")"
	}
	text := fmt.Sprintf("Work that nobody waited for: %s of %s %s%s", digits(idle, 4), digits(*a.Total, 4), Visible(unit), share)
	if more := sum(a.RunOnProjected) - sum(a.RunOn); more > 1/decimals {
		text += fmt.Sprintf(" seen, about %s to its end", digits(idle+more, 4))
	}
	text += fmt.Sprintf("; %s lost with the cut", digits(sum(a.Lost), 4))
	if d := sum(a.Duplicate); d > 0 {
		text += fmt.Sprintf("; %s done twice", digits(d, 4))
	}
	return text + "."
}

// notExcluded begins a reason that says what the witnesses cannot exclude.
const notExcluded = "not excluded: "

// textReasons says why, as far as the findings do not say so themselves.
func (s *Summary) textReasons(b *strings.Builder) {
	told := map[string]bool{}
	for _, f := range s.Findings {
		told[f.ID+": "+f.Text] = true
	}
	bullets(b, "Why", s.Reasons, func(r string) (string, bool) { return r, !told[r] && !strings.HasPrefix(r, notExcluded) })
}

func (s *Summary) textUnseen(b *strings.Builder) {
	bullets(b, "Not excluded by these witnesses", s.Reasons, func(r string) (string, bool) { return strings.CutPrefix(r, notExcluded) })
}

func bullets(b *strings.Builder, title string, lines []string, pick func(string) (string, bool)) {
	first := true
	for _, line := range lines {
		text, ok := pick(line)
		if !ok {
			continue
		}
		if first {
			section(b, title)
			first = false
		}
		wrap(b, "  - ", "    ", Visible(text))
	}
}

func (s *Summary) textFindings(b *strings.Builder) {
	section(b, "Findings")
	if len(s.Findings) == 0 {
		b.WriteString("  none\n")
		return
	}
	for i, f := range s.Findings {
		if i == shownFindings {
			fmt.Fprintf(b, "  … and %d more, in %s\n", len(s.Findings)-i, SummaryFile)
			return
		}
		head := fmt.Sprintf("  %-4s  %s", strings.ToUpper(f.Severity.String()), Visible(f.ID))
		if f.Count > 0 {
			head += fmt.Sprintf(" (%d)", f.Count)
		}
		wrap(b, head+": ", "        ", Visible(f.Text))
		f.details(b)
	}
}

func (f Finding) details(b *strings.Builder) {
	const indent = "        "
	var where []string
	for _, p := range [][2]string{{"style", string(f.Where.Style)}, {"phase", string(f.Where.Phase)}, {"tool", string(f.Where.Tool)}, {"instance", string(f.Where.Instance)}} {
		if p[1] != "" {
			where = append(where, p[0]+" "+Visible(p[1]))
		}
	}
	if len(where) > 0 {
		wrap(b, indent+"where: ", indent, strings.Join(where, ", "))
	}
	if len(f.Attempts) > 0 {
		var refs []string
		for _, r := range f.Attempts[:min(shownAttempts, len(f.Attempts))] {
			refs = append(refs, r.String())
		}
		if more := max(len(f.Attempts), f.Count) - len(refs); more > 0 {
			refs = append(refs, fmt.Sprintf("and %d more", more))
		}
		wrap(b, indent+"attempts: ", indent, strings.Join(refs, " "))
	}
	for _, c := range f.Evidence[:min(shownEvidence, len(f.Evidence))] {
		wrap(b, indent+"evidence: ", indent+"    ", clip(citeText(c), shownText))
	}
}

// citeText quotes one piece of evidence: where it stands, when, what it says.
func citeText(c oracle.Cite) string {
	at := Visible(c.Name)
	if c.Line > 0 {
		at += fmt.Sprintf(":%d", c.Line)
	}
	moment := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) + "s" }
	when := moment(c.Lo)
	if hi := moment(c.Hi); hi != when {
		when += ".." + hi
	}
	text := fmt.Sprintf("%s %s at %s", at, c.Kind, when)
	if c.Text != "" {
		text += " | " + strings.Join(strings.Fields(Visible(c.Text)), " ")
	}
	return text
}

func (s *Summary) textThresholds(b *strings.Builder) {
	if len(s.Thresholds) == 0 {
		return
	}
	section(b, "Thresholds")
	t := table{left: 3}
	for _, th := range s.Thresholds {
		ok, value := "unknown", "no figure"
		if th.OK != nil {
			ok = map[bool]string{true: "met", false: "missed"}[*th.OK]
		}
		if th.Value != nil {
			value = digits(*th.Value, 5)
		}
		t.row(ok, Visible(th.Metric), Visible(th.Expr), value)
	}
	t.write(b, "  ")
}

func (s *Summary) textCuts(b *strings.Builder) {
	if len(s.Groups) == 0 {
		return
	}
	section(b, "Cuts by style and phase")
	shown := []history.Verdict{history.Stopped, history.Late, history.RanOn, history.Finished, history.Noticed, history.Unnoticed, history.WentOn, history.HungUp, history.Unknown}
	var columns []history.Verdict
	for _, v := range shown {
		if *s.Counts.Verdicts.of(v) > 0 {
			columns = append(columns, v)
		}
	}
	t := table{left: 2}
	head := []string{"style", "phase", "cuts"}
	for _, v := range columns {
		head = append(head, v.String())
	}
	t.row(append(head, "effectiveness", "stop p50", "stop p99")...)
	for _, g := range s.Groups {
		row := []string{g.Tags.Style.String(), g.Tags.Phase.String(), fmt.Sprint(g.Counts.Cuts)}
		for _, v := range columns {
			row = append(row, fmt.Sprint(*g.Counts.Verdicts.of(v)))
		}
		stop := g.Times[metric.TimeToStop.String()]
		effective := "-"
		if g.Effectiveness != nil {
			effective = strconv.FormatFloat(*g.Effectiveness, 'f', 2, 64)
		}
		t.row(append(row, effective, stop.cell(50), stop.cell(99))...)
	}
	t.write(b, "  ")
	if n := s.Counts.MissedCuts; n != nil && *n > 0 {
		fmt.Fprintf(b, "  %s of %d planned came after the result and cut nothing.\n", plural(*n, "cut", "cuts"), s.Counts.PlannedCuts)
	}
}

func (s *Summary) textSurvival(b *strings.Builder) {
	t := table{left: 3}
	for _, sv := range s.Survival {
		if cells := sv.cells(); len(cells) > 0 {
			t.row(sv.Style.String(), sv.Phase.String(), strings.Join(cells, ", "))
		}
	}
	if len(t.rows) > 0 {
		section(b, "Share still working so long after the hang-up")
		t.write(b, "  ")
	}
}

// cells are some points of the curve, its first and last among them. Of points
// that read as one time the last counts.
func (s Survival) cells() []string {
	var points []string
	last := ""
	for _, p := range s.Points {
		at := span(p[0])
		if at == last {
			points = points[:len(points)-1]
		}
		last = at
		points = append(points, at+" "+percent(p[1]))
	}
	if len(points) <= shownPoints {
		return points
	}
	out := make([]string, shownPoints)
	for i := range out {
		out[i] = points[i*(len(points)-1)/(shownPoints-1)]
	}
	return out
}

func (s *Summary) textCalls(b *strings.Builder) {
	section(b, "Calls")
	c := s.Counts
	n := func(p *int) int {
		if p == nil {
			return 0
		}
		return *p
	}
	wrap(b, "  ", "  ", fmt.Sprintf("%s: %d delivered (%d of them as tool errors), %d failed, %d abandoned at the end.",
		plural(n(c.Calls), "call", "calls"), n(c.Delivered), c.ToolErrors, n(c.Failed), n(c.Abandoned)))
	wrap(b, "  ", "  ", fmt.Sprintf("%s, %d of them re-issues; %s of %d planned.",
		plural(c.Attempts, "attempt", "attempts"), n(c.Reissues), plural(c.Cuts, "cut", "cuts"), c.PlannedCuts))
	if d := n(c.DroppedArrivals); d > 0 {
		wrap(b, "  ", "  ", fmt.Sprintf("%s could not start and were dropped.", plural(d, "arrival", "arrivals")))
	}
	wrap(b, "  ", "  ", fmt.Sprintf("After cuts: %s, %d bytes beside messages; %s.",
		plural(c.PostCutEmissions, "message", "messages"), c.PostCutBytes, plural(c.StrayMessages, "stray message", "stray messages")))
	if c.Effects == nil {
		b.WriteString("  Side effects: not witnessed.\n")
		return
	}
	wrap(b, "  ", "  ", fmt.Sprintf("Side effects: %d, of them %d after the cut, %d in a race with it, %d duplicates.",
		*c.Effects, n(c.EffectsAfterCut), n(c.EffectsInRace), n(c.DuplicateEffects)))
}

// touches reports whether the percentile of the statistics is a lower bound.
func (t Times) touches(p float64) bool {
	rank := max(1, int64(math.Ceil(p/100*float64(t.Count)-1e-9)))
	return rank > t.Count-t.Censored
}

// cell is one statistic as text, marked where it is a lower bound. p above 100
// stands for what any censored sample touches: mean and max.
func (t Times) cell(p float64) string {
	v := map[float64]*float64{0: t.Min, 50: t.P50, 90: t.P90, 95: t.P95, 99: t.P99, 99.9: t.P999, pMean: t.Mean, pMax: t.Max}[p]
	switch {
	case v == nil:
		return "-"
	case p > 100 && t.Censored > 0, p <= 100 && t.touches(p):
		return "≥" + span(*v)
	}
	return span(*v)
}

const (
	pMean = 101
	pMax  = 102
)

func (s *Summary) textTimes(b *strings.Builder) {
	t := table{left: 1}
	t.row("", "count", "open", "min", "mean", "p50", "p90", "p99", "p99.9", "max")
	open := int64(0)
	for _, d := range metric.Defs() {
		x, ok := s.Times[d.Name]
		if d.Kind != metric.Time || !ok || x.Count == 0 {
			continue
		}
		open += x.Censored
		t.row(d.Name, fmt.Sprint(x.Count), fmt.Sprint(x.Censored), x.cell(0), x.cell(pMean), x.cell(50), x.cell(90), x.cell(99), x.cell(99.9), x.cell(pMax))
	}
	if len(t.rows) == 1 {
		return
	}
	section(b, "Times")
	t.write(b, "  ")
	if open > 0 {
		b.WriteString("  open: had not ended when it was last seen; it counts as endless, and what it touches is marked ≥.\n")
	}
}

func (s *Summary) textWork(b *strings.Builder) {
	t := table{left: 1}
	t.row("", "useful", "lost", "run-on", "(to its end)", "unnoticed", "errored", "abandoned", "unknown", "total", "twice")
	add := func(name string, a Amounts) {
		if a.Total != nil {
			t.row(name, amount(a.Useful), amount(a.Lost), amount(a.RunOn), amount(a.RunOnProjected), amount(a.Unnoticed),
				amount(a.Errored), amount(a.Abandoned), amount(a.Unattributed), amount(a.Total), amount(a.Duplicate))
		}
	}
	for _, w := range s.Work {
		add(Visible(w.Unit), w.Amounts)
	}
	add(Visible(string(s.Cost.Currency)), s.Cost.Amounts)
	if len(t.rows) == 1 {
		return
	}
	section(b, "Work and money")
	t.write(b, "  ")
}

func (s *Summary) textWitnesses(b *strings.Builder) {
	section(b, "Witnesses")
	t := table{left: 3}
	t.row("grade", "kind", "source", "records", "of attempts")
	for _, w := range s.Witnesses {
		grade := w.Grade.String()
		if grade == "" {
			grade = "-"
		}
		t.row(grade, Visible(w.Kind), Visible(w.Source), fmt.Sprint(w.Events), fmt.Sprint(w.Attributed))
	}
	t.write(b, "  ")
	if e := s.Counts.Evidence; e != nil && e.Unattributed+e.Ambiguous+e.Foreign+e.Late > 0 {
		wrap(b, "  ", "  ", fmt.Sprintf("Records that fit no attempt: %d; that fit several: %d; of another run: %d; that came late: %d.",
			e.Unattributed, e.Ambiguous, e.Foreign, e.Late))
	}
	if s.Clean.Median != nil {
		text := "A clean call takes " + span(*s.Clean.Median)
		if s.Clean.Units != nil {
			text += " and " + digits(*s.Clean.Units, 4) + " units of work"
		}
		if s.Clean.Gap != nil {
			text += ", with at most " + span(*s.Clean.Gap) + " between two signs of it"
		}
		wrap(b, "  ", "  ", text+".")
	}
}

func (s *Summary) textHealth(b *strings.Builder) {
	section(b, "Server and driver")
	c := s.Canary
	switch {
	case c.Probes == 0:
		b.WriteString("  Canary: no probe.\n")
	default:
		text := fmt.Sprintf("Canary: %s, %d failed, p50 %s, p99 %s", plural(c.Probes, "probe", "probes"), c.Failures, spanOr(c.P50, "-"), spanOr(c.P99, "-"))
		if c.LongestOutage > 0 {
			text += ", longest outage " + span(c.LongestOutage)
		}
		wrap(b, "  ", "  ", text+".")
	}
	d := s.Driver
	wrap(b, "  ", "  ", fmt.Sprintf("Driver: at most %s of the CPUs and %s; starts and cuts late by p99 %s.",
		percent(d.CPUMax), plural(d.OpenFiles, "open file", "open files"), span(d.LatenessP99)))
}

func (s *Summary) textRepeat(b *strings.Builder) {
	section(b, "Run")
	r := s.Run
	targets := make([]string, len(r.Targets))
	for i, t := range r.Targets {
		targets[i] = Visible(t)
	}
	wrap(b, "  ", "  ", fmt.Sprintf("%s, seed %d, %s, took %s, against %s (MCP %s, HTTP %s).", Visible(r.ID), r.Seed,
		r.Started.UTC().Format(time.RFC3339), span(r.Duration), strings.Join(targets, " "), orDash(r.Protocol), orDash(r.HTTP)))
	if r.Command != "" {
		b.WriteString("  To repeat:\n" + shellLines(Visible(string(r.Command)), "    "))
	}
	b.WriteString("  To judge the same history again: mcpflood check DIR\n")
}

// shellLines breaks a command before its flags, in a way that a shell reads as
// one command: never inside quotes, and never a word.
func shellLines(command, indent string) string {
	var b strings.Builder
	line, quoted := indent, false
	for i, word := range strings.Split(command, " ") {
		switch {
		case i == 0:
			line += word
		case !quoted && strings.HasPrefix(word, "-") && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > Width-shellRoom:
			b.WriteString(line + " \\\n")
			line = indent + "  " + word
		default:
			line += " " + word
		}
		quoted = quoted != (strings.Count(word, "'")%2 == 1)
	}
	b.WriteString(line + "\n")
	return b.String()
}

// shellRoom is kept free at the end of a line for a flag's value.
const shellRoom = 30

func orDash(o Opt) string {
	if o == "" {
		return "-"
	}
	return Visible(string(o))
}
