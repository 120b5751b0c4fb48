package witness

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpflood/mcpflood/history"
)

// The roles a metric can have, as Sample.Values has them.
const (
	roleWork     = "work"
	roleInflight = "inflight"
	roleStopped  = "stopped"
	roleDone     = "done"
	roleEffects  = "effects"
)

// roles lists them with the kind of evidence each gives.
var roles = [...]struct {
	name string
	kind history.Kind
}{
	{roleWork, history.Work}, {roleInflight, history.Work}, {roleStopped, history.Stop},
	{roleDone, history.Completion}, {roleEffects, history.Effect},
}

func roleNames() []string {
	var out []string
	for _, r := range roles {
		out = append(out, r.name)
	}
	return out
}

// label is one label of a series.
type label struct{ name, value string }

// sample is one series of a scrape.
type sample struct {
	name   string
	labels []label
	value  float64
}

// String is the series as Prometheus writes it.
func (s sample) String() string {
	var b strings.Builder
	b.WriteString(s.name)
	if len(s.labels) == 0 {
		return b.String()
	}
	for i, l := range s.labels {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(l.name + "=" + strconv.Quote(l.value))
	}
	b.WriteByte('}')
	return b.String()
}

// selector picks the series of one role: ROLE=NAME or ROLE=NAME{label="v",…}.
type selector struct {
	text   string // as given
	role   string
	kind   history.Kind
	name   string
	labels []label
}

// parseSelector reads what --metric takes.
func parseSelector(text string) (selector, error) {
	bad := func(why string) (selector, error) {
		return selector{}, fmt.Errorf("--metric %s: %s", text, why)
	}
	role, rest, ok := strings.Cut(text, "=")
	i := slices.Index(roleNames(), role)
	if !ok || i < 0 {
		return bad(fmt.Sprintf("want ROLE=NAME with a role of %s; did you mean %q?",
			strings.Join(roleNames(), ", "), nearest(role, roleNames())[0]))
	}
	s := selector{text: text, role: role, kind: roles[i].kind}
	s.name, rest, ok = strings.Cut(rest, "{")
	if s.name = strings.TrimSpace(s.name); s.name == "" || strings.ContainsAny(s.name, "}\"' =,") {
		return bad("want the name of a metric after the role, as in work=jobs_steps_total")
	}
	if !ok {
		return s, nil
	}
	rest = strings.TrimSpace(rest)
	for {
		if rest == "}" {
			return s, nil
		}
		name, after, ok := strings.Cut(rest, "=")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, "}\"!,") {
			return bad(`want labels as {name="value",…}`)
		}
		quoted, err := strconv.QuotedPrefix(strings.TrimSpace(after))
		if err != nil {
			return bad(fmt.Sprintf(`label %s: want ="value", quoted; other comparisons are not known`, name))
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			return bad(fmt.Sprintf("label %s: %v", name, err))
		}
		s.labels = append(s.labels, label{name, value})
		rest = strings.TrimSpace(strings.TrimSpace(after)[len(quoted):])
		if next, ok := strings.CutPrefix(rest, ","); ok {
			rest = strings.TrimSpace(next)
		} else if rest != "}" {
			return bad("want , or } after a label")
		}
	}
}

// pick returns the series s means. A name is met exactly if any series has it,
// else with or without the "_total" that some exporters add.
func (s selector) pick(all []sample) []sample {
	for _, name := range s.names() {
		var named bool
		var out []sample
		for _, m := range all {
			if m.name == name {
				named = true
				if s.fits(m) {
					out = append(out, m)
				}
			}
		}
		if named {
			return out
		}
	}
	return nil
}

func (s selector) names() [2]string {
	if bare, ok := strings.CutSuffix(s.name, "_total"); ok {
		return [2]string{s.name, bare}
	}
	return [2]string{s.name, s.name + "_total"}
}

func (s selector) fits(m sample) bool {
	for _, want := range s.labels {
		if !slices.Contains(m.labels, want) {
			return false
		}
	}
	return true
}

// hint says why s picks nothing of a scrape, with what is nearest.
func (s selector) hint(all []sample) string {
	names := s.names()
	var have, series []string
	for _, m := range all {
		if m.name == names[0] || m.name == names[1] {
			series = append(series, m.String())
		}
		if len(have) == 0 || have[len(have)-1] != m.name {
			have = append(have, m.name)
		}
	}
	if len(series) > 0 {
		near := nearest(s.name, series)
		for i := range near {
			near[i] = printable(clip(near[i], maxShown))
		}
		return "it exists, but none of its series has these labels; it has " + strings.Join(near, ", ")
	}
	slices.Sort(have)
	if near := nearestHint(s.name, slices.Compact(have)); near != "" {
		return "there is no such metric; " + near
	}
	return "there are no metrics at all"
}
