package chaos

import (
	"fmt"
	"math"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// Clean is what the clean calls before the load gave.
type Clean struct {
	Median  time.Duration // request sent → result read
	TailGap time.Duration // last event → result
	Events  int           // complete events before the result; 0 for JSON answers
}

// Cut is the decision for one attempt.
type Cut struct {
	Clause  int // index into Plan.Clauses
	Style   history.Style
	Code    Code // of a stream-reset
	Trigger Trigger
}

// TriggerKind is what an attempt's cut waits for.
type TriggerKind uint8

// The kinds of trigger.
const (
	TriggerNone TriggerKind = iota
	AtPhase                 // Phase begins; for tail see Trigger
	AfterSent               // After has passed since the request's last byte was written
	AtEvent                 // an event: see Trigger
	AtBytes                 // Bytes of response body were read, after transfer decoding
	InRequest               // Bytes of the request's head or body (Phase) were written; Bytes 0: the share Part of it
	AfterQuiet              // nothing has come for After
	AtClock                 // the run's clock reaches a multiple of After
)

// Trigger is a moment resolved for one attempt. It is comparable.
//
// AtEvent with Offset 0 fires right after the Event-th complete event was
// parsed; with Offset k it fires k bytes into the Event-th event.
//
// AtPhase tail fires After later than the event whose progress equals its
// total; where no event carries a total, than the Event-th event; where Event
// is 0 (a clean answer has no events), than Base after the request was sent.
type Trigger struct {
	Kind   TriggerKind
	Phase  history.Phase
	After  time.Duration
	Base   time.Duration
	Event  int
	Offset int
	Bytes  int64
	Part   float64
}

// String is the resolved moment as text: "sent", "after(1.52s)", "event(3)",
// "tail+150ms".
func (t Trigger) String() string {
	switch t.Kind {
	case AtPhase:
		if t.Phase == history.PhaseTail {
			return "tail+" + durationText(t.After)
		}
		return t.Phase.String()
	case AfterSent:
		return "after(" + durationText(t.After) + ")"
	case AtEvent:
		return eventText(t.Event, t.Offset)
	case AtBytes:
		return fmt.Sprintf("bytes(%d)", t.Bytes)
	case InRequest:
		if t.Bytes == 0 {
			return fmt.Sprintf("%s at %.2f", t.Phase, t.Part)
		}
		return fmt.Sprintf("%s(%d)", t.Phase, t.Bytes)
	case AfterQuiet:
		return "quiet(" + durationText(t.After) + ")"
	case AtClock:
		return "every(" + durationText(t.After) + ")"
	}
	return ""
}

// Named is the phase that the trigger asks for by name; none for others.
func (t Trigger) Named() history.Phase { return t.Phase }

// Expected is about how long after its request was sent an attempt gets cut,
// if it behaves like a clean one.
func (t Trigger) Expected(clean Clean) time.Duration {
	switch t.Kind {
	case AfterSent:
		return t.After
	case AtEvent:
		if clean.Events > 0 {
			return time.Duration(float64(clean.Median-clean.TailGap) * min(1, float64(t.Event)/float64(clean.Events)))
		}
	case AtPhase:
		if t.Phase == history.PhaseTail || t.Phase == history.PhaseDone {
			return clean.Median
		}
	}
	return 0
}

// Purposes of the plan's own draws.
const (
	purposeShare  = "cut"
	purposeMoment = "moment"
)

// Cut decides about one attempt: whether the plan cuts it, and where. Only load
// attempts are ever cut. The shares of the clauses part [0,1) among them in
// order, and one draw picks the clause, so an attempt has at most one cut.
//
// clean resolves part, mid and tail; everything else depends on the seed and
// ref alone.
func (p Plan) Cut(ref history.Ref, clean Clean) (Cut, bool) {
	if ref.Role != history.Load || ref.Attempt == 0 || len(p.Clauses) == 0 {
		return Cut{}, false
	}
	u := Draw(p.Seed, ref, purposeShare)
	edge := 0.0
	for i, c := range p.Clauses {
		edge += c.Share
		if u < edge || edge >= 1-shareSlack {
			v := Draw(p.Seed, ref, purposeMoment)
			return Cut{Clause: i, Style: c.Style, Code: c.Code, Trigger: c.Moment.resolve(v, clean, p.TailDelay)}, true
		}
	}
	return Cut{}, false
}

// resolve fixes the moment for one attempt with its draw v from [0,1).
func (m Moment) resolve(v float64, clean Clean, tailDelay time.Duration) Trigger {
	after := func(d float64) Trigger {
		return Trigger{Kind: AfterSent, After: time.Duration(d).Round(time.Microsecond)}
	}
	switch m.form {
	case formEvent:
		return Trigger{Kind: AtEvent, Event: m.event, Offset: m.offset}
	case formBytes:
		return Trigger{Kind: AtBytes, Bytes: m.bytes}
	case formAfter:
		return Trigger{Kind: AfterSent, After: m.from}
	case formUniform:
		return after(float64(m.from) + v*float64(m.to-m.from))
	case formExp:
		return after(float64(m.to) - math.Log1p(-v)*float64(m.from))
	case formHead:
		return Trigger{Kind: InRequest, Phase: history.PhaseHead, Bytes: m.bytes}
	case formBody:
		return Trigger{Kind: InRequest, Phase: history.PhaseBody, Bytes: m.bytes}
	case formQuiet:
		return Trigger{Kind: AfterQuiet, After: m.from}
	case formEvery:
		return Trigger{Kind: AtClock, After: m.from}
	case formPart:
		return after((m.lo + v*(m.hi-m.lo)) * float64(clean.Median))
	}
	switch m.phase {
	case history.PhaseHead, history.PhaseBody:
		return Trigger{Kind: InRequest, Phase: m.phase, Part: v}
	case history.PhaseEvent:
		// One draw gives the event and, by what is left of it, the byte: every
		// event of JSON-RPC is longer than maxInto.
		n := max(1, clean.Events)
		at := v * float64(n)
		event := min(int(at), n-1)
		return Trigger{Kind: AtEvent, Phase: m.phase, Event: 1 + event, Offset: 1 + int((at-float64(event))*maxInto)}
	case history.PhaseMid:
		// mid is between events: never after the last one, where only the
		// result is still to come, unless there is no other.
		n := max(1, clean.Events-1)
		return Trigger{Kind: AtEvent, Phase: m.phase, Event: 1 + min(int(v*float64(n)), n-1)}
	case history.PhaseTail:
		if tailDelay < 0 {
			tailDelay = clean.TailGap / 2
		}
		return Trigger{Kind: AtPhase, Phase: m.phase, After: tailDelay,
			Event: clean.Events, Base: max(0, clean.Median-clean.TailGap)}
	}
	return Trigger{Kind: AtPhase, Phase: m.phase}
}

// maxInto is how far into an event the phase event cuts at most.
const maxInto = 30

// Draw gives a number in [0,1) that depends on nothing but its arguments: the
// one source of every random decision. A purpose names the decision, so that
// two decisions about one attempt are independent. The hash is fixed for ever:
// a seed means the same on every machine and in every version.
func Draw(seed uint64, ref history.Ref, purpose string) float64 {
	const fnvOffset, fnvPrime = 14695981039346656037, 1099511628211
	h := uint64(fnvOffset)
	for i := range len(purpose) {
		h = (h ^ uint64(purpose[i])) * fnvPrime
	}
	for _, v := range [...]uint64{seed, uint64(ref.Role), ref.Call, uint64(ref.Attempt)} {
		h = splitmix(h ^ v)
	}
	return float64(h>>11) / (1 << 53)
}

// splitmix is the step of the SplitMix64 generator: a bijection in which each
// input bit changes half of the output bits.
func splitmix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Warnings tells which clauses ask for moments that lie beyond the life of a
// clean attempt, and so will miss some or all of their cuts.
func (p Plan) Warnings(clean Clean) []string {
	var out []string
	for _, c := range p.Clauses {
		if why := c.Moment.beyond(clean); why != "" {
			out = append(out, fmt.Sprintf("cut %s: %s", c, why))
		}
	}
	return out
}

// manyMissed is the share of an exponential clause's cuts that may lie beyond
// the clean duration before it is worth a warning: its tail always does.
const manyMissed = 0.5

func (m Moment) beyond(clean Clean) string {
	timed := func(missed float64) string {
		switch {
		case missed >= 1:
			return fmt.Sprintf("its moment lies beyond the clean duration of %s: every cut will be missed", roundText(clean.Median))
		case missed > 0:
			return fmt.Sprintf("about %.0f %% of its moments lie beyond the clean duration of %s: those cuts will be missed", 100*missed, roundText(clean.Median))
		}
		return ""
	}
	d := float64(clean.Median)
	switch {
	case m.form == formEvent && m.event > clean.Events, m.phase == history.PhaseMid && clean.Events == 0:
		return fmt.Sprintf("a clean answer has %d event(s) before its result: every cut will be missed", clean.Events)
	case m.form == formAfter:
		return timed(shareAbove(float64(m.from), float64(m.from), d))
	case m.form == formUniform:
		return timed(shareAbove(float64(m.from), float64(m.to), d))
	case m.form == formPart:
		return timed(shareAbove(m.lo, m.hi, 1))
	case m.form == formExp:
		if missed := math.Exp(-d / float64(m.from)); missed > manyMissed {
			return timed(missed)
		}
	}
	return ""
}

// shareAbove is the part of the uniform interval [lo, hi] that is not below
// the limit.
func shareAbove(lo, hi, limit float64) float64 {
	switch {
	case lo >= limit:
		return 1
	case hi <= limit:
		return 0
	}
	return (hi - limit) / (hi - lo)
}

func roundText(d time.Duration) string {
	if d >= time.Second {
		return durationText(d.Round(10 * time.Millisecond))
	}
	return durationText(d.Round(100 * time.Microsecond))
}
