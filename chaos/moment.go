package chaos

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// Bounds of what a moment may ask for.
const (
	MaxAfter  = 24 * time.Hour
	MaxEvents = 1_000_000
	MaxBytes  = 1 << 40
	MaxPart   = 100 // clean medians
)

// form is which of the text forms a moment has.
type form uint8

const (
	formPhase   form = iota + 1
	formEvent        // event(n), event+k(n)
	formBytes        // bytes(k)
	formAfter        // after(d)
	formUniform      // uniform(a,b)
	formExp          // exp(mean)
	formPart         // part(a,b)
	formHead         // head(k)
	formBody         // body(k)
	formQuiet        // quiet(d)
	formEvery        // every(d)
)

// Moment is when an attempt is cut, before it is resolved for one attempt. It
// is comparable; the zero value is no moment.
//
// Timed moments count from the instant the request's last byte was written;
// every counts on the run's own clock, so that all attempts it touches are cut
// together, and quiet from the last byte that came.
type Moment struct {
	form     form
	phase    history.Phase
	event    int
	offset   int
	bytes    int64
	from, to time.Duration
	lo, hi   float64
}

// forms is what an error tells the user to write.
const forms = "a phase (connect, head, body, sent, headers, mid, event, tail, done), event(3), event+12(3), after(2s), uniform(0s,10s), exp(20s), exp(20s,2s), part(0.2,0.9), bytes(100), head(20), body(10), quiet(60s) or every(2m)"

// String gives the text that [ParseMoment] reads back to the same moment; the
// empty text for the zero moment.
func (m Moment) String() string {
	switch m.form {
	case formPhase:
		return m.phase.String()
	case formEvent:
		return eventText(m.event, m.offset)
	case formBytes:
		return fmt.Sprintf("bytes(%d)", m.bytes)
	case formAfter:
		return "after(" + durationText(m.from) + ")"
	case formUniform:
		return "uniform(" + durationText(m.from) + "," + durationText(m.to) + ")"
	case formExp:
		if m.to > 0 {
			return "exp(" + durationText(m.from) + "," + durationText(m.to) + ")"
		}
		return "exp(" + durationText(m.from) + ")"
	case formHead:
		return fmt.Sprintf("head(%d)", m.bytes)
	case formBody:
		return fmt.Sprintf("body(%d)", m.bytes)
	case formQuiet:
		return "quiet(" + durationText(m.from) + ")"
	case formEvery:
		return "every(" + durationText(m.from) + ")"
	case formPart:
		return "part(" + floatText(m.lo) + "," + floatText(m.hi) + ")"
	}
	return ""
}

// ParseMoment reads a moment: a phase, event(3), event+12(3), after(2s),
// uniform(0s,10s), exp(20s), exp(20s,2s) (nobody before 2s), part(0.2,0.9),
// bytes(100), head(20) and body(10) (that many bytes of the request were
// written), quiet(60s) or every(2m).
func ParseMoment(s string) (Moment, error) {
	name, rest, hasArgs := strings.Cut(s, "(")
	if !hasArgs {
		return parsePhase(s)
	}
	inner, ok := strings.CutSuffix(rest, ")")
	if !ok {
		return Moment{}, fmt.Errorf("bad moment %q: the closing parenthesis is missing", s)
	}
	args := strings.Split(inner, ",")
	for i := range args {
		args[i] = strings.TrimSpace(args[i])
	}
	m, err := parseCall(name, args)
	if err != nil {
		return Moment{}, fmt.Errorf("bad moment %q: %w", s, err)
	}
	return m, nil
}

func parsePhase(s string) (Moment, error) {
	var p history.Phase
	if err := p.UnmarshalText([]byte(s)); err != nil || p == history.PhaseNone {
		return Moment{}, fmt.Errorf("bad moment %q: want %s", s, forms)
	}
	return Moment{form: formPhase, phase: p}, nil
}

