package results

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"time"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/oracle"
)

// SummarySchema names the form of a summary.
const SummarySchema = "mcpflood/summary/v1"

// Summary is what a run came to. Every key is always present; one that does not
// apply is null. Times are in seconds where a key ends in _s.
type Summary struct {
	Schema         string            `json:"schema"`
	Run            Run               `json:"run"`
	Verdict        history.Judgement `json:"verdict"`
	Reasons        []string          `json:"reasons"`
	Thresholds     []Threshold       `json:"thresholds"`
	Counts         Counts            `json:"counts"`
	Times          map[string]Times  `json:"times_s"`
	Survival       []Survival        `json:"survival"`
	Work           []Work            `json:"work"`
	Cost           Cost              `json:"cost"`
	Effectiveness  *float64          `json:"effectiveness"`
	EffectivenessN int               `json:"effectiveness_n"`
	StopWithin     *float64          `json:"stop_within_s"`
	Clean          Clean             `json:"clean"`
	Groups         []Group           `json:"groups"`
	Witnesses      []Witness         `json:"witnesses"`
	Canary         Canary            `json:"canary"`
	Driver         Driver            `json:"driver"`
	Findings       []Finding         `json:"findings"`
}

// Run says which run it was.
type Run struct {
	ID       string    `json:"id"`
	Seed     uint64    `json:"seed"`
	Started  time.Time `json:"started"`
	Duration float64   `json:"duration_s"`
	Command  Opt       `json:"command"`
	Scenario Opt       `json:"scenario"`
	Targets  []string  `json:"targets"`
	HTTP     Opt       `json:"http"`
	Protocol Opt       `json:"protocol"`
	Version  Opt       `json:"version"`
	Host     *Host     `json:"host"`
}

// Threshold is a threshold and what it came to: OK and Value are null where the
// figure is unknown. Value is in milliseconds for times, and a lower bound
// where the figure touches a censored sample.
type Threshold struct {
	Metric string   `json:"metric"`
	Expr   string   `json:"expr"`
	OK     *bool    `json:"ok"`
	Value  *float64 `json:"value"`
}

// Counts are counters of load calls and attempts; clean, closing and probe
// calls are in none of them. Null in a group: counted for the run only. Null in
// the effects: no witness can see one.
type Counts struct {
	Calls            *int      `json:"calls"`
	Delivered        *int      `json:"delivered"`
	Failed           *int      `json:"failed"`
	Attempts         int       `json:"attempts"`
	Reissues         *int      `json:"reissues"`
	PlannedCuts      int       `json:"planned_cuts"`
	Cuts             int       `json:"cuts"`
	MissedCuts       *int      `json:"missed_cuts"`
	DroppedArrivals  *int      `json:"dropped_arrivals"`
	Abandoned        *int      `json:"abandoned"`
	ToolErrors       int       `json:"tool_errors"`
	Verdicts         Verdicts  `json:"verdicts"`
	PostCutEmissions int       `json:"post_cut_emissions"`
	PostCutBytes     int64     `json:"post_cut_bytes"`
	StrayMessages    int       `json:"stray_messages"`
	Effects          *int      `json:"effects"`
	EffectsAfterCut  *int      `json:"effects_after_cut"`
	EffectsInRace    *int      `json:"effects_in_race"`
	DuplicateEffects *int      `json:"duplicate_effects"`
	Evidence         *Evidence `json:"evidence"`
}

// Verdicts counts cut attempts by verdict.
type Verdicts struct {
	Stopped   int `json:"stopped"`
	Late      int `json:"late"`
	RanOn     int `json:"ran_on"`
	Finished  int `json:"finished"`
	Noticed   int `json:"noticed"`
	Unnoticed int `json:"unnoticed"`
	WentOn    int `json:"went_on"`
	HungUp    int `json:"hung_up"`
	Survived  int `json:"survived"`
	Lost      int `json:"lost"`
	Unknown   int `json:"unknown"`
}

// of points at the counter of a verdict, nil for none.
func (v *Verdicts) of(x history.Verdict) *int {
	switch x {
	case history.Stopped:
		return &v.Stopped
	case history.Late:
		return &v.Late
	case history.RanOn:
		return &v.RanOn
	case history.Finished:
		return &v.Finished
	case history.Noticed:
		return &v.Noticed
	case history.Unnoticed:
		return &v.Unnoticed
	case history.WentOn:
		return &v.WentOn
	case history.HungUp:
		return &v.HungUp
	case history.Survived:
		return &v.Survived
	case history.Lost:
		return &v.Lost
	case history.Unknown:
		return &v.Unknown
	}
	return nil
}

// Evidence counts what the witnesses gave.
type Evidence struct {
	Attributed   int `json:"attributed"`
	Unattributed int `json:"unattributed"`
	Ambiguous    int `json:"ambiguous"`
	Foreign      int `json:"foreign"`
	Late         int `json:"late"`
}

