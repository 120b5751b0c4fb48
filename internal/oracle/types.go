// Package oracle judges a history: a pure function from records to judged
// attempts, findings and a verdict. It knows no net, no files and no clock.
package oracle

import (
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// Interval bounds a moment in run time. The zero Interval means "never".
type Interval struct{ Lo, Hi time.Duration }

// IsZero reports whether the moment never came.
func (i Interval) IsZero() bool { return i == Interval{} }

// Work is how many units of one kind an attempt did, split at its cut. Of an
// attempt that was not cut everything is Before.
type Work struct {
	Unit   string  // "step", "token", ...
	Before float64 // not proven after the cut
	After  float64 // lo > c1
	// Projected is After plus what a ran_on attempt still working when the watch
	// ended would do up to a clean attempt's median; After where nothing is
	// projected.
	Projected float64
}

// Total is all witnessed work.
func (w Work) Total() float64 { return w.Before + w.After }

// Cite quotes one piece of evidence.
type Cite struct {
	Source int           `json:"source"`
	Name   string        `json:"name"` // the witness: a file, a URL, "wire"
	Line   int64         `json:"line,omitempty"`
	Kind   history.Kind  `json:"kind"`
	Lo     time.Duration `json:"lo_ns"`
	Hi     time.Duration `json:"hi_ns"`
	Text   string        `json:"text"`
}

// Judged is one attempt with everything the history knows of it and the
// verdict. It is read-only.
type Judged struct {
	Start history.Start
	End   history.End // the zero End (Outcome none) if the history was cut short before it

	Class         history.Class // of the cut that was carried out; none for uncut, missed
	Discriminates bool
	Verdict       history.Verdict
	Reason        string // never_seen, too_late, buffered, ... ; empty where the verdict speaks for itself
	Fix           string // for unknown: what would decide it
	Grade         history.Grade

	Seen      bool // a witness saw it
	Completed bool // evidence (or the result) shows that it ran to its end
	Working   bool // still working when its watch ended
	Work      []Work
	LastWork  Interval
	FirstStop Interval // the server's own cancel event
	// RecordsAfter counts records of work proven after the cut.
	RecordsAfter int

	// TimeToStop is c1 → last witnessed work, 0 if none came after. Censored:
	// the work was still going on then.
	TimeToStop time.Duration
	Timed      bool // TimeToStop is known
	Censored   bool
	// SignalLatency is c1 → FirstStop; negative where there is none.
	SignalLatency time.Duration
	// NoticeTime is c1 → the stop of a silent cut; negative where there is none.
	NoticeTime time.Duration

	Effects          int
	EffectsAfterCut  int
	EffectsInRace    int
	DuplicateEffects int  // effects of its call beyond the first, done by this attempt after a re-issue of ours
	Duplicate        bool // an earlier attempt of its call ran to its end all the same
	Emissions        int
	Strays           int // messages of other attempts on this one's stream
	WrongIDs         int // those of them that were answers
	LateEvidence     int

	Cites []Cite // what proves the verdict, at most MaxCites
}

// MaxCites bounds the evidence quoted for one attempt.
const MaxCites = 4

// Finding is one thing to know about the server, or about the evidence.
type Finding struct {
	ID       string           `json:"id"`
	Severity history.Severity `json:"severity"`
	Text     string           `json:"text"`
	Where    Where            `json:"where"`
	Count    int              `json:"count"`
	Attempts []history.Ref    `json:"attempts"` // at most MaxAttempts
	Evidence []Cite           `json:"evidence"` // at most MaxEvidence
	// UndecidedOnly holds for findings that make a run unknown rather than fail.
	UndecidedOnly bool `json:"-"`
}

// Judgement is what the finding makes of a run; strict counts notes and
// warnings as fail. Pass means that it does no harm.
func (f Finding) Judgement(strict bool) history.Judgement {
	switch {
	case f.Severity != history.SeverityFail && !strict:
		return history.Pass
	case f.UndecidedOnly:
		return history.Undecided
	}
	return history.Fail
}

// Bounds on what a finding quotes.
const (
	MaxAttempts = 20
	MaxEvidence = 5
)

// Where names the part of the run a finding is about; empty fields mean all.
type Where struct {
	Style    history.Style `json:"style"`
	Phase    history.Phase `json:"phase"`
	Tool     string        `json:"tool"`
	Instance string        `json:"instance"`
}

// Counts are whole-run counters of load attempts (clean, closing and probe
// calls are in none of them).
type Counts struct {
	Calls, Delivered, Failed, Attempts, Reissues int
	PlannedCuts, Cuts, MissedCuts                int
	DroppedArrivals, Abandoned, ToolErrors       int
	Verdicts                                     map[history.Verdict]int
	PostCutEmissions                             int
	PostCutBytes                                 int64
	StrayMessages                                int
	Effects, EffectsAfterCut, EffectsInRace      int
	DuplicateEffects                             int
	Attributed, Unattributed, Ambiguous          int
	Foreign, Late                                int
}

// Seen is one witness and what came of it.
type Seen struct {
	history.Witness
	Events     int
	Attributed int
	Gaps       int
	// Lag is L: poll interval plus the largest delay of evidence on delivered
	// attempts. Offset bounds the source's clock against ours.
	Lag    time.Duration
	Offset Interval
	Broken string // why its times or its silence cannot be used; empty if they can
	Gauge  *Gauge // of a source that samples an in-flight gauge
}

// Gauge is what an aggregate in-flight gauge told (judging section 4).
type Gauge struct {
	Baseline float64
	Samples  int    // scrapes that could be compared
	Inside   bool   // every one of them lay between its bounds
	Zombies  int    // at least so many attempts worked on at one time
	Why      string // why it tells nothing; empty if it does
	// ZombieSeconds bounds the time that cut attempts kept the gauge up, and
	// MeanToStop is its lower bound by signal cut.
	ZombieSeconds [2]float64
	MeanToStop    time.Duration
}

// Canary sums up the canary's probes.
type Canary struct {
	Probes, Failures int
	Latencies        []time.Duration
	LongestOutage    time.Duration
}

// Driver sums up mcpflood's own state.
type Driver struct {
	CPUMax      float64
	LatenessP99 time.Duration // of starts and cuts, the larger
	OpenFiles   int
	Streams     int // most at once
	Limited     bool
	Why         string
}

// Params are the figures that need the whole run: pass 1.
type Params struct {
	StopWithin  time.Duration // S
	Watch       time.Duration
	CleanMedian time.Duration // all clean attempts: clean, closing, and uncut delivered load attempts
	Gap         time.Duration // g: the largest gap a source left in clean attempts
	// Units of a clean attempt, of the unit that most attempts show; UnitMedians
	// has every unit's median.
	UnitsMin    float64
	UnitsMedian float64
	UnitsMax    float64
	UnitMedians map[string]float64
}

// Report is what the oracle says of a whole run, without thresholds and money.
type Report struct {
	Run       history.Run
	Budget    history.Budget
	Params    Params
	Counts    Counts
	Witnesses []Seen
	Canary    Canary
	Driver    Driver
	Findings  []Finding // worst first
	Judgement history.Judgement
	Reasons   []string
	// Unnamed is how many attempts aggregates prove to have run on without
	// naming them: Counts has them as ran_on, their Judged say unknown.
	Unnamed int
	// Unseen says what a pass cannot exclude with these witnesses.
	Unseen []string
	// Unattributed is work that fits no attempt, by unit.
	Unattributed map[string]float64
	CutShort     bool
	Duration     time.Duration
	Closed       string // reason of the end
}
