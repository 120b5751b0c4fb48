package metric

import (
	"fmt"
	"slices"
	"strings"
)

// ID names a metric.
type ID uint8

// The metrics, in the order in which they are listed.
const (
	None ID = iota
	Calls
	Attempts
	Reissues
	Cuts
	DroppedArrivals
	Streams
	FirstByte
	FirstEvent
	AttemptDuration
	CallDuration
	ReissueLatency
	Recovery
	TimeToStop
	SignalLatency
	NoticeTime
	CutLateness
	Stopped
	Late
	RanOn
	Finished
	Unknown
	PostCutEmissions
	StrayMessages
	EffectsAfterCut
	DuplicateEffects
	CanaryFailures
	WorkUnits
	Cost
	Effectiveness
	count // of IDs, None included
)

// Kind is what a metric's samples are, and so what a threshold may ask of them.
type Kind uint8

// The kinds.
const (
	Counter Kind = iota + 1 // a sum: count, rate
	Time                    // a histogram: avg, min, med, max, p(N), in milliseconds
	Value                   // one figure: value
)

var kindNames = [...]string{"", "counter", "time", "value"}

func (k Kind) String() string { return kindNames[k] }

// methods is what a threshold may ask of a kind.
var methods = [...][]string{Counter: {"count", "rate"}, Time: {"avg", "min", "med", "max", "p(N)"}, Value: {"value"}}

// Population is what a counter is counted among: while it is empty the counter
// is unknown, and its rate is a share of it.
type Population uint8

// The populations.
const (
	Everything   Population = iota // always there; the rate is per second of the run
	JudgedSignal                   // signal cuts with a verdict other than unknown
	JudgedCuts                     // cuts with a verdict other than unknown
	AllVerdicts                    // cuts with any verdict
	AllAttempts
	AllCalls
	Arrivals // calls that started or were dropped
	Probes   // of the canary
	populations
)

var populationNames = [...]string{"second of the run", "judged cut that signals", "judged cut", "cut with a verdict", "attempt", "call", "arrival", "canary probe"}

func (p Population) String() string { return populationNames[p] }

// tagged is which tags a metric's samples carry.
type tagged uint8

const (
	byNothing tagged = iota
	byAttempt        // every tag but kind
	byKind           // kind alone
)

// Def describes a metric.
type Def struct {
	ID   ID
	Name string
	Kind Kind
	Of   Population
	Help string
	tags tagged
}