// Times are the statistics of one time. Count holds the censored samples too:
// those are only known to have lasted at least so long, count as endless in the
// percentiles, and make every figure that touches one a lower bound.
type Times struct {
	Count    int64    `json:"count"`
	Censored int64    `json:"censored"`
	Min      *float64 `json:"min"`
	Mean     *float64 `json:"mean"`
	P50      *float64 `json:"p50"`
	P90      *float64 `json:"p90"`
	P95      *float64 `json:"p95"`
	P99      *float64 `json:"p99"`
	P999     *float64 `json:"p999"`
	Max      *float64 `json:"max"`
}

// Survival is the share of cut attempts whose work was still going on so many
// seconds after the cut.
type Survival struct {
	Style  history.Style `json:"style"`
	Phase  history.Phase `json:"phase"`
	Points [][2]float64  `json:"points"`
}

// Amounts splits work, or its price, by what became of it. The first seven
// parts, without projection and duplicates, add up to Total.
type Amounts struct {
	Useful         *float64 `json:"useful"`
	Lost           *float64 `json:"lost"`
	RunOn          *float64 `json:"run_on"`
	RunOnProjected *float64 `json:"run_on_projected"`
	Unnoticed      *float64 `json:"unnoticed"`
	Errored        *float64 `json:"errored"`
	Abandoned      *float64 `json:"abandoned"`
	Unattributed   *float64 `json:"unattributed"`
	Duplicate      *float64 `json:"duplicate"`
	Total          *float64 `json:"total"`
	Counterfactual *float64 `json:"counterfactual"`
}

// Work is the amounts of one unit.
type Work struct {
	Unit string `json:"unit"`
	Amounts
}

// Cost is the amounts in money; all null without prices.
type Cost struct {
	Currency Opt `json:"currency"`
	Amounts
}

// Clean is what uncut attempts gave.
type Clean struct {
	Median *float64 `json:"median_s"`
	Units  *float64 `json:"units"`
	Gap    *float64 `json:"gap_s"`
}

// Group is the part of a run that was cut in one style at one phase.
type Group struct {
	Tags          GroupTags        `json:"tags"`
	Counts        Counts           `json:"counts"`
	Times         map[string]Times `json:"times_s"`
	Work          []Work           `json:"work"`
	Cost          Cost             `json:"cost"`
	Effectiveness *float64         `json:"effectiveness"`
}

// GroupTags name a group.
type GroupTags struct {
	Style history.Style `json:"style"`
	Phase history.Phase `json:"phase"`
}

// Witness is a source of evidence and what came of it.
type Witness struct {
	Kind       string        `json:"kind"`
	Source     string        `json:"source"`
	Grade      history.Grade `json:"grade"`
	Events     int           `json:"events"`
	Attributed int           `json:"attributed"`
}

// Canary is whether the server went on to serve others.
type Canary struct {
	Probes        int      `json:"probes"`
	Failures      int      `json:"failures"`
	P50           *float64 `json:"p50_s"`
	P99           *float64 `json:"p99_s"`
	LongestOutage float64  `json:"longest_outage_s"`
}

// Driver is our own state: where Limited, no time of the run is the server's.
type Driver struct {
	CPUMax      float64 `json:"cpu_max"`
	LatenessP99 float64 `json:"lateness_p99_s"`
	OpenFiles   int     `json:"open_files"`
	Limited     bool    `json:"limited"`
}

// Finding is one thing to know.
type Finding struct {
	ID       string           `json:"id"`
	Severity history.Severity `json:"severity"`
	Text     string           `json:"text"`
	Where    Where            `json:"where"`
	Count    int              `json:"count"`
	Attempts []history.Ref    `json:"attempts"`
	Evidence []oracle.Cite    `json:"evidence"`
}

// Where names the part of a run a finding is about; null means all.
type Where struct {
	Style    Opt `json:"style"`
	Phase    Opt `json:"phase"`
	Tool     Opt `json:"tool"`
	Instance Opt `json:"instance"`
}

// Opt is a text whose absence is null in JSON.
type Opt string

// MarshalJSON gives null for the empty text.
func (o Opt) MarshalJSON() ([]byte, error) {
	if o == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(o))
}

// ReadSummary reads the summary of a run directory.
func ReadSummary(dir string) (*Summary, error) {
	path := filepath.Join(dir, SummaryFile)
	var s Summary
	if err := readJSON(path, &s); err != nil {
		return nil, err
	}
	if s.Schema != SummarySchema {
		return nil, fmt.Errorf("results: %s has schema %q: want %s", path, s.Schema, SummarySchema)
	}
	return &s, nil
}

// WriteJSON writes the summary as indented JSON.
func (s *Summary) WriteJSON(w io.Writer) error { return writeJSON(w, s) }

// seconds is d in seconds, to the microsecond: evidence is no finer.
func seconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond).Microseconds()) / 1e6
}

func secondsOrNull(d time.Duration, known bool) *float64 {
	if !known {
		return nil
	}
	return ptr(seconds(d))
}

// decimals is how far a figure is kept: what lies beyond is the rounding of
// binary fractions.
const decimals = 1e9

func round(x float64) float64 { return math.Round(x*decimals) / decimals }

func roundOrNull(x *float64) *float64 {
	if x == nil {
		return nil
	}
	return ptr(round(*x))
}

func ptr[T any](v T) *T { return &v }
