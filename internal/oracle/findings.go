package oracle

import (
	"cmp"
	"slices"

	"github.com/mcpflood/mcpflood/history"
)

// findings collects what was found, by id.
type findings struct {
	byID map[string]*finding
}

// finding is one finding while it is counted.
type finding struct {
	Finding
	started bool
}

func newFindings() *findings { return &findings{byID: map[string]*finding{}} }

func (f *findings) get(id string, severity history.Severity) *finding {
	x := f.byID[id]
	if x == nil {
		x = &finding{Finding: Finding{ID: id, Severity: severity}}
		f.byID[id] = x
	}
	x.Severity = max(x.Severity, severity)
	return x
}

// attempt counts an attempt in a finding, with the evidence that shows it.
// Where narrows to what all its attempts share.
func (f *findings) attempt(id string, severity history.Severity, o *verdictOf, cites ...Cite) {
	x := f.get(id, severity)
	x.Count++
	ref := o.Start.Ref
	if len(x.Attempts) < MaxAttempts && (len(x.Attempts) == 0 || x.Attempts[len(x.Attempts)-1] != ref) {
		x.Attempts = append(x.Attempts, ref)
	}
	x.cite(cites...)
	where := Where{Tool: o.Start.Tool}
	if c := o.End.Cut; c != nil {
		where.Style, where.Phase = c.Style, c.Phase
	}
	if !x.started {
		x.Where, x.started = where, true
		return
	}
	if x.Where.Style != where.Style {
		x.Where.Style = history.StyleNone
	}
	if x.Where.Phase != where.Phase {
		x.Where.Phase = history.PhaseNone
	}
	if x.Where.Tool != where.Tool {
		x.Where.Tool = ""
	}
}

func (x *finding) cite(cites ...Cite) {
	for _, c := range cites {
		if len(x.Evidence) < MaxEvidence {
			x.Evidence = append(x.Evidence, c)
		}
	}
}

// ambiguous counts evidence that names a call, but could mean several of its
// attempts.
func (f *findings) ambiguous(ref history.Ref, c Cite) {
	x := f.get(idAmbiguous, history.SeverityNote)
	x.UndecidedOnly = true
	x.Count++
	if len(x.Attempts) < MaxAttempts && !slices.Contains(x.Attempts, ref) {
		x.Attempts = append(x.Attempts, ref)
	}
	x.cite(c)
}

// whole adds a finding about the whole run.
func (f *findings) whole(id string, severity history.Severity, count int, text string, cites ...Cite) *finding {
	x := f.get(id, severity)
	x.Count += count
	x.Text = text
	x.cite(cites...)
	return x
}