// arity is how many arguments each form with parentheses takes, at least and
// at most.
var arity = map[string][2]int{
	"event": {1, 1}, "bytes": {1, 1}, "after": {1, 1}, "exp": {1, 2}, "uniform": {2, 2}, "part": {2, 2},
	"head": {1, 1}, "body": {1, 1}, "quiet": {1, 1}, "every": {1, 1},
}

func parseCall(name string, args []string) (Moment, error) {
	base, offset, hasOffset := strings.Cut(name, "+")
	want, known := arity[base]
	switch {
	case !known, hasOffset && base != "event":
		return Moment{}, fmt.Errorf("want %s", forms)
	case len(args) < want[0] || len(args) > want[1]:
		return Moment{}, fmt.Errorf("%s takes %d argument(s), got %d", base, want[0], len(args))
	}
	switch base {
	case "event":
		m := Moment{form: formEvent}
		var err error
		if m.event, err = parseCount("event number", args[0], MaxEvents); err != nil {
			return Moment{}, err
		}
		if hasOffset {
			m.offset, err = parseCount("offset in bytes", offset, math.MaxInt32)
		}
		return m, err
	case "bytes", "head", "body":
		n, err := parseCount("number of bytes", args[0], MaxBytes)
		return Moment{form: map[string]form{"bytes": formBytes, "head": formHead, "body": formBody}[base], bytes: int64(n)}, err
	case "part":
		return parsePart(args)
	}
	return parseTimed(base, args)
}

func parseTimed(base string, args []string) (Moment, error) {
	d := make([]time.Duration, len(args))
	for i, a := range args {
		v, err := time.ParseDuration(a)
		switch {
		case err != nil:
			return Moment{}, fmt.Errorf("%q is no duration: write it like 1.5s or 200ms", a)
		case v < 0, v > MaxAfter:
			return Moment{}, fmt.Errorf("%q is out of range: want 0s to %s", a, durationText(MaxAfter))
		}
		d[i] = v
	}
	switch base {
	case "after":
		return Moment{form: formAfter, from: d[0]}, nil
	case "exp", "quiet", "every":
		if d[0] == 0 {
			return Moment{}, fmt.Errorf("the time of %s must be above 0s", base)
		}
		m := Moment{form: map[string]form{"exp": formExp, "quiet": formQuiet, "every": formEvery}[base], from: d[0]}
		if len(d) > 1 {
			m.to = d[1]
		}
		return m, nil
	}
	if d[0] > d[1] {
		return Moment{}, fmt.Errorf("%s comes after %s: write the earlier time first", args[0], args[1])
	}
	return Moment{form: formUniform, from: d[0], to: d[1]}, nil
}

func parsePart(args []string) (Moment, error) {
	var v [2]float64
	for i, a := range args {
		f, err := strconv.ParseFloat(a, 64)
		switch {
		case err != nil || math.IsNaN(f):
			return Moment{}, fmt.Errorf("%q is no number", a)
		case f < 0, f > MaxPart:
			return Moment{}, fmt.Errorf("%q is out of range: want a fraction of the clean median, 0 to %d", a, MaxPart)
		}
		v[i] = f + 0 // -0 becomes 0, so that equal moments have equal texts
	}
	if v[0] > v[1] {
		return Moment{}, fmt.Errorf("%s is above %s: write the smaller fraction first", args[0], args[1])
	}
	return Moment{form: formPart, lo: v[0], hi: v[1]}, nil
}

func parseCount(what, s string, limit int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > limit {
		return 0, fmt.Errorf("%s %q: want a whole number from 1 to %d", what, s, limit)
	}
	return n, nil
}

func eventText(n, offset int) string {
	if offset > 0 {
		return fmt.Sprintf("event+%d(%d)", offset, n)
	}
	return fmt.Sprintf("event(%d)", n)
}

// durationText is d without the zero units that time.Duration prints: 1m, not
// 1m0s.
func durationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

func floatText(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// inRequest reports whether the moment comes before the request is complete.
func (m Moment) inRequest() bool {
	switch m.phase {
	case history.PhaseConnect, history.PhaseHead, history.PhaseBody:
		return true
	}
	return m.form == formHead || m.form == formBody
}
