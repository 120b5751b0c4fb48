package results

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/oracle"
)

// Attempt is one judged attempt as a line of JSON. Every key is always present,
// null where it does not apply; moments are seconds since the run's start.
type Attempt struct {
	Ref              history.Ref   `json:"ref"`
	ID               string        `json:"id"` // of the JSON-RPC request
	Tool             Opt           `json:"tool"`
	Instance         int           `json:"instance"`
	Outcome          Opt           `json:"outcome"`
	Origin           Opt           `json:"origin"`
	Clause           *int          `json:"clause"` // of the plan
	Moment           Opt           `json:"moment"` // planned
	Style            Opt           `json:"style"`
	Phase            Opt           `json:"phase"`
	Cause            Opt           `json:"cause"`
	Missed           bool          `json:"missed"`
	Class            Opt           `json:"class"`
	Discriminates    bool          `json:"discriminates"`
	Verdict          Opt           `json:"verdict"`
	Reason           Opt           `json:"reason"`
	Fix              Opt           `json:"fix"`
	Grade            Opt           `json:"grade"`
	Seen             bool          `json:"seen"`
	Completed        bool          `json:"completed"`
	Working          bool          `json:"working"`
	Work             []AttemptWork `json:"work"`
	Begun            float64       `json:"begun_s"`
	Sent             *float64      `json:"sent_s"`
	C0               *float64      `json:"c0_s"`
	C1               *float64      `json:"c1_s"`
	Ended            *float64      `json:"ended_s"`
	LastWork         *[2]float64   `json:"last_work_s"`
	FirstStop        *[2]float64   `json:"first_stop_s"`
	TimeToStop       *float64      `json:"time_to_stop_s"`
	Censored         bool          `json:"censored"`
	Effects          int           `json:"effects"`
	EffectsAfterCut  int           `json:"effects_after_cut"`
	EffectsInRace    int           `json:"effects_in_race"`
	DuplicateEffects int           `json:"duplicate_effects"`
	Duplicate        bool          `json:"duplicate"`
	Emissions        int           `json:"emissions"`
	Strays           int           `json:"strays"`
	LateEvidence     int           `json:"late_evidence"`
	Evidence         []oracle.Cite `json:"evidence"`
}

// AttemptWork is an attempt's work of one unit, split at its cut.
type AttemptWork struct {
	Unit      string  `json:"unit"`
	Before    float64 `json:"before"`
	After     float64 `json:"after"`
	Projected float64 `json:"projected"`
}

func interval(i oracle.Interval) *[2]float64 {
	if i.IsZero() {
		return nil
	}
	return &[2]float64{seconds(i.Lo), seconds(i.Hi)}
}

func describe(run history.Run, j *oracle.Judged) Attempt {
	s, e := &j.Start, &j.End
	moment := func(d time.Duration) *float64 { return secondsOrNull(d, d > 0) }
	a := Attempt{
		Ref: s.Ref, ID: run.Nonce.ID(s.Ref), Tool: Opt(cmp.Or(s.Tool, run.Tool)), Instance: s.Instance,
		Outcome: Opt(e.Outcome.String()), Origin: Opt(e.Origin.String()), Missed: e.Missed,
		Class: Opt(j.Class.String()), Discriminates: j.Discriminates, Verdict: Opt(j.Verdict.String()),
		Reason: Opt(Visible(j.Reason)), Fix: Opt(Visible(j.Fix)), Grade: Opt(j.Grade.String()),
		Seen: j.Seen, Completed: j.Completed, Working: j.Working, Work: []AttemptWork{},
		Begun: seconds(s.Begun), Sent: moment(e.Sent), Ended: moment(e.Ended),
		LastWork: interval(j.LastWork), FirstStop: interval(j.FirstStop),
		TimeToStop: secondsOrNull(j.TimeToStop, j.Timed), Censored: j.Censored,
		Effects: j.Effects, EffectsAfterCut: j.EffectsAfterCut, EffectsInRace: j.EffectsInRace,
		DuplicateEffects: j.DuplicateEffects, Duplicate: j.Duplicate,
		Emissions: j.Emissions, Strays: j.Strays, LateEvidence: j.LateEvidence, Evidence: cites(j.Cites),
	}
	if p := s.Planned; p != nil {
		a.Clause, a.Moment = ptr(p.Clause), Opt(p.Moment)
	}
	if c := e.Cut; c != nil {
		a.Style, a.Phase, a.Cause = Opt(c.Style.String()), Opt(c.Phase.String()), Opt(c.Cause)
		a.C0, a.C1 = ptr(seconds(c.C0)), ptr(seconds(c.C1))
	}
	for _, w := range j.Work {
		a.Work = append(a.Work, AttemptWork{Visible(w.Unit), w.Before, w.After, w.Projected})
	}
	return a
}

// cites makes quoted evidence safe to show.
func cites(in []oracle.Cite) []oracle.Cite {
	out := make([]oracle.Cite, len(in))
	for i, c := range in {
		c.Name, c.Text = Visible(c.Name), Visible(c.Text)
		out[i] = c
	}
	return out
}

// attemptWriter writes judged attempts as JSON lines, in the order in which it
// gets them. Its first error sticks.
type attemptWriter struct {
	buf *bufio.Writer
	enc *json.Encoder
	err error
}

func newAttemptWriter(w io.Writer) *attemptWriter {
	buf := bufio.NewWriter(w)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	return &attemptWriter{buf: buf, enc: enc}
}

func (w *attemptWriter) write(a Attempt) {
	if w.err == nil {
		w.err = w.enc.Encode(a)
	}
}

func (w *attemptWriter) flush() error {
	if w.err == nil {
		w.err = w.buf.Flush()
	}
	if w.err != nil {
		return fmt.Errorf("results: writing the attempts: %w", w.err)
	}
	return nil
}
