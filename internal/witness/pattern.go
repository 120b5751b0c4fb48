package witness

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// The named groups a pattern may have.
const (
	groupID = iota
	groupMarker
	groupTrace
	groupStep
	groupUnits
	groupTime
	groupKey // effects only
	groups
)

var groupNames = [groups]string{"id", "marker", "trace", "step", "units", "time", "key"}

// maxUnits bounds what one record may claim, so that sums stay finite.
const maxUnits = 1e12

// pattern is one regular expression of the user.
type pattern struct {
	flag string
	re   *regexp.Regexp
	kind history.Kind
	at   [groups]int // submatch of each group; 0: none
	hint int         // see parseStamp
}

func (p *pattern) String() string { return p.flag + " " + strconv.Quote(p.re.String()) }

func compile(flag string, kind history.Kind, text string) (*pattern, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %v", flag, text, err)
	}
	allowed := groupNames[:]
	if kind != history.Effect {
		allowed = groupNames[:groupKey]
	}
	p := &pattern{flag: flag, re: re, kind: kind}
	for i, name := range re.SubexpNames() {
		if name == "" {
			continue
		}
		g := slices.Index(allowed, name)
		if g < 0 {
			return nil, fmt.Errorf("%s %q: unknown group %q: did you mean %q? known are %s",
				flag, text, name, nearest(name, allowed)[0], strings.Join(allowed, ", "))
		}
		p.at[g] = i
	}
	return p, nil
}

// matcher holds a log's patterns. It is not safe for concurrent use.
type matcher struct {
	clock    history.Clock
	nonce    history.Nonce
	patterns []*pattern // by kind: stop, done, effect, work
	matched  []bool     // those that matched, by index
}

// match is what one pattern found in a line.
type match struct {
	pattern   int
	evidence  history.Evidence
	malformed int // groups whose text is not what it should be
}

// match reads a line that arrived at wall time. A line is one record of each
// kind that has a pattern for it (a step may also be the effect, or the end),
// but a line that says "stopped" is never also work, whatever step it names.
// Of a line that was cut, a group that reaches the cut is not used: the rest of
// an id may be missing.
func (m *matcher) match(line []byte, cut bool, wall time.Time) []match {
	var out []match
	var last history.Kind
	for i, p := range m.patterns {
		if p.kind == last || p.kind == history.Work && len(out) > 0 && out[0].evidence.Kind == history.Stop {
			continue
		}
		loc := p.re.FindSubmatchIndex(line)
		if loc == nil {
			continue
		}
		last = p.kind
		f := func(g int) string {
			lo, hi := loc[2*p.at[g]], loc[2*p.at[g]+1]
			if p.at[g] == 0 || lo < 0 || cut && hi == len(line) {
				return ""
			}
			return string(line[lo:hi])
		}
		out = append(out, m.read(i, f, wall))
		if a := &out[len(out)-1].evidence; !a.Foreign {
			a.Text = string(line[:min(len(line), 2*history.MaxText)]) // the output cuts it to size
		}
	}
	return out
}

// read makes the evidence of the groups of pattern i.
func (m *matcher) read(i int, group func(int) string, wall time.Time) match {
	p := m.patterns[i]
	who := attribute(m.nonce, identities{group(groupID), group(groupTrace), group(groupMarker)})
	out := match{pattern: i, evidence: history.Evidence{
		Kind: p.kind, Ref: who.ref, By: who.by, Foreign: who.foreign, Key: group(groupKey),
	}}
	e := &out.evidence
	if s := group(groupStep); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			out.malformed++
		} else {
			e.Step = n
		}
	}
	if p.kind == history.Work {
		e.Units = 1
		if p.at[groupUnits] != 0 {
			n, err := strconv.ParseFloat(group(groupUnits), 64)
			if err != nil || math.IsNaN(n) || n < 0 || n > maxUnits {
				n = 0
				out.malformed++
			}
			e.Units = n
		}
	}
	if s := group(groupTime); s != "" {
		at, grain, ok := parseStamp(s, wall, &p.hint)
		if !ok {
			out.malformed++
		} else {
			e.Timed, e.Lo = true, m.clock.At(at)
			e.Hi = e.Lo + grain
		}
	}
	return out
}

// has reports whether any pattern has one of the groups.
func (m *matcher) has(gs ...int) bool {
	return slices.ContainsFunc(m.patterns, func(p *pattern) bool {
		return slices.ContainsFunc(gs, func(g int) bool { return p.at[g] != 0 })
	})
}

// newMatcher compiles the patterns; its error names all that is wrong.
func newMatcher(cfg LogConfig) (*matcher, error) {
	m := &matcher{clock: cfg.Clock, nonce: cfg.Nonce}
	var bad []string
	for _, k := range [...]struct {
		flag  string
		kind  history.Kind
		texts []string
	}{
		{"--log-stop", history.Stop, cfg.Stop}, {"--log-done", history.Completion, cfg.Done},
		{"--log-effect", history.Effect, cfg.Effect}, {"--log-work", history.Work, cfg.Work},
	} {
		for _, text := range k.texts {
			p, err := compile(k.flag, k.kind, text)
			if err != nil {
				bad = append(bad, err.Error())
				continue
			}
			m.patterns = append(m.patterns, p)
		}
	}
	if len(m.patterns)+len(bad) == 0 {
		bad = append(bad, "--log has no pattern: say what to look for with --log-work, --log-stop, --log-done or --log-effect")
	}
	m.matched = make([]bool, len(m.patterns))
	return m, problems(bad)
}
