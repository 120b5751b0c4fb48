package history

import (
	"fmt"
	"strings"
)

// names maps the values of one enum to their texts; index 0 is the zero value,
// whose text is empty.
type names []string

func (n names) text(v uint8) string {
	if int(v) < len(n) {
		return n[v]
	}
	return fmt.Sprintf("invalid(%d)", v)
}

func (n names) parse(kind, s string) (uint8, error) {
	for i, name := range n {
		if name == s {
			return uint8(i), nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q: want one of %s", kind, s, strings.Join(n[1:], ", "))
}

// Style is how a cut breaks an attempt.
type Style uint8

// The styles. StyleNone means the attempt is not cut.
const (
	StyleNone   Style = iota
	Fin               // orderly close, the receive buffer drained first
	Reset             // RST by SO_LINGER 0
	HalfClose         // SHUT_WR: we stop sending and keep reading
	StreamReset       // HTTP/2 RST_STREAM
	Vanish            // packets dropped both ways, neither FIN nor RST
	Stall             // the socket is kept, nothing is read any more
	Slow              // a few bytes a second are read
	Notify            // stdio: notifications/cancelled
	WrongSignal       // HTTP: posts notifications/cancelled, keeps the stream
)

var styleNames = names{"", "fin", "reset", "half-close", "stream-reset", "vanish", "stall", "slow", "notify", "wrong-signal"}

// Styles lists every style but StyleNone.
func Styles() []Style {
	out := make([]Style, 0, len(styleNames)-1)
	for i := 1; i < len(styleNames); i++ {
		out = append(out, Style(i))
	}
	return out
}

func (s Style) String() string               { return styleNames.text(uint8(s)) }
func (s Style) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText accepts the texts of String.
func (s *Style) UnmarshalText(b []byte) error {
	v, err := styleNames.parse("style", string(b))
	*s = Style(v)
	return err
}

// Class groups styles by what a server can be expected to know.
type Class uint8

// The classes. Signal styles tell the server that the client has left; silent
// ones look like a slow or dead network; open ones leave the answer wanted.
const (
	ClassNone Class = iota
	ClassSignal
	ClassSilent
	ClassOpen
)

var classNames = names{"", "signal", "silent", "open"}

func (c Class) String() string               { return classNames.text(uint8(c)) }
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText accepts the texts of String.
func (c *Class) UnmarshalText(b []byte) error {
	v, err := classNames.parse("class", string(b))
	*c = Class(v)
	return err
}

// Class reports which class a style belongs to.
func (s Style) Class() Class {
	switch s {
	case Fin, Reset, StreamReset, Notify:
		return ClassSignal
	case Vanish, Stall, Slow:
		return ClassSilent
	case HalfClose, WrongSignal:
		return ClassOpen
	}
	return ClassNone
}

// Phase is where in an attempt's life something happened.
type Phase uint8

// The phases, in the order an attempt lives through them.
const (
	PhaseNone    Phase = iota
	PhaseConnect       // dialling, TLS
	PhaseHead          // inside the request head
	PhaseBody          // inside the request body
	PhaseSent          // request complete, no response byte yet
	PhaseHeaders       // response head read, no event yet
	PhaseMid           // between events
	PhaseEvent         // inside an event's bytes
	PhaseTail          // last side effect done, result not yet sent
	PhaseDone          // result read
)

var phaseNames = names{"", "connect", "head", "body", "sent", "headers", "mid", "event", "tail", "done"}

// Phases lists every phase but PhaseNone, in order.
func Phases() []Phase {
	out := make([]Phase, 0, len(phaseNames)-1)
	for i := 1; i < len(phaseNames); i++ {
		out = append(out, Phase(i))
	}
	return out
}

func (p Phase) String() string               { return phaseNames.text(uint8(p)) }
func (p Phase) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText accepts the texts of String.
func (p *Phase) UnmarshalText(b []byte) error {
	v, err := phaseNames.parse("phase", string(b))
	*p = Phase(v)
	return err
}

// Origin is who caused an end or an error. Only peer may be held against the
// server.
type Origin uint8

// The origins.
const (
	OriginNone Origin = iota
	Us                // mcpflood itself: time-outs, drains, our own limits
	Chaos             // a planned cut
	Network           // the path: refused, unreachable
	Peer              // the server
)

var originNames = names{"", "us", "chaos", "network", "peer"}

func (o Origin) String() string               { return originNames.text(uint8(o)) }
func (o Origin) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText accepts the texts of String.
func (o *Origin) UnmarshalText(b []byte) error {
	v, err := originNames.parse("origin", string(b))
	*o = Origin(v)
	return err
}

// Outcome is how an attempt ended from the client's side.
type Outcome uint8

// The outcomes.
const (
	OutcomeNone Outcome = iota
	Delivered           // a result with the right id and resultType complete was read
	Cut                 // a planned cut, or a time-out, ended it without a result
	Refused             // an HTTP error status, a JSON-RPC error or nonsense answered it
	Broken              // the stream ended with neither result nor error; origin says by whom
	Failed              // it never got through: dial, TLS or write failed
	Drained             // the end of the run closed it: class abandoned
	MoreInput           // resultType input_required: the call goes on with another attempt
	TaskHandle          // resultType task
)

var outcomeNames = names{"", "delivered", "cut", "refused", "broken", "failed", "drained", "input_required", "task"}

func (o Outcome) String() string               { return outcomeNames.text(uint8(o)) }
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText accepts the texts of String.
func (o *Outcome) UnmarshalText(b []byte) error {
	v, err := outcomeNames.parse("outcome", string(b))
	*o = Outcome(v)
	return err
}

// Kind is what one piece of evidence says.
type Kind uint8

// The kinds of evidence.
const (
	KindNone   Kind = iota
	Work            // units of work were done
	Stop            // the server says it stopped the attempt
	Completion      // the server says the attempt ran to its end
	Effect          // a side effect happened
	Emission        // a JSON-RPC message came for a dead attempt
	Stray           // a message carried another attempt's id or token
	WrongID         // an answer carried an id that is not this attempt's and not another live one's
	Replayed        // events of an earlier request came again
	Noise           // an error line
)

var kindNames = names{"", "work", "stop", "done", "effect", "emission", "stray", "wrong-id", "replay", "noise"}

func (k Kind) String() string               { return kindNames.text(uint8(k)) }
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText accepts the texts of String.
func (k *Kind) UnmarshalText(b []byte) error {
	v, err := kindNames.parse("kind", string(b))
	*k = Kind(v)
	return err
}

// Grade is how strong the evidence behind a verdict is; A is strongest.
type Grade uint8

// The grades: A meter or effects, B trace, C log or labelled metric, D
// aggregate gauge or inference.
const (
	GradeNone Grade = iota
	GradeA
	GradeB
	GradeC
	GradeD
)

var gradeNames = names{"", "A", "B", "C", "D"}

func (g Grade) String() string               { return gradeNames.text(uint8(g)) }
func (g Grade) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText accepts the texts of String.
func (g *Grade) UnmarshalText(b []byte) error {
	v, err := gradeNames.parse("grade", string(b))
	*g = Grade(v)
	return err
}

// Verdict is the judgement of one cut attempt.
type Verdict uint8

// The verdicts. VerdictNone means the attempt is not judged: it was not cut,
// its cut missed, or it ended outside all verdicts.
const (
	VerdictNone Verdict = iota
	Stopped
	Late
	RanOn
	Finished
	Noticed
	Unnoticed
	WentOn
	HungUp
	Survived
	Lost
	Unknown
)

var verdictNames = names{"", "stopped", "late", "ran_on", "finished", "noticed", "unnoticed", "went_on", "hung_up", "survived", "lost", "unknown"}

// Verdicts lists every verdict but VerdictNone.
func Verdicts() []Verdict {
	out := make([]Verdict, 0, len(verdictNames)-1)
	for i := 1; i < len(verdictNames); i++ {
		out = append(out, Verdict(i))
	}
	return out
}

func (v Verdict) String() string               { return verdictNames.text(uint8(v)) }
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText accepts the texts of String.
func (v *Verdict) UnmarshalText(b []byte) error {
	x, err := verdictNames.parse("verdict", string(b))
	*v = Verdict(x)
	return err
}

// Judgement is the result of a check or a run. The zero value is Unjudged;
// fail outranks unknown, which outranks pass.
type Judgement uint8

// The judgements, weakest first.
const (
	Unjudged Judgement = iota
	Pass
	Undecided // written "unknown"
	Fail
)

var judgementNames = names{"", "pass", "unknown", "fail"}

func (j Judgement) String() string               { return judgementNames.text(uint8(j)) }
func (j Judgement) MarshalText() ([]byte, error) { return []byte(j.String()), nil }

// UnmarshalText accepts the texts of String.
func (j *Judgement) UnmarshalText(b []byte) error {
	v, err := judgementNames.parse("judgement", string(b))
	*j = Judgement(v)
	return err
}

// Worse returns the one that outranks the other: fail > unknown > pass.
func (j Judgement) Worse(k Judgement) Judgement { return max(j, k) }

// Severity is how much a finding weighs. Only SeverityFail fails a run, unless
// the run is strict.
type Severity uint8

// The severities.
const (
	SeverityNone Severity = iota
	SeverityNote
	SeverityWarn
	SeverityFail
)

var severityNames = names{"", "note", "warn", "fail"}

func (s Severity) String() string               { return severityNames.text(uint8(s)) }
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText accepts the texts of String.
func (s *Severity) UnmarshalText(b []byte) error {
	v, err := severityNames.parse("severity", string(b))
	*s = Severity(v)
	return err
}