var defs = [count]Def{
	Calls:            {Name: "mcp_calls", Kind: Counter, tags: byAttempt, Help: "calls that were started"},
	Attempts:         {Name: "mcp_attempts", Kind: Counter, tags: byAttempt, Help: "requests sent, re-issues among them"},
	Reissues:         {Name: "mcp_reissues", Kind: Counter, tags: byAttempt, Help: "attempts beyond a call's first"},
	Cuts:             {Name: "mcp_cuts", Kind: Counter, tags: byAttempt, Help: "planned cuts that were carried out"},
	DroppedArrivals:  {Name: "mcp_dropped_arrivals", Kind: Counter, Of: Arrivals, tags: byNothing, Help: "arrivals that could not start"},
	Streams:          {Name: "mcp_streams", Kind: Value, tags: byNothing, Help: "most streams open at once"},
	FirstByte:        {Name: "mcp_first_byte", Kind: Time, tags: byAttempt, Help: "dial to first byte of the answer"},
	FirstEvent:       {Name: "mcp_first_event", Kind: Time, tags: byAttempt, Help: "dial to first event, or first body byte of a JSON answer"},
	AttemptDuration:  {Name: "mcp_attempt_duration", Kind: Time, tags: byAttempt, Help: "dial to result"},
	CallDuration:     {Name: "mcp_call_duration", Kind: Time, tags: byAttempt, Help: "planned start to delivered result, re-issues included"},
	ReissueLatency:   {Name: "mcp_reissue_latency", Kind: Time, tags: byAttempt, Help: "cut to first event of the next attempt"},
	Recovery:         {Name: "mcp_recovery", Kind: Time, tags: byAttempt, Help: "first cut to delivered result, of calls that were re-issued"},
	TimeToStop:       {Name: "mcp_time_to_stop", Kind: Time, tags: byAttempt, Help: "cut to last witnessed work"},
	SignalLatency:    {Name: "mcp_signal_latency", Kind: Time, tags: byAttempt, Help: "cut to the server's own cancel event"},
	NoticeTime:       {Name: "mcp_notice_time", Kind: Time, tags: byAttempt, Help: "silent cut to the end of the work"},
	CutLateness:      {Name: "mcp_cut_lateness", Kind: Time, tags: byAttempt, Help: "planned to real moment of a cut: our own error"},
	Stopped:          {Name: "mcp_stopped", Kind: Counter, Of: JudgedSignal, tags: byAttempt, Help: "cuts whose work stopped in time"},
	Late:             {Name: "mcp_late", Kind: Counter, Of: JudgedSignal, tags: byAttempt, Help: "cuts whose work stopped past the budget"},
	RanOn:            {Name: "mcp_ran_on", Kind: Counter, Of: JudgedSignal, tags: byAttempt, Help: "cuts whose work went on"},
	Finished:         {Name: "mcp_finished", Kind: Counter, Of: JudgedSignal, tags: byAttempt, Help: "cuts that came too late to be known: the work was complete"},
	Unknown:          {Name: "mcp_unknown", Kind: Counter, Of: AllVerdicts, tags: byAttempt, Help: "cuts that no witness could judge"},
	PostCutEmissions: {Name: "mcp_post_cut_emissions", Kind: Counter, Of: JudgedCuts, tags: byAttempt, Help: "messages for a request that was dead"},
	StrayMessages:    {Name: "mcp_stray_messages", Kind: Counter, Of: AllAttempts, tags: byAttempt, Help: "messages with another attempt's id or token"},
	EffectsAfterCut:  {Name: "mcp_effects_after_cut", Kind: Counter, Of: JudgedSignal, tags: byAttempt, Help: "side effects of a request that was dead"},
	DuplicateEffects: {Name: "mcp_duplicate_effects", Kind: Counter, Of: AllCalls, tags: byAttempt, Help: "side effects beyond a call's first"},
	CanaryFailures:   {Name: "mcp_canary_failures", Kind: Counter, Of: Probes, tags: byNothing, Help: "failed probes"},
	WorkUnits:        {Name: "mcp_work_units", Kind: Counter, tags: byKind, Help: "steps of work, by kind"},
	Cost:             {Name: "mcp_cost", Kind: Counter, tags: byKind, Help: "money, by kind"},
	Effectiveness:    {Name: "mcp_effectiveness", Kind: Value, tags: byNothing, Help: "1: every cut stopped the work at once; 0: none did"},
}

// Defs lists every metric in order.
func Defs() []Def {
	out := make([]Def, 0, count-1)
	for id := None + 1; id < count; id++ {
		out = append(out, id.Def())
	}
	return out
}

// Def describes the metric.
func (id ID) Def() Def {
	d := defs[id]
	d.ID = id
	return d
}

func (id ID) String() string { return defs[id].Name }

// ParseID reads a metric's name.
func ParseID(s string) (ID, error) {
	for id := None + 1; id < count; id++ {
		if defs[id].Name == s {
			return id, nil
		}
	}
	names := make([]string, 0, count-1)
	for _, d := range Defs() {
		names = append(names, d.Name)
	}
	return None, fmt.Errorf("unknown metric %q: want one of %s", s, strings.Join(names, ", "))
}

// Tags are the tags of a sample. Empty ones are not set. Tags are comparable.
type Tags struct {
	Style, Phase, Tool, Instance, HTTP, Protocol, Scenario, Profile, Grade, Kind string
}

const numTags = 10

var tagNames = [numTags]string{"style", "phase", "tool", "instance", "http", "protocol", "scenario", "profile", "grade", "kind"}

// tag points at the tag of a name, nil if there is none.
func (t *Tags) tag(name string) *string {
	i := slices.Index(tagNames[:], name)
	if i < 0 {
		return nil
	}
	return [numTags]*string{&t.Style, &t.Phase, &t.Tool, &t.Instance, &t.HTTP, &t.Protocol, &t.Scenario, &t.Profile, &t.Grade, &t.Kind}[i]
}

// may reports which tags a metric's samples can carry.
func (t tagged) may() []string {
	switch t {
	case byAttempt:
		return tagNames[:numTags-1]
	case byKind:
		return tagNames[numTags-1:]
	}
	return nil
}
