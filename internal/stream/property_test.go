package stream

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcpflood/mcpflood/chaos"
	"github.com/mcpflood/mcpflood/history"
)

// keep is a history in memory.
type keep struct{ recs []history.Record }

func (k *keep) Append(r history.Record) { k.recs = append(k.recs, r) }

// pieces are what bodies are made of; lines end in LF here, see drawBody.
var pieces = []string{
	"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"{token}\",\"progress\":1,\"total\":3}}\n\n",
	"event: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"{token}\",\"progress\":3,\"total\":3}}\n\n",
	"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"{other-token}\",\"progress\":3,\"total\":3}}\n\n",
	"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n",
	"data: {\"jsonrpc\":\"2.0\",\"id\":\"{other-id}\",\"result\":{}}\n\n",
	"data: {\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n\n",
	": keep-alive\n",
	": \n\n",
	"id: 9\n\n",
	"data: nonsense\n\n",
	"data\n\n",
	"\n",
	"junk\n",
	"{\"jsonrpc\":\"2.0\"",
}

var lasts = []string{
	"data: {\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"result\":{\"content\":[]}}\n\n",
	"data: {\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"result\":{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"cancelled\"}]}}\n\n",
	"data: {\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"error\":{\"code\":-32603,\"message\":\"boom\"}}\n\n",
	"data: {\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"result\":{\"resultType\":\"input_required\",\"requestState\":\"s\"}}\n\n",
	"{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"result\":{\"content\":[]}}",
	"",
}

func drawBody(t *rapid.T) []byte {
	var body []byte
	for _, s := range append(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 6).Draw(t, "pieces"), rapid.SampledFrom(lasts).Draw(t, "last")) {
		for name, id := range identities() {
			s = string(bytes.ReplaceAll([]byte(s), []byte(name), []byte(id)))
		}
		s = string(bytes.ReplaceAll([]byte(s), []byte("\n"), []byte(rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "end"))))
		body = append(body, s...)
	}
	return body
}

func drawCut(t *rapid.T, styles ...history.Style) *chaos.Cut {
	trigger := rapid.OneOf(
		rapid.Just(chaos.Trigger{}),
		rapid.Map(rapid.IntRange(1, 600), func(k int) chaos.Trigger { return chaos.Trigger{Kind: chaos.AtBytes, Bytes: int64(k)} }),
		rapid.Custom(func(t *rapid.T) chaos.Trigger {
			return chaos.Trigger{Kind: chaos.AtEvent, Event: rapid.IntRange(1, 4).Draw(t, "event"), Offset: rapid.IntRange(0, 150).Draw(t, "offset")}
		}),
		rapid.Map(rapid.SampledFrom([]history.Phase{history.PhaseConnect, history.PhaseSent, history.PhaseHeaders, history.PhaseDone}), func(p history.Phase) chaos.Trigger {
			return chaos.Trigger{Kind: chaos.AtPhase, Phase: p}
		}),
		rapid.Custom(func(t *rapid.T) chaos.Trigger {
			return chaos.Trigger{Kind: chaos.AtPhase, Phase: history.PhaseTail, Event: rapid.IntRange(0, 3).Draw(t, "event"), After: 2, Base: 9}
		}),
		rapid.Map(rapid.IntRange(0, 40), func(d int) chaos.Trigger { return chaos.Trigger{Kind: chaos.AfterSent, After: time.Duration(d)} }),
		rapid.Custom(func(t *rapid.T) chaos.Trigger {
			return chaos.Trigger{Kind: rapid.SampledFrom([]chaos.TriggerKind{chaos.AfterQuiet, chaos.AtClock}).Draw(t, "kind"), After: time.Duration(rapid.IntRange(1, 20).Draw(t, "pause"))}
		}),
		rapid.Custom(func(t *rapid.T) chaos.Trigger {
			return chaos.Trigger{Kind: chaos.InRequest, Phase: rapid.SampledFrom([]history.Phase{history.PhaseHead, history.PhaseBody}).Draw(t, "part"),
				Bytes: int64(rapid.IntRange(0, 30).Draw(t, "bytes")), Part: rapid.Float64Range(0, 0.99).Draw(t, "share")}
		}),
	).Draw(t, "trigger")
	if trigger.Kind == chaos.TriggerNone {
		return nil
	}
	return &chaos.Cut{Style: rapid.SampledFrom(styles).Draw(t, "style"), Trigger: trigger}
}

func begin(cut *chaos.Cut, timeout time.Duration) (*Attempt, *keep) {
	k := &keep{}
	cfg := &Config{Nonce: testNonce, History: k, Timeout: timeout, Hold: 50}
	start := &history.Start{Ref: testRef, Begun: 1}
	if cut != nil {
		start.Planned = &history.Planned{Style: cut.Style, Moment: cut.Trigger.String()}
	}
	return New(cfg, start, cut, true), k
}

