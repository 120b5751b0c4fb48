package metric

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpflood/mcpflood/internal/latency"
)

// Threshold is what a run is held to: a figure of a metric, an operator and a
// limit. Its text is "METRIC: EXPR" or "METRIC{tag:value,...}: EXPR", with k6's
// grammar for EXPR.
//
//	counters  count, rate
//	times     avg, min, med, max, p(N), in milliseconds
//	values    value
//
// A counter's rate is the share of its [Population], such as the ran_on among
// the judged cuts, and per second of the run where it has none.
type Threshold struct {
	id       ID
	selector Selector
	metric   string // name and selector, as given
	expr     string
	method   string
	percent  float64 // of p(N)
	op       string
	limit    float64
}

// ops in the order in which they are looked for: the longer first.
var ops = []string{"===", "==", "!=", ">=", "<=", ">", "<"}

// ParseThreshold reads "METRIC: EXPR".
func ParseThreshold(s string) (Threshold, error) {
	t, err := parseThreshold(s)
	if err != nil {
		return Threshold{}, fmt.Errorf("bad threshold %q: %w", s, err)
	}
	return t, nil
}

func parseThreshold(s string) (Threshold, error) {
	// A selector holds colons of its own.
	end := strings.IndexByte(s, '{')
	if end >= 0 {
		n := strings.IndexByte(s[end:], '}')
		if n < 0 {
			return Threshold{}, fmt.Errorf("the selector's closing brace is missing")
		}
		end += n + 1
	} else {
		end = 0
	}
	colon := strings.IndexByte(s[end:], ':')
	if colon < 0 {
		return Threshold{}, fmt.Errorf("want METRIC: EXPR, for example 'mcp_ran_on: count==0'")
	}
	t := Threshold{metric: strings.TrimSpace(s[:end+colon]), expr: strings.TrimSpace(s[end+colon+1:])}
	name, selector, hasSelector := strings.Cut(t.metric, "{")
	var err error
	if t.id, err = ParseID(strings.TrimSpace(name)); err != nil {
		return Threshold{}, err
	}
	if hasSelector {
		inner, ok := strings.CutSuffix(selector, "}")
		if !ok {
			return Threshold{}, fmt.Errorf("%q stands between the selector and the colon", selector[strings.IndexByte(selector, '}')+1:])
		}
		if t.selector, err = parseSelector(t.id.Def(), inner); err != nil {
			return Threshold{}, err
		}
	}
	return t, t.parseExpr()
}

