package audit

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/oracle"
)

// Schema names the form of a grid file.
const Schema = "mcpflood/sweep/v1"

// Grid is what a sweep found out, a cell for every form, phase and style.
type Grid struct {
	Schema string            `json:"schema"`
	Judged history.Judgement `json:"verdict"` // of the cells alone
	Cells  []Cell            `json:"cells"`
}

// Cell is one style at one phase. Times are in seconds.
type Cell struct {
	Form     string            `json:"form"`
	Phase    history.Phase     `json:"phase"`
	Style    history.Style     `json:"style"`
	Verdict  history.Judgement `json:"verdict"` // empty: not applicable
	Text     string            `json:"text"`    // what the grid shows
	Why      string            `json:"why"`     // for n/a and unknown
	Attempts int               `json:"attempts"`
	Cuts     int               `json:"cuts"`
	Verdicts map[string]int    `json:"verdicts"`
	// Stop is the median time to stop, or to notice, of those that did; Longest
	// is the longest time that work was seen after a cut.
	Stop    *float64      `json:"stop_s"`
	Longest *float64      `json:"longest_s"`
	Refs    []history.Ref `json:"refs"` // the attempts
}

// cellOf collects the attempts of one cell.
type cellOf struct {
	key      Key
	judged   []oracle.Judged
	byTime   []time.Duration
	longest  time.Duration
	verdicts map[history.Verdict]int
	cuts     int
}

// collector takes judged attempts in any order.
type collector map[Key]*cellOf

func (c collector) add(j oracle.Judged) {
	k, ok := keyOf(&j.Start)
	if !ok {
		return
	}
	x := c[k]
	if x == nil {
		x = &cellOf{key: k, verdicts: map[history.Verdict]int{}}
		c[k] = x
	}
	x.judged = append(x.judged, j)
	if j.End.Cut == nil || j.End.Cut.Cause != "plan" {
		return
	}
	x.cuts++
	x.verdicts[j.Verdict]++
	if j.Timed {
		x.byTime = append(x.byTime, j.TimeToStop)
		x.longest = max(x.longest, j.TimeToStop)
	}
	if j.NoticeTime >= 0 && j.Verdict == history.Noticed {
		x.byTime = append(x.byTime, j.NoticeTime)
	}
}

// grid makes the cells; skipped says why others do not exist.
func (c collector) grid(skipped map[Key]string) *Grid {
	g := &Grid{Schema: Schema, Judged: history.Unjudged}
	for _, form := range forms {
		for _, phase := range phases {
			for _, style := range styles {
				k := Key{form, phase, style}
				cell := Cell{Form: form, Phase: phase, Style: style, Text: "n/a", Why: skipped[k], Verdicts: map[string]int{}}
				if x := c[k]; x != nil {
					x.fill(&cell)
				} else if cell.Why == "" {
					cell.Why = "not done"
				}
				g.Judged = g.Judged.Worse(cell.Verdict)
				g.Cells = append(g.Cells, cell)
			}
		}
	}
	return g
}

func (x *cellOf) fill(c *Cell) {
	c.Attempts, c.Cuts = len(x.judged), x.cuts
	for _, j := range x.judged {
		c.Refs = append(c.Refs, j.Start.Ref)
	}
	slices.SortFunc(c.Refs, history.Ref.Compare)
	for v, n := range x.verdicts {
		if v != history.VerdictNone {
			c.Verdicts[v.String()] = n
		}
	}
	if len(x.byTime) > 0 {
		slices.Sort(x.byTime)
		c.Stop = seconds(x.byTime[len(x.byTime)/2])
	}
	if x.longest > 0 {
		c.Longest = seconds(x.longest)
	}
	c.Verdict, c.Text, c.Why = x.verdict()
}

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}

// verdict judges a cell by what its phase and class are judged on.
func (x *cellOf) verdict() (verdict history.Judgement, text, why string) {
	if bad := x.bad(); bad != "" {
		return history.Fail, bad, ""
	}
	if x.cuts == 0 {
		return history.Undecided, "missed", "the answer was there before every cut"
	}
	switch {
	case x.key.Phase == history.PhaseDone:
		return history.Pass, "unchanged", ""
	case beforeSent(x.key.Phase):
		return history.Pass, x.early(), ""
	case x.key.Phase == history.PhaseTail && x.key.Style.Class() == history.ClassSignal:
		return history.Pass, "no harm", "" // effects and emissions are what counts there
	case x.key.Style.Class() == history.ClassSilent:
		return x.silent()
	case x.key.Style.Class() == history.ClassOpen:
		return x.open()
	}
	return x.signal()
}

// bad names what fails a cell in any phase.
func (x *cellOf) bad() string {
	ranOn, effects, emissions := 0, 0, 0
	for i := range x.judged {
		j := &x.judged[i]
		if j.Verdict == history.RanOn {
			ranOn++
		}
		effects += j.EffectsAfterCut
		if x.key.Style.Class() == history.ClassSignal {
			emissions += j.Emissions
		}
	}
	switch {
	case ranOn > 0:
		return "RAN ON " + short(x.longest)
	case effects > 0:
		return "EFFECT"
	case emissions > 0:
		return "EMITS"
	}
	return ""
}

// early is the word for cuts before the request was complete.
func (x *cellOf) early() string {
	for i := range x.judged {
		if x.judged[i].Seen {
			return "stops"
		}
	}
	return "unseen"
}

func (x *cellOf) signal() (history.Judgement, string, string) {
	if n := x.verdicts[history.Unknown]; n > 0 {
		return history.Undecided, "unknown", x.unknown()
	}
	if x.verdicts[history.Late] > 0 {
		return history.Pass, "late " + short(x.longest), "" // a warning, not a failure
	}
	if x.verdicts[history.Stopped] == 0 {
		return history.Undecided, "unknown", "every call had finished first: the tool is too short for --stop-within"
	}
	return history.Pass, "stops " + short(x.median()), ""
}

func (x *cellOf) silent() (history.Judgement, string, string) {
	switch {
	case x.verdicts[history.Unknown] > 0:
		return history.Undecided, "unknown", x.unknown()
	case x.verdicts[history.Unnoticed] > 0:
		return history.Pass, "unnoticed", "not noticed within the watch"
	}
	return history.Pass, "notices " + short(x.median()), ""
}

func (x *cellOf) open() (history.Judgement, string, string) {
	up, on := x.verdicts[history.HungUp], x.verdicts[history.WentOn]
	switch {
	case up > 0 && on > 0:
		return history.Pass, fmt.Sprintf("%d/%d hang up", up, up+on), ""
	case up > 0:
		return history.Pass, "hangs up", ""
	case on > 0:
		return history.Pass, "goes on", ""
	}
	return history.Undecided, "unknown", x.unknown()
}

// unknown is what would decide the first attempt that is not decided.
func (x *cellOf) unknown() string {
	for i := range x.judged {
		if j := &x.judged[i]; j.Verdict == history.Unknown {
			return cmp.Or(j.Fix, j.Reason, "no witness can tell")
		}
	}
	return "no witness can tell"
}

func (x *cellOf) median() time.Duration {
	if len(x.byTime) == 0 {
		return 0
	}
	return x.byTime[len(x.byTime)/2]
}

func short(d time.Duration) string {
	switch {
	case d == 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