// TestSlices holds that it does not matter in which pieces a body comes: the
// record of the attempt, the messages kept as evidence and the byte at which a
// cut falls due are the same.
func TestSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := drawBody(t)
		cut := drawCut(t, history.Reset)
		form := rapid.SampledFrom([]string{"text/event-stream", "application/json"}).Draw(t, "form")
		status := rapid.SampledFrom([]int{200, 200, 500}).Draw(t, "status")
		run := func(cuts []int) (history.End, []history.Record) {
			a, k := begin(cut, 0)
			a.Connected(2)
			if a.Due() != history.StyleNone {
				a.CutDone(2, 2, history.StyleNone)
				return *a.End(), k.recs
			}
			a.Sent(3)
			const now = 10 // one moment for all: times play no part here
			a.Head(now, Head{Status: status, ContentType: form})
			from := 0
			for _, to := range append(cuts, len(body)) {
				for from < to && a.Due() == history.StyleNone && !a.Over() {
					from += a.Body(now, body[from:to])
				}
			}
			if a.Due() == history.StyleNone {
				a.BodyEnd(now)
			}
			if a.Due() != history.StyleNone {
				a.CutDone(now, now, history.StyleNone)
			}
			if !a.Over() {
				t.Fatalf("still open")
			}
			return *a.End(), k.recs
		}
		wantEnd, wantRecs := run(nil)
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(body)), 0, 12).Draw(t, "slices")
		slices.Sort(cuts)
		gotEnd, gotRecs := run(cuts)
		if diff := cmp.Diff(wantEnd, gotEnd); diff != "" {
			t.Fatalf("in pieces %v the end differs (-whole +pieces):\n%s", cuts, diff)
		}
		if diff := cmp.Diff(wantRecs, gotRecs); diff != "" {
			t.Fatalf("in pieces %v the records differ (-whole +pieces):\n%s", cuts, diff)
		}
	})
}

// TestOneEnd holds that no order of what can happen gives an attempt two ends,
// and what is true of every end.
func TestOneEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cut := drawCut(t, history.Fin, history.Reset, history.HalfClose, history.WrongSignal, history.Stall, history.Vanish)
		a, _ := begin(cut, time.Duration(rapid.SampledFrom([]int{0, 15, 30}).Draw(t, "timeout")))
		m := &mess{t: t, a: a, now: 1, body: drawBody(t)}
		for range 60 {
			m.step()
		}
		if !a.Over() {
			m.now += 1000
			m.timers()
			a.Drop(m.now)
		}
		if !a.Over() {
			t.Fatalf("still open, state %d", a.state)
		}
		m.check()
	})
}

// mess lets things happen to an attempt in any order a shell could see.
type mess struct {
	t    *rapid.T
	a    *Attempt
	now  time.Duration
	body []byte
	head bool
	last string // the end, once there is one
	held string
}

func (m *mess) step() {
	m.now += time.Duration(rapid.IntRange(0, 4).Draw(m.t, "pass"))
	broken := errors.New("broken")
	switch a := m.a; a.state {
	case connecting:
		switch rapid.IntRange(0, 9).Draw(m.t, "connect") {
		case 0:
			a.Failed(m.now, history.Network, broken)
		case 1:
			a.Drop(m.now)
		default:
			a.Connected(m.now)
		}
	case writing:
		switch rapid.IntRange(0, 9).Draw(m.t, "write") {
		case 0:
			a.Failed(m.now, history.Us, broken)
		case 1:
			a.Drop(m.now)
		default:
			const head, body = 20, 10
			n := a.Writable(head, body)
			switch {
			case n < 1 || n > head+body:
				m.t.Fatalf("%d of %d bytes are to be written", n, head+body)
			case n < head+body:
				a.Paused(m.now)
			default:
				a.Sent(m.now)
			}
		}
	default:
		m.event()
	}
	m.check()
	if m.a.state > writing && rapid.Bool().Draw(m.t, "timers") {
		m.timers()
		m.check()
	}
}