func parseSelector(d Def, s string) (Selector, error) {
	var sel Selector
	may := d.tags.may()
	if len(may) == 0 {
		return sel, fmt.Errorf("%s has no tags to select by", d.Name)
	}
	for pair := range strings.SplitSeq(s, ",") {
		name, value, ok := strings.Cut(pair, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch {
		case !ok:
			return sel, fmt.Errorf("selector %q: want tag:value", pair)
		case !slices.Contains(may, name):
			return sel, fmt.Errorf("%s has no tag %q: want one of %s", d.Name, name, strings.Join(may, ", "))
		}
		*sel.want.tag(name) = strings.Trim(value, `"`)
		sel.names[slices.Index(tagNames[:], name)] = true
	}
	return sel, nil
}

func (t *Threshold) parseExpr() error {
	at := strings.IndexAny(t.expr, "=!<>")
	if at < 0 {
		return fmt.Errorf("%q has no comparison: want one of %s, for example %s", t.expr, strings.Join(ops, " "), example(t.id))
	}
	t.method = strings.ReplaceAll(t.expr[:at], " ", "")
	for _, op := range ops {
		if strings.HasPrefix(t.expr[at:], op) {
			t.op = op
			break
		}
	}
	if t.op == "" {
		return fmt.Errorf("%q has no comparison: want one of %s", t.expr, strings.Join(ops, " "))
	}
	text := strings.TrimSpace(t.expr[at+len(t.op):])
	var err error
	if t.limit, err = strconv.ParseFloat(text, 64); err != nil || math.IsNaN(t.limit) || math.IsInf(t.limit, 0) {
		if d, err := time.ParseDuration(text); err == nil {
			return fmt.Errorf("limit %q: times are in milliseconds, write %v", text, float64(d)/float64(time.Millisecond))
		}
		return fmt.Errorf("limit %q: want a number", text)
	}
	return t.checkMethod()
}

func (t *Threshold) checkMethod() error {
	d := t.id.Def()
	if arg, ok := strings.CutPrefix(t.method, "p("); ok && d.Kind == Time {
		n, err := strconv.ParseFloat(strings.TrimSuffix(arg, ")"), 64)
		if err != nil || !strings.HasSuffix(arg, ")") || !(n >= 0 && n <= 100) {
			return fmt.Errorf("percentile %q: want p(0) to p(100)", t.method)
		}
		t.method, t.percent = "p", n
		return nil
	}
	if !slices.Contains(methods[d.Kind], t.method) || t.method == "p(N)" {
		return fmt.Errorf("%s is a %s and has no %q: want one of %s, for example %s",
			d.Name, d.Kind, t.method, strings.Join(methods[d.Kind], ", "), example(t.id))
	}
	return nil
}

func example(id ID) string {
	return map[Kind]string{Counter: "count==0", Time: "p(99)<500", Value: "value>0.95"}[id.Def().Kind]
}

// Metric is the metric with its selector, as given.
func (t Threshold) Metric() string { return t.metric }

// Expr is the expression, as given.
func (t Threshold) Expr() string { return t.expr }

// String is the text that [ParseThreshold] reads.
func (t Threshold) String() string { return t.metric + ": " + t.expr }

// Result is what a threshold came to.
type Result struct {
	Metric, Expr string
	// OK is nil where the figure is unknown.
	OK *bool
	// Value is the figure, in milliseconds for times; nil where it is unknown. A
	// figure that touches a censored sample counts as endless: then AtLeast is
	// set and Value is its lower bound.
	Value   *float64
	AtLeast bool
	Why     string // the figure is unknown: why
}

// Evaluate holds the figures of a run of the given length to the threshold.
func (r *Registry) Evaluate(t Threshold, run time.Duration) Result {
	res := Result{Metric: t.metric, Expr: t.expr}
	d := t.id.Def()
	set := r.set(t.selector)
	if set == nil {
		panic("metric: invariant: a registry is made with the thresholds it evaluates")
	}
	if r.blind[t.id] {
		res.Why = "nothing could see it"
		return res
	}
	var x float64 // as compared
	switch d.Kind {
	case Time:
		v, ok := t.statistic(set.Times(t.id))
		if !ok {
			res.Why = "no samples"
			return res
		}
		x = v.Milliseconds()
		shown := float64(v.Time) / float64(time.Millisecond)
		res.Value, res.AtLeast = &shown, v.AtLeast
	case Value:
		if set.values[t.id] == nil {
			res.Why = "no figure"
			return res
		}
		x = *set.values[t.id]
		res.Value = &x
	case Counter:
		x = set.sums[t.id]
		n := set.populations[d.Of]
		if d.Of != Everything && n <= 0 {
			res.Why = "no " + d.Of.String()
			return res
		}
		if t.method == "rate" {
			if d.Of == Everything {
				n = run.Seconds()
			}
			if n <= 0 {
				res.Why = "the run has no length"
				return res
			}
			x /= n
		}
		res.Value = &x
	}
	ok := holds(x, t.op, t.limit)
	res.OK = &ok
	return res
}

func (t Threshold) statistic(r *latency.Recorder) (latency.Value, bool) {
	switch t.method {
	case "avg":
		return r.Mean()
	case "min":
		return r.Min()
	case "med":
		return r.Percentile(50)
	case "max":
		return r.Max()
	}
	return r.Percentile(t.percent)
}

func holds(x float64, op string, limit float64) bool {
	switch op {
	case "<":
		return x < limit
	case "<=":
		return x <= limit
	case ">":
		return x > limit
	case ">=":
		return x >= limit
	case "!=":
		return x != limit
	}
	return x == limit
}
