package stream

import (
	"fmt"
	"time"

	"github.com/mcpflood/mcpflood/chaos"
	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/sse"
)

// MaxAnswer bounds a JSON answer's body; longer ones are refused, not read on.
const MaxAnswer = 4 << 20

// Config is what all attempts of a run share. It is read-only.
type Config struct {
	Nonce   history.Nonce
	History history.Appender
	// Timeout is the longest life of an attempt, from its begin; 0: none.
	Timeout time.Duration
	// Hold is how long the socket of a cut that keeps it stays open after the
	// cut: the watch and the time evidence may take.
	Hold time.Duration
}

// Do is what the shell has to do next.
type Do uint8

// The actions.
const (
	Wait  Do = iota // read what comes, until Step.Until
	Cut             // carry out Step.Style, then call CutDone
	Hold            // keep the socket and read nothing until Step.Until
	Close           // close the socket in the ordinary way; the attempt is over
	Abort           // close it by RST: a held socket whose time is over
)

// Step is an action with its details.
type Step struct {
	Do    Do
	Style history.Style
	// Until is when the shell must ask again although nothing came; 0: never.
	Until time.Duration
	// Exact holds when Until is a cut's moment, worth a precise alarm.
	Exact bool
}

// Head is what a response's head says to the machine.
type Head struct {
	Status      int
	ContentType string
	Encoding    string // Content-Encoding
	Location    string
	RetryAfter  time.Duration
}

// Attempt is one attempt's machine. It belongs to one goroutine.
type Attempt struct {
	cfg     *Config
	end     history.End
	id      history.Ref // whose JSON-RPC id the request carries
	trigger chaos.Trigger
	style   history.Style // none: not cut
	sampled bool

	state  state
	due    time.Duration // when the cut's moment is or was; 0: not known yet
	phase  history.Phase // where the cut fired
	cause  string
	totals bool // a progress event carried a total
	total  bool // one reached it
	notes  int  // events kept for the stream lanes
	claims int  // messages kept as evidence
	parser sse.Parser
	answer []byte // JSON body so far, or the body of an HTTP error
	// RequestState is set when the server wants the call to go on with another
	// attempt (resultType input_required without input requests).
	requestState []byte
}

type state uint8

const (
	connecting state = iota
	writing
	waiting // request complete
	reading // response head read
	firing  // the cut is due; a drain may still turn it into a miss
	after   // cut, socket still read (open styles)
	held    // cut, socket kept and not read (silent styles)
	over
)

// New begins an attempt. start must be appended to the history already; cut is
// nil for an attempt that is left alone.
func New(cfg *Config, start *history.Start, cut *chaos.Cut, sampled bool) *Attempt {
	a := &Attempt{cfg: cfg, id: start.Ref, sampled: sampled}
	a.end = history.End{Ref: start.Ref, Begun: start.Begun, Planned: start.Planned}
	if cut != nil {
		a.style, a.trigger = cut.Style, cut.Trigger
	}
	return a
}

// Expect says that the request carries the id of another attempt; without it
// an attempt expects its own.
func (a *Attempt) Expect(id history.Ref) { a.id = id }

// End is the attempt's record; complete once Over.
func (a *Attempt) End() *history.End { return &a.end }

// Over reports whether nothing more can happen.
func (a *Attempt) Over() bool { return a.state == over }

// RequestState is the opaque state, a JSON string, that the next attempt of the
// call must echo.
func (a *Attempt) RequestState() []byte { return a.requestState }

// Connected says that the connection stands.
func (a *Attempt) Connected(now time.Duration) {
	a.end.Connected = now
	if a.at(history.PhaseConnect) {
		a.due = now
		a.fire(causePlan)
		return
	}
	a.state = writing
}

// Writable is how much of a request of that head and body may be written: all
// of it, unless its cut comes inside. Then the shell calls Paused once the last
// of these bytes was handed to the kernel, instead of Sent.
func (a *Attempt) Writable(head, body int) int {
	if a.style == history.StyleNone || a.trigger.Kind != chaos.InRequest {
		return head + body
	}
	before, part := 0, head
	if a.trigger.Phase == history.PhaseBody {
		before, part = head, body
	}
	k := int(min(a.trigger.Bytes, int64(part)))
	if k == 0 {
		k = 1 + int(a.trigger.Part*float64(part-1))
	}
	if k >= part {
		return head + body // its moment never comes
	}
	return before + k
}

// Paused says that the request was written as far as Writable allowed.
func (a *Attempt) Paused(now time.Duration) {
	a.due = now
	a.fire(causePlan)
}