func (m *mess) event() {
	a := m.a
	switch rapid.IntRange(0, 11).Draw(m.t, "event") {
	case 0:
		a.Drop(m.now)
	case 1:
		a.PeerEnded(m.now, rapid.SampledFrom([]string{"eof", "reset"}).Draw(m.t, "how"))
	case 2:
		a.ReadFailed(m.now, history.Network, errors.New("broken"))
	case 3:
		a.Garbled(m.now, errors.New("garbage"))
	case 4:
		if m.head {
			a.BodyEnd(m.now)
		}
	case 5, 6, 7, 8, 9, 10:
		if !m.head {
			m.head = true
			a.Head(m.now, Head{Status: rapid.SampledFrom([]int{200, 200, 200, 503, 302}).Draw(m.t, "status"), ContentType: rapid.SampledFrom([]string{"text/event-stream", "text/event-stream", "application/json", "text/html"}).Draw(m.t, "type")})
			return
		}
		n := rapid.IntRange(0, len(m.body)).Draw(m.t, "bytes")
		took := a.Body(m.now, m.body[:n])
		if took < 0 || took > n {
			m.t.Fatalf("Body took %d of %d bytes", took, n)
		}
		m.body = m.body[took:]
	case 11:
		a.Arrived(m.now)
	}
}

// timers asks what to do, and does it.
func (m *mess) timers() {
	for range 10 {
		step := m.a.Next(m.now)
		if step.Do == Wait && step.Until != 0 && step.Until <= m.now {
			m.t.Fatalf("at %d asked to wait until %d", m.now, step.Until)
		}
		if step.Do != Cut {
			return
		}
		if step.Style != m.a.Due() || step.Style == history.StyleNone {
			m.t.Fatalf("asked for a cut %s while %s is due", step.Style, m.a.Due())
		}
		switch rapid.IntRange(0, 7).Draw(m.t, "cut") {
		case 0, 1: // the drain finds something first
			m.event()
			continue
		case 2:
			m.a.CutFailed(m.now)
			m.check()
			continue
		}
		c0 := m.now
		m.now++
		m.a.CutDone(c0, m.now, history.StyleNone)
	}
	m.t.Fatalf("asked again and again")
}

// check holds what must be true of the record at any time.
func (m *mess) check() {
	e := m.a.End()
	text := fmt.Sprintf("%+v cut %+v after %+v", *e, e.Cut, e.After)
	switch {
	case m.last != "":
		if text != m.last {
			m.t.Fatalf("the end changed from\n%s to\n%s", m.last, text)
		}
		return
	case m.a.state == held:
		if m.held != "" && m.held != text {
			m.t.Fatalf("the record of a held socket changed from\n%s to\n%s", m.held, text)
		}
		m.held = text
		return
	case !m.a.Over():
		return
	}
	m.last = text
	timeout := e.Cut != nil && e.Cut.Cause == "timeout"
	for _, rule := range []struct {
		what string
		ok   bool
	}{
		{"it has an outcome", e.Outcome != history.OutcomeNone},
		{"it has an origin", e.Origin != history.OriginNone},
		{"it has an end", e.Ended >= e.Begun && e.Ended <= m.now},
		{"missed: planned, and not carried out", e.Missed == (e.Planned != nil && (e.Cut == nil || timeout))},
		{"cut: carried out", e.Outcome != history.Cut || e.Cut != nil},
		{"a cut that was carried out leaves cut, or delivered at done or after an open one", e.Cut == nil || e.Outcome == history.Cut ||
			e.Outcome == history.Delivered && (e.Cut.Phase == history.PhaseDone || e.Cut.Style.Class() == history.ClassOpen)},
		{"delivered: a result was read", e.Outcome != history.Delivered || e.Result != 0},
		{"a cut comes at or after its moment", e.Cut == nil || e.Cut.C0 >= e.Cut.Due && e.Cut.C1 >= e.Cut.C0},
		{"after is told of open cuts only", e.After == nil || e.Cut != nil && e.Cut.Style.Class() == history.ClassOpen},
		{"chaos ends only what was planned", e.Origin != history.Chaos || e.Planned != nil},
		{"it holds no memory", m.a.answer == nil && !m.a.parser.InsideEvent()},
	} {
		if !rule.ok {
			m.t.Fatalf("%s: not so in\n%s", rule.what, text)
		}
	}
}

// TestLimits holds that what one attempt puts into the history has a bound.
func TestLimits(t *testing.T) {
	a, k := begin(nil, 0)
	a.Connected(2)
	a.Sent(3)
	a.Head(4, Head{Status: 200, ContentType: "text/event-stream"})
	stray := []byte(pieces[2])
	for name, id := range identities() {
		stray = bytes.ReplaceAll(stray, []byte(name), []byte(id))
	}
	const n = 5000
	for range n {
		a.Body(5, stray)
	}
	events, claims := 0, 0
	for _, r := range k.recs {
		if r.Event != nil {
			events++
		}
		if r.Evidence != nil {
			claims++
		}
	}
	if a.End().Events != n || events != MaxNotes || claims != MaxClaims {
		t.Errorf("%d stray messages: %d events counted, %d kept, %d claims kept, want %d, %d, %d", n, a.End().Events, events, claims, n, MaxNotes, MaxClaims)
	}
}
