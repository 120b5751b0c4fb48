package chaos

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// Clause cuts a share of the attempts in one style at one moment.
type Clause struct {
	Style  history.Style
	Moment Moment
	Share  float64 // of all attempts, above 0 to 1; ParseClause sets 1 if the text has none
	Code   Code    // of a stream-reset
}

// shareSlack lets shares add up to 100 % although their binary forms do not.
const shareSlack = 1e-9

// ParseClause reads STYLE@MOMENT[:SHARE], such as "fin@uniform(0s,800ms):50%".
func ParseClause(s string) (Clause, error) {
	bad := func(format string, a ...any) (Clause, error) {
		return Clause{}, fmt.Errorf("bad cut %q: %w", s, fmt.Errorf(format, a...))
	}
	style, rest, ok := strings.Cut(strings.TrimSpace(s), "@")
	if !ok {
		return bad("want STYLE@MOMENT[:SHARE], for example fin@mid:30%%")
	}
	c := Clause{Share: 1}
	style, code, hasCode := strings.Cut(style, "(")
	if err := c.Style.UnmarshalText([]byte(style)); err != nil {
		return bad("%w", err)
	}
	if hasCode {
		code, ok := strings.CutSuffix(code, ")")
		if !ok {
			return bad("the closing parenthesis of the error code is missing")
		}
		var err error
		if c.Code, err = ParseCode(code); err != nil {
			return bad("%w", err)
		}
	}
	if c.Style == history.StyleNone {
		return bad("the style is missing: want one of %v", history.Styles())
	}
	moment, share, hasShare := rest, "", false
	if i := strings.LastIndexByte(rest, ':'); i >= 0 {
		moment, share, hasShare = rest[:i], rest[i+1:], true
	}
	var err error
	if c.Moment, err = ParseMoment(moment); err != nil {
		return bad("%w", err)
	}
	if hasShare {
		if c.Share, err = parseShare(share); err != nil {
			return bad("%w", err)
		}
	}
	return c, nil
}

// String gives the text that [ParseClause] reads back to the same clause.
func (c Clause) String() string {
	s := c.Style.String()
	if c.Code != NoCode {
		s += "(" + c.Code.String() + ")"
	}
	s += "@" + c.Moment.String()
	if c.Share != 1 {
		s += ":" + shareText(c.Share)
	}
	return s
}

func parseShare(s string) (float64, error) {
	digits, ok := strings.CutSuffix(s, "%")
	plain := strings.Trim(digits, "0123456789.") == ""
	f, err := strconv.ParseFloat(digits+"e-2", 64)
	if !ok || !plain || err != nil || f <= 0 || f > 1 {
		return 0, fmt.Errorf("share %q: want a percentage above 0%% and up to 100%%, like 30%%", s)
	}
	return f, nil
}

// shareText moves the decimal point of the share's shortest text, so that
// reading it gives the very same number: 0.07 × 100 is not 7 in binary.
func shareText(share float64) string {
	whole, frac, _ := strings.Cut(floatText(share), ".")
	for len(frac) < 2 {
		frac += "0"
	}
	whole = strings.TrimLeft(whole+frac[:2], "0")
	if whole == "" {
		whole = "0"
	}
	if frac[2:] != "" {
		whole += "." + frac[2:]
	}
	return whole + "%"
}

// Plan says which attempts are cut, how and when. It is a value: copy and read
// it from any goroutine.
type Plan struct {
	Seed    uint64
	Clauses []Clause
	// TailDelay is the time from the last side effect to a cut at tail. Below 0:
	// half of the clean gap between the last event and the result.
	TailDelay time.Duration
}

// String gives the text that [ParsePlan] reads back to the same plan.
func (p Plan) String() string {
	words := []string{"seed=" + strconv.FormatUint(p.Seed, 10)}
	if p.TailDelay >= 0 {
		words = append(words, "tail-delay="+durationText(p.TailDelay))
	}
	return strings.Join(append(words, p.Texts()...), " ")
}

// Texts gives the text of every clause, in order.
func (p Plan) Texts() []string {
	out := make([]string, len(p.Clauses))
	for i, c := range p.Clauses {
		out[i] = c.String()
	}
	return out
}

// ParsePlan reads words separated by blanks: seed=N, tail-delay=D and clauses.
// It reports every bad word at once.
func ParsePlan(s string) (Plan, error) {
	p := Plan{TailDelay: -1}
	var errs []error
	for word := range strings.FieldsSeq(s) {
		var err error
		if v, ok := strings.CutPrefix(word, "seed="); ok {
			if p.Seed, err = strconv.ParseUint(v, 10, 64); err != nil {
				err = fmt.Errorf("bad seed %q: want a whole number of at most 64 bits", v)
			}
		} else if v, ok := strings.CutPrefix(word, "tail-delay="); ok {
			if p.TailDelay, err = time.ParseDuration(v); err != nil || p.TailDelay < 0 {
				err = fmt.Errorf("bad tail-delay %q: want a duration like 150ms", v)
			}
		} else {
			var c Clause
			c, err = ParseClause(word)
			p.Clauses = append(p.Clauses, c)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return Plan{}, errors.Join(errs...)
	}
	return p, nil
}

// notYetStyle tells why a style that parses cannot be done.
var notYetStyle = map[history.Style]string{
	history.Notify:      "needs a stdio server, which is not in this version: use fin",
	history.StreamReset: "needs HTTP/2, which is not in this version: use fin or reset",
}

// Validate reports every problem of the plan at once, as one error that
// unwraps to them, or nil.
func (p Plan) Validate() error {
	var errs []error
	total := 0.0
	for i, c := range p.Clauses {
		errs = append(errs, c.problems(i)...)
		total += max(c.Share, 0)
	}
	if total > 1+shareSlack {
		errs = append(errs, fmt.Errorf("the cuts' shares add up to %s: at most one cut an attempt, so at most 100%%; give each --cut a share, like fin@mid:30%%",
			shareText(total)))
	}
	if p.TailDelay > MaxAfter {
		errs = append(errs, fmt.Errorf("tail delay %s: want at most %s", durationText(p.TailDelay), durationText(MaxAfter)))
	}
	return errors.Join(errs...)
}

func (c Clause) problems(i int) []error {
	var errs []error
	add := func(format string, a ...any) {
		errs = append(errs, fmt.Errorf("cut %d, %s: %w", i+1, c, fmt.Errorf(format, a...)))
	}
	if c.Style.Class() == history.ClassNone {
		add("style %q is none of %v", c.Style, history.Styles())
	}
	if c.Moment.form == 0 {
		add("it has no moment: want %s", forms)
	}
	if !(c.Share > 0 && c.Share <= 1) { // also NaN
		add("share %v: want above 0 and up to 1", c.Share)
	}
	if why, ok := notYetStyle[c.Style]; ok {
		add("style %s %s", c.Style, why)
	}
	if c.Code != NoCode && c.Style != history.StreamReset {
		add("only stream-reset has an error code")
	}
	if early := c.Moment.inRequest(); early && c.Style == history.WrongSignal {
		add("wrong-signal needs a request that was sent: use sent or later")
	}
	return errs
}