// Sent says that the request's last byte was handed to the kernel.
func (a *Attempt) Sent(now time.Duration) {
	a.end.Sent = now
	a.state = waiting
	switch t := a.trigger; {
	case a.style == history.StyleNone:
	case t.Kind == chaos.AfterSent, t.Kind == chaos.AfterQuiet:
		a.due = now + t.After
	case t.Kind == chaos.AtClock:
		a.due = (now/t.After + 1) * t.After
	case a.at(history.PhaseSent):
		a.due = now
	case a.at(history.PhaseTail) && t.Event == 0:
		a.due = now + t.Base + t.After
	}
}

// Failed says that the attempt never got through.
func (a *Attempt) Failed(now time.Duration, origin history.Origin, err error) {
	if a.state != over {
		a.miss()
		a.finish(now, history.Failed, origin, err.Error())
	}
}

// Next says what to do now.
func (a *Attempt) Next(now time.Duration) Step {
	switch a.state {
	case over:
		return Step{Do: Close}
	case held:
		return a.keep(now, Abort, Hold)
	case after:
		return a.keep(now, Close, Wait)
	case firing:
		return Step{Do: Cut, Style: a.style}
	}
	if a.due != 0 && now >= a.due {
		a.fire(causePlan)
		return Step{Do: Cut, Style: a.style}
	}
	limit := a.deadline()
	if limit != 0 && now >= limit {
		a.style, a.trigger, a.due = history.Fin, chaos.Trigger{}, limit
		a.fire(causeTimeout)
		return Step{Do: Cut, Style: a.style}
	}
	if a.due != 0 && (limit == 0 || a.due <= limit) {
		// A quiet time begins anew with every byte: no alarm is worth it.
		return Step{Do: Wait, Until: a.due, Exact: a.trigger.Kind != chaos.AfterQuiet}
	}
	return Step{Do: Wait, Until: limit}
}

func (a *Attempt) deadline() time.Duration {
	if a.cfg.Timeout == 0 {
		return 0
	}
	return a.end.Begun + a.cfg.Timeout
}

// keep holds a cut attempt's socket until its watch is over.
func (a *Attempt) keep(now time.Duration, ended, meanwhile Do) Step {
	until := a.end.Cut.C1 + a.cfg.Hold
	if now < until {
		return Step{Do: meanwhile, Until: until}
	}
	if a.state == after {
		a.finish(now, a.end.Outcome, a.end.Origin, a.end.Error)
	}
	a.state = over
	a.end.Ended = now
	return Step{Do: ended}
}

// Due is the style of a cut that is to be carried out now; none otherwise.
func (a *Attempt) Due() history.Style {
	if a.state == firing {
		return a.style
	}
	return history.StyleNone
}

// Why a cut fires.
const (
	causePlan    = "plan"
	causeTimeout = "timeout"
)

func (a *Attempt) fire(cause string) {
	a.phase, a.cause = a.where(), cause
	switch {
	case cause != causePlan:
	case a.at(history.PhaseTail):
		a.phase = history.PhaseTail // only the plan knows, where no progress shows it
	case a.at(history.PhaseConnect), a.trigger.Kind == chaos.InRequest:
		a.phase = a.trigger.Phase
	}
	a.state = firing
}

// at reports whether the cut is planned for the begin of a phase.
func (a *Attempt) at(p history.Phase) bool {
	return a.style != history.StyleNone && a.trigger.Kind == chaos.AtPhase && a.trigger.Phase == p
}

// where is the phase the attempt is in.
func (a *Attempt) where() history.Phase {
	switch {
	case a.end.Result != 0:
		return history.PhaseDone
	case a.state == connecting:
		return history.PhaseConnect
	case a.state == writing:
		return history.PhaseBody
	case a.end.Headers == 0:
		return history.PhaseSent
	case a.total:
		return history.PhaseTail
	case a.parser.InsideEvent():
		return history.PhaseEvent
	case a.end.Events == 0:
		return history.PhaseHeaders
	}
	return history.PhaseMid
}

// CutDone reports that the shell carried out the cut: c0 and c1 stamp the
// system call. fallback is the style that was done where the planned one cannot
// be.
func (a *Attempt) CutDone(c0, c1 time.Duration, fallback history.Style) {
	if a.state != firing {
		panic("stream: invariant: only a cut that is due is carried out")
	}
	a.end.Cut = &history.CutDone{Style: a.style, Phase: a.phase, Cause: a.cause, Due: a.due, C0: c0, C1: c1, Fallback: fallback}
	origin := history.Chaos
	if a.cause == causeTimeout {
		origin = history.Us
		a.end.Missed = a.end.Planned != nil
		a.end.Error = fmt.Sprintf("no answer within %s", a.cfg.Timeout)
	}
	switch {
	case a.end.Outcome == history.Delivered: // at done
		a.finish(c1, a.end.Outcome, a.end.Origin, a.end.Error)
	case a.style.Class() == history.ClassSilent:
		a.end.Outcome, a.end.Origin, a.state = history.Cut, origin, held
		a.answer, a.parser = nil, sse.Parser{} // it is held for long
	case a.style.Class() == history.ClassOpen:
		a.end.Outcome, a.end.Origin, a.state = history.Cut, origin, after
		a.end.After = &history.After{}
	default:
		a.finish(c1, history.Cut, origin, a.end.Error)
	}
}