// sorted lists the findings, worst first, then by id.
func (f *findings) sorted() []Finding {
	out := make([]Finding, 0, len(f.byID))
	for _, x := range f.byID {
		slices.SortFunc(x.Attempts, history.Ref.Compare)
		out = append(out, x.Finding)
	}
	slices.SortFunc(out, func(a, b Finding) int {
		return cmp.Or(-cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// group is a kind of cut that is told apart when causes are guessed.
type group struct {
	style history.Style
	phase history.Phase
	form  string
}

// verdicts counts by verdict.
type verdicts map[history.Verdict]int

func (v verdicts) judged() int {
	return v[history.Stopped] + v[history.Late] + v[history.RanOn]
}

// tally is what the texts of findings and the run's verdict need, summed over
// all attempts.
type tally struct {
	signal     map[group]verdicts
	clauses    map[int]*clause
	delivered  int
	judgedCuts int
	signalCuts int // carried out, before any result

	early         int // planned signal cuts at sent, headers, mid and event
	earlyTells    int // those of them that discriminate
	tells, untold int // discriminating signal cuts, and the unknown ones
	unknowns      map[string]int
	fixes         map[string]string

	ranUnits       float64
	ranUnit        string
	ranUnitsMost   float64
	ranTimeMost    float64 // seconds
	working        int
	lateMost       float64
	claims, silent int // stopped by stop evidence, by silence
	gradeStopped   [history.GradeD + 1]int
	openWentOn     int
	openHungUp     int
	noise          int
	replays        int
	forms          map[string]int // of delivered attempts
}

// clause counts what came of one --cut clause.
type clause struct {
	fired           int
	tells, untold   int
	others, unknown int // silent and open cuts
}

func newTally() tally {
	return tally{signal: map[group]verdicts{}, clauses: map[int]*clause{}, forms: map[string]int{}, unknowns: map[string]int{}, fixes: map[string]string{}}
}

// count takes a call's verdicts, calls sorted by number.
func (j *judge) count(list []verdictOf) {
	c := &j.counts
	c.Calls++
	delivered, abandoned := false, list[0].outcome == "abandoned"
	if first := &list[0]; first.Start.Ref.Attempt == 1 {
		j.damage.connected(&first.End)
	}
	for i := range list {
		o := &list[i]
		delivered = delivered || o.End.Outcome == history.Delivered
		abandoned = abandoned || i == len(list)-1 && (o.End.Outcome == history.OutcomeNone || o.End.Outcome == history.Drained)
		if o.Start.Ref.Attempt > 1 && i > 0 && list[i-1].End.Outcome != history.MoreInput {
			c.Reissues++
		}
		j.countAttempt(o)
		j.countCut(o)
		j.countFindings(o)
		j.visit(o.Judged)
	}
	switch {
	case delivered:
		c.Delivered++
	case abandoned:
		c.Abandoned++
	default:
		c.Failed++
	}
}

func (j *judge) countAttempt(o *verdictOf) {
	c := &j.counts
	c.Attempts++
	if o.Start.Planned != nil || o.End.Planned != nil {
		c.PlannedCuts++
	}
	if o.End.Missed {
		c.MissedCuts++
	}
	if o.End.Outcome == history.Delivered {
		j.tally.delivered++
		j.tally.forms[o.End.Form]++
		if o.End.IsError {
			c.ToolErrors++
		}
	}
	c.PostCutEmissions += o.Emissions
	if o.End.After != nil {
		c.PostCutBytes += o.End.After.Bytes
	}
	c.StrayMessages += o.Strays
	c.Effects += o.Effects
	c.EffectsAfterCut += o.EffectsAfterCut
	c.EffectsInRace += o.EffectsInRace
	c.DuplicateEffects += o.DuplicateEffects
	c.Late += o.LateEvidence
}

func (j *judge) countCut(o *verdictOf) {
	cut, t := o.End.Cut, &j.tally
	if cut == nil {
		return
	}
	j.counts.Cuts++
	j.counts.Verdicts[o.Verdict]++
	if o.Verdict != history.Unknown {
		t.judgedCuts++
	}
	var k clause // timeouts belong to no clause
	planned := cut.Cause != "timeout" && o.End.Planned != nil
	if planned {
		if t.clauses[o.End.Planned.Clause] == nil {
			t.clauses[o.End.Planned.Clause] = &clause{}
		}
		k = *t.clauses[o.End.Planned.Clause]
	}
	k.fired++
	if o.Class == history.ClassSignal {
		j.countSignal(o, &k, planned)
	} else {
		k.others++
		if o.Verdict == history.Unknown {
			k.unknown++
			j.unknown(o)
		}
	}
	if planned {
		*t.clauses[o.End.Planned.Clause] = k
	}
}

func (j *judge) countSignal(o *verdictOf, k *clause, planned bool) {
	cut, t := o.End.Cut, &j.tally
	g := group{cut.Style, cut.Phase, cmp.Or(o.End.Form, asked(o.Start.Variant))}
	if t.signal[g] == nil {
		t.signal[g] = verdicts{}
	}
	t.signal[g][o.Verdict]++
	if o.End.Outcome != history.Delivered {
		t.signalCuts++
	}
	switch cut.Phase {
	case history.PhaseSent, history.PhaseHeaders, history.PhaseMid, history.PhaseEvent:
		if planned {
			t.early++
			if o.Discriminates {
				t.earlyTells++
			}
		}
	}
	if o.Discriminates {
		t.tells++
		k.tells++
	}
	switch o.Verdict {
	case history.Unknown:
		if o.Discriminates {
			t.untold++
			k.untold++
			j.unknown(o)
		}
	case history.Stopped:
		t.gradeStopped[o.Grade]++
		switch o.Reason {
		case reasonClaim:
			t.claims++
		case reasonSilence, reasonNeverSeen:
			t.silent++
		}
	}
}

// unknown remembers why an attempt is unknown and what would decide it.
func (j *judge) unknown(o *verdictOf) {
	t := &j.tally
	t.unknowns[o.Reason]++
	if t.fixes[o.Reason] == "" {
		t.fixes[o.Reason] = o.Fix
	}
}

func (j *judge) countFindings(o *verdictOf) {
	t := &j.tally
	switch o.Verdict {
	case history.RanOn:
		j.found.attempt(idRunOn, history.SeverityFail, o, o.Cites...)
		if len(o.Work) > 0 {
			w := o.Work[0]
			t.ranUnits += w.After
			t.ranUnit, t.ranUnitsMost = w.Unit, max(t.ranUnitsMost, w.After)
		}
		t.ranTimeMost = max(t.ranTimeMost, o.TimeToStop.Seconds())
		if o.Working {
			t.working++
		}
	case history.Late:
		j.found.attempt(idLate, history.SeverityWarn, o, o.Cites...)
		t.lateMost = max(t.lateMost, o.TimeToStop.Seconds(), o.SignalLatency.Seconds())
	case history.WentOn, history.HungUp:
		j.countOpen(o)
	}
	if o.overdue {
		j.found.attempt(idUnnoticed, history.SeverityFail, o, o.Cites...)
	}
	if o.disputed != nil {
		severity := history.SeverityFail
		if o.Verdict == history.Late {
			severity = history.SeverityWarn
		}
		j.found.attempt(idContradict, severity, o, append([]Cite{*o.disputed}, o.Cites[:min(1, len(o.Cites))]...)...)
	}
	for _, n := range o.notes {
		j.found.attempt(n.id, severityOf[n.id], o, n.cite)
	}
	if o.blind {
		x := j.found.get(idGap, history.SeverityNote)
		x.UndecidedOnly = true
		if len(x.Attempts) < MaxAttempts {
			x.Attempts = append(x.Attempts, o.Start.Ref)
		}
	}
	j.spurious(o)
}

// spurious reports an attempt that nobody cut and that was cancelled all the
// same.
func (j *judge) spurious(o *verdictOf) {
	if spurious(o) {
		id := idSpurious
		if o.Start.Probe == history.ProbeCancelAny {
			id = idCancelAny
		}
		j.found.attempt(id, history.SeverityFail, o, Cite{Name: "wire", Text: clip(endText(&o.End)), Lo: o.End.Ended, Hi: o.End.Ended})
	}
}

// severityOf is the severity of findings that single notes make.
var severityOf = map[string]history.Severity{
	idEffect: history.SeverityFail, idEmission: history.SeverityFail, idStray: history.SeverityFail,
	idWrongID: history.SeverityFail, idDuplicate: history.SeverityWarn, idHalfError: history.SeverityNote,
}

// asked is the form of answer that a request asked for; it stands for the form
// of answers that never came.
func asked(variant string) string {
	if variant == history.VariantJSON {
		return "json"
	}
	return "sse"
}

func (j *judge) countOpen(o *verdictOf) {
	if o.End.Cut.Phase == history.PhaseDone {
		return // there was nothing left to answer
	}
	hung := o.Verdict == history.HungUp
	if o.End.Cut.Style == history.WrongSignal {
		if hung {
			j.found.attempt(idWrongSignal, history.SeverityNote, o, o.Cites...)
		}
		return
	}
	if hung {
		j.tally.openHungUp++
	} else {
		j.tally.openWentOn++
	}
	j.found.attempt(idHalfClose, history.SeverityNote, o, o.Cites...)
}

// spurious reports whether an attempt that nobody cut was cancelled, or its
// stream ended by the peer without result or error.
func spurious(o *verdictOf) bool {
	e := &o.End
	if e.Cut != nil || o.WrongIDs > 0 {
		return false
	}
	switch e.Outcome {
	case history.Delivered, history.Refused:
		return e.Cancelled
	case history.Broken:
		return e.Origin == history.Peer && e.Status < 400
	}
	return false
}

func endText(e *history.End) string {
	if e.Error != "" {
		return e.Error
	}
	return "the answer says that the call was cancelled"
}
