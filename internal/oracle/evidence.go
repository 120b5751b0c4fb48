package oracle

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcpflood/mcpflood/history"
)

// item is one piece of evidence as a pass holds it.
type item struct {
	at     time.Duration // arrival
	lo, hi time.Duration // the source's own time where timed, else the arrival; run time once placed
	seq    int64         // order of arrival
	line   int64
	units  float64
	text   string
	key    string
	source int
	// attempt is 0 where only the call is known.
	attempt uint32
	unit    uint16 // index into units.names
	kind    history.Kind
	timed   bool
	sure    bool // attributed by id, trace or wire
	late    bool // arrived after its attempt was settled
}

// proves reports whether a kind of evidence shows an attempt at work.
func proves(k history.Kind) bool {
	return k == history.Work || k == history.Effect || k == history.Completion
}

// quoted bounds the text an item keeps of its record.
const quoted = 512

func clip(s string) string {
	if len(s) <= quoted {
		return s
	}
	n := quoted
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.Clone(s[:n]) // so that the long text can be freed
}

// units interns the names of units. Beyond maxUnits names all others count as
// one more.
type units struct{ names []string }

const maxUnits = 64

func (u *units) index(name string) uint16 {
	if name == "" {
		name = "step"
	}
	for i, n := range u.names {
		if n == name {
			return uint16(i)
		}
	}
	if len(u.names) == maxUnits {
		u.names = append(u.names, "other")
	}
	if len(u.names) > maxUnits {
		return maxUnits
	}
	u.names = append(u.names, name)
	return uint16(len(u.names) - 1)
}

func newItem(seq int64, at time.Duration, e *history.Evidence, u *units, text bool) item {
	it := item{
		at: at, lo: e.Lo, hi: e.Hi, seq: seq, line: e.Line, source: e.Source,
		attempt: e.Ref.Attempt, kind: e.Kind, timed: e.Timed, sure: e.By != "marker",
	}
	if !it.timed {
		it.lo, it.hi = at, at
	}
	if e.Kind == history.Work {
		it.unit = u.index(e.Unit)
		if it.units = e.Units; it.units < 0 {
			it.units = 0
		}
	}
	if e.Kind == history.Effect {
		it.key = clip(e.Key)
	}
	if text {
		it.text = clip(e.Text)
	}
	return it
}

// fold halves a list of evidence that has grown beyond its limit: neighbouring
// records of work of one attempt, source and unit become one that spans both.
// It claims no more than they did: a span proves less than its parts.
func fold(items []item) []item {
	out := items[:0]
	open := -1 // index in out of a record of work that may take another
	for _, it := range items {
		if open >= 0 && it.kind == history.Work {
			last := &out[open]
			if last.attempt == it.attempt && last.source == it.source && last.unit == it.unit && last.timed == it.timed && last.sure == it.sure {
				last.lo, last.hi = min(last.lo, it.lo), max(last.hi, it.hi)
				last.units += it.units
				last.at = it.at
				open = -1
				continue
			}
		}
		out = append(out, it)
		open = -1
		if it.kind == history.Work {
			open = len(out) - 1
		}
	}
	clear(items[len(out):])
	return out
}