// CutFailed says that the cut that is due could not be carried out, although
// the connection stands: the attempt goes on uncut. After its time-out it does
// not.
func (a *Attempt) CutFailed(now time.Duration) {
	switch {
	case a.state != firing:
		return
	case a.cause == causeTimeout:
		a.miss()
		a.finish(now, history.Broken, history.Us, fmt.Sprintf("no answer within %s", a.cfg.Timeout))
		return
	case a.end.Result != 0:
		a.miss()
		a.finish(now, a.end.Outcome, a.end.Origin, a.end.Error)
		return
	case a.end.Headers != 0:
		a.state = reading
	case a.end.Sent != 0:
		a.state = waiting
	default:
		a.state = writing
	}
	a.style, a.trigger, a.due = history.StyleNone, chaos.Trigger{}, 0
}

// PeerEnded says that the peer ended the connection: how is "eof" or "reset".
func (a *Attempt) PeerEnded(now time.Duration, how string) {
	what := map[string]string{"eof": "the server closed the stream", "reset": "the server reset the connection"}[how]
	a.broken(now, history.Peer, how, what)
}

// ReadFailed says that nothing more can be read and that the peer is not known
// to have ended the connection: origin is who has.
func (a *Attempt) ReadFailed(now time.Duration, origin history.Origin, err error) {
	a.broken(now, origin, "", err.Error())
}

// broken ends the attempt with its connection; how is empty unless the peer did
// it.
func (a *Attempt) broken(now time.Duration, origin history.Origin, how, what string) {
	switch {
	case a.sealed():
	case a.state == after:
		if how != "" {
			a.end.After.PeerEnd, a.end.After.How = now, how
		}
		a.finish(now, a.end.Outcome, a.end.Origin, "")
	case a.end.Result != 0: // a cut at done is due: nothing is left to cut
		a.miss()
		a.finish(now, a.end.Outcome, a.end.Origin, a.end.Error)
	case a.end.Headers != 0 && a.end.Status/100 != 2: // refused, whatever else it wanted to say
		a.whole(now)
	default:
		a.end.Truncated = a.parser.InsideEvent()
		a.miss()
		a.finish(now, history.Broken, origin, what+a.lacking())
	}
}

// lacking says what a stream that ends now does not have.
func (a *Attempt) lacking() string {
	switch {
	case a.end.FirstByte == 0:
		return " before any response"
	case a.end.Headers == 0:
		return " inside the response head"
	case a.parser.InsideEvent():
		return " inside an event, without a result"
	}
	return " without a result"
}

// Garbled says that what came is no HTTP response: the attempt is refused.
func (a *Attempt) Garbled(now time.Duration, err error) {
	if !a.sealed() {
		a.refuse(now, "not an HTTP response: "+err.Error())
	}
}

// sealed reports whether nothing that comes from the peer matters any more.
func (a *Attempt) sealed() bool { return a.state == over || a.state == held }

// Drop ends the attempt for a reason of ours: the end of the run.
func (a *Attempt) Drop(now time.Duration) {
	if a.state != over && a.end.Cut == nil {
		a.miss()
		a.finish(now, history.Drained, history.Us, "the run ended")
	}
}

func (a *Attempt) miss() {
	a.end.Missed = a.end.Planned != nil && a.end.Cut == nil
}

// refuse ends the attempt because of an answer that gives no result. After an
// open cut the attempt stays cut, and the server has ended it.
func (a *Attempt) refuse(now time.Duration, text string) {
	if a.state == after {
		a.end.After.PeerEnd, a.end.After.How = now, "refused"
		a.finish(now, a.end.Outcome, a.end.Origin, text)
		return
	}
	a.miss()
	a.finish(now, history.Refused, history.Peer, text)
}

func (a *Attempt) finish(now time.Duration, outcome history.Outcome, origin history.Origin, text string) {
	a.end.Outcome, a.end.Origin, a.end.Error, a.end.Ended = outcome, origin, history.Clip(text), now
	a.state = over
	a.answer, a.parser = nil, sse.Parser{}
}

// complete ends an attempt whose answer was read, unless its cut is planned for
// just this moment.
func (a *Attempt) complete(now time.Duration) {
	if a.at(history.PhaseDone) && a.end.Outcome == history.Delivered {
		a.due = now
		a.fire(causePlan)
		return
	}
	a.miss()
	a.finish(now, a.end.Outcome, a.end.Origin, a.end.Error)
}
