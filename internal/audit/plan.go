package audit

import (
	"fmt"

	"github.com/mcpflood/mcpflood/chaos"
	"github.com/mcpflood/mcpflood/history"
)

// Forms of answers, as the grid names them.
const (
	FormSSE  = "sse"  // progress was asked for
	FormJSON = "json" // it was not
)

// Key names a cell of the grid.
type Key struct {
	Form  string
	Phase history.Phase
	Style history.Style
}

// phases in the order of the waves: gentle first, so that a server which a cut
// inside a request kills has shown everything else before.
var phases = []history.Phase{
	history.PhaseDone, history.PhaseTail, history.PhaseMid, history.PhaseEvent, history.PhaseHeaders,
	history.PhaseSent, history.PhaseBody, history.PhaseHead, history.PhaseConnect,
}

// styles in the order of the columns.
var styles = []history.Style{history.Fin, history.Reset, history.HalfClose, history.Stall, history.Slow, history.Vanish, history.WrongSignal}

// forms in the order of the grids.
var forms = []string{FormSSE, FormJSON}

// server is what the sweep has to know of the server's answers.
type server struct {
	streams bool // it answers by SSE where progress is asked for
	json    bool // it answers plain JSON where it is not
	events  int  // before the result
}

// cannot tells why a cell does not exist; empty if it does.
func (s server) cannot(k Key) string {
	switch {
	case k.Form == FormSSE && !s.streams:
		return "the server does not stream"
	case k.Form == FormJSON && !s.json:
		return "the server streams all answers"
	case k.Form == FormJSON && (k.Phase == history.PhaseTail || k.Phase == history.PhaseMid || k.Phase == history.PhaseEvent || k.Phase == history.PhaseHeaders):
		return "a JSON answer comes in one piece"
	case (k.Phase == history.PhaseMid || k.Phase == history.PhaseEvent) && s.events == 0:
		return "no event comes before the result"
	case k.Phase == history.PhaseDone && (k.Style.Class() == history.ClassSilent || k.Style == history.WrongSignal):
		return "nothing is left to break"
	case k.Style == history.WrongSignal && beforeSent(k.Phase):
		return "there is no request to cancel yet"
	case k.Style == history.HalfClose && k.Phase == history.PhaseConnect:
		return "there is no request to answer yet"
	}
	return ""
}

func beforeSent(p history.Phase) bool {
	return p == history.PhaseConnect || p == history.PhaseHead || p == history.PhaseBody
}

// cut decides where a cell's attempt is broken, seeded like any plan's cut.
func (k Key) cut(seed uint64, ref history.Ref, clean chaos.Clean) (chaos.Cut, error) {
	moment, err := chaos.ParseMoment(k.Phase.String())
	if err != nil {
		return chaos.Cut{}, err
	}
	if k.Phase == history.PhaseMid || k.Phase == history.PhaseEvent {
		// In the first half: most of the work is then still to come, and a wave
		// takes half the time.
		clean.Events = max(1, clean.Events/2)
	}
	plan := chaos.Plan{Seed: seed, TailDelay: -1, Clauses: []chaos.Clause{{Style: k.Style, Moment: moment, Share: 1}}}
	c, ok := plan.Cut(ref, clean)
	if !ok {
		return chaos.Cut{}, fmt.Errorf("no cut for %s", ref)
	}
	return c, nil
}

// variant is the request that asks for a form.
func variant(form string) string {
	if form == FormJSON {
		return history.VariantJSON
	}
	return ""
}

// keyOf is the cell of an attempt that was planned by a sweep.
func keyOf(s *history.Start) (Key, bool) {
	if s.Planned == nil || s.Planned.Phase == history.PhaseNone {
		return Key{}, false
	}
	k := Key{Form: FormSSE, Phase: s.Planned.Phase, Style: s.Planned.Style}
	if s.Variant == history.VariantJSON {
		k.Form = FormJSON
	}
	return k, true
}
