package oracle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// word gives every finding that has none its text: what happened, the likely
// cause, and what to do.
func (j *judge) word() {
	words := map[string]func(*finding) string{
		idRunOn: j.runOnText, idLate: j.lateText, idEffect: j.effectText, idContradict: j.contradictText,
		idHalfClose: j.halfCloseText, idGap: j.gapText, idUnnoticed: j.unnoticedText,
	}
	for id, x := range j.found.byID {
		switch {
		case x.Text != "":
		case words[id] != nil:
			x.Text = words[id](x)
		default:
			x.Text = fmt.Sprintf(plainText[id], x.Count)
		}
	}
}

// plainText are the texts that need no more than their count.
var plainText = map[string]string{
	idEmission:    "messages for a request came after its stream was closed: %d. The specification has a server send nothing more for a cancelled request; stop the handler's writes when its stream is gone.",
	idStray:       "messages of another request came on a stream: %d. One user can read another's progress: key progress and results by the request's own stream, not by a shared id or session.",
	idWrongID:     "answers carried another request's id: %d. The call that waits gets no answer, and somebody else's may leak: take the id from the request that is answered, and cache no answers.",
	idSpurious:    "calls that nobody cut were cancelled, or lost their stream without an answer: %d. A cancellation reaches the wrong call, or the server gives up under load: look for a cancel keyed by something shared, and for crashes.",
	idCancelAny:   "calls of one client were ended by another client's notifications/cancelled that named their id: %d. Anybody who guesses or reads an id can stop somebody else's work: over HTTP heed only the closing of the request's own stream.",
	idDuplicate:   "side effects were done again when a cut call was sent again: %d. The cut fell after the effect and before the answer; make the effect idempotent, by a key in the arguments.",
	idHalfError:   "half-closed calls were answered with an error after the server had stopped them: %d. A client that only closed its sending side still reads this.",
	idWrongSignal: "calls stopped on a notifications/cancelled by POST, which is no signal over HTTP in 2026-07-28: %d.",
	idAmbiguous:   "records name only a call of which several attempts could be meant: %d. They prove nothing; log the JSON-RPC id or the traceparent.",
}

// cause guesses why work ran on from where it did and where it did not.
func (t *tally) cause() string {
	ran, stopped := map[history.Phase]int{}, map[history.Phase]int{}
	ranForm, stoppedForm := map[string]int{}, map[string]int{}
	ranAll, judged := 0, 0
	for g, v := range t.signal {
		ran[g.phase] += v[history.RanOn]
		stopped[g.phase] += v[history.Stopped]
		ranForm[g.form] += v[history.RanOn]
		stoppedForm[g.form] += v[history.Stopped]
		ranAll += v[history.RanOn]
		judged += v.judged()
	}
	early := ran[history.PhaseSent]
	switch {
	case ranForm["json"] == ranAll && stoppedForm["sse"] > 0:
		return "Only calls answered as plain JSON leak: the hang-up is watched for only while streaming. Watch the connection for JSON answers too."
	case early == ranAll && early > 0 && stopped[history.PhaseMid]+stopped[history.PhaseEvent]+stopped[history.PhaseHeaders] > 0:
		return "Only cuts before the response head leak: the hang-up is watched for only once the stream has begun. Watch the connection from the moment the request is read."
	case t.forms["json"] > 0 && t.forms["sse"] == 0 && early == ranAll:
		return "All answers are plain JSON, which many servers write without watching the connection. Watch it from the moment the request is read, and pass the cancellation to the work."
	case ranAll*2 < judged:
		return "Only some calls leak: look for a path that does not get the request's cancellation, such as a background job, a thread or a retry."
	}
	return "The work is never told that the client has left. Pass the request's cancellation (context, AbortSignal) to the work and check it between steps; with the official Go SDK switch PropagateRequestCancellation on."
}

func (j *judge) runOnText(x *finding) string {
	t := &j.tally
	judged := 0
	for _, v := range t.signal {
		judged += v.judged()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %s went on working after the client had hung up", x.Count, plural(judged, "judged cut"))
	if t.ranUnitsMost > 0 {
		fmt.Fprintf(&b, ": %s more %ss in all, up to %s for one attempt, up to %s after the cut", number(t.ranUnits), t.ranUnit, number(t.ranUnitsMost), text(time.Duration(t.ranTimeMost*float64(time.Second))))
	}
	if t.working > 0 {
		fmt.Fprintf(&b, "; %d still at work when the watch ended", t.working)
	}
	fmt.Fprintf(&b, "%s. %s", j.phases(history.RanOn), t.cause())
	return b.String()
}

// phases says at which phases a verdict fell, if not at all that were cut.
func (j *judge) phases(v history.Verdict) string {
	with, without := map[history.Phase]bool{}, map[history.Phase]bool{}
	for g, n := range j.tally.signal {
		if n[v] > 0 {
			with[g.phase] = true
		} else if n.judged() > 0 {
			without[g.phase] = true
		}
	}
	var in, out []string
	for _, p := range history.Phases() {
		switch {
		case with[p]:
			in = append(in, p.String())
		case without[p]:
			out = append(out, p.String())
		}
	}
	if len(in) == 0 || len(out) == 0 {
		return ""
	}
	return fmt.Sprintf(". At %s, not at %s", list(in), list(out))
}

func (j *judge) lateText(x *finding) string {
	return fmt.Sprintf("%s stopped, but later than --stop-within %s: up to %s after the cut%s. The work looks for the cancellation too rarely, or hears of it late; check it more often, or set a larger --stop-within if that is good enough.",
		plural(x.Count, "cut attempt"), text(j.p.stopWithin()), text(time.Duration(j.tally.lateMost*float64(time.Second))), j.phases(history.Late))
}

func (j *judge) effectText(x *finding) string {
	return fmt.Sprintf("%s had a side effect after the client had hung up. The work may stop while its last step still happens: check for the cancellation once more right before the effect.", plural(x.Count, "cut attempt"))
}

func (j *judge) contradictText(x *finding) string {
	return fmt.Sprintf("%s is said to have stopped by evidence that came before its later work. \"Cancelled\" was logged or counted while the work went on: log it where the work ends, not where the cancellation arrives.", plural(x.Count, "attempt"))
}

func (j *judge) halfCloseText(*finding) string {
	t := &j.tally
	switch {
	case t.openWentOn == 0:
		return fmt.Sprintf("the server takes a half-close as a hang-up (%d of %d): a client that only closes its sending side loses its answer.", t.openHungUp, t.openHungUp)
	case t.openHungUp == 0:
		return fmt.Sprintf("the server answers on after a half-close (%d of %d), as for a client that still listens.", t.openWentOn, t.openWentOn)
	}
	return fmt.Sprintf("after a half-close the server hung up on %s and went on with %d.", plural(t.openHungUp, "call"), t.openWentOn)
}

func (j *judge) unnoticedText(x *finding) string {
	return fmt.Sprintf("%s whose client had vanished went on longer than --notice-within %s. Nothing tells the server that a silent peer is gone: write to the stream now and then and set TCP_USER_TIMEOUT or keep-alive on it.", plural(x.Count, "attempt"), text(j.p.run.Notice))
}

func (j *judge) gapText(*finding) string {
	var parts []string
	n := 0
	for _, src := range j.p.sources.sorted() {
		if src.gapCount > 0 {
			n += src.gapCount
			parts = append(parts, fmt.Sprintf("%s (%s)", src.Name, src.gaps[0].Reason))
		}
	}
	return fmt.Sprintf("witnesses could not be read all the time, %s: %s. Silence in a gap proves nothing.", plural(n, "gap"), strings.Join(parts, "; "))
}

// general adds the findings about the whole run.
func (j *judge) general() {
	j.gaps()
	for _, src := range j.p.sources.sorted() {
		if src.clockBroken() {
			j.found.whole(idClock, history.SeverityNote, 1, fmt.Sprintf("the times that %s writes cannot be used: %s. Its records are placed by their arrival.", src.Name, src.trouble()))
		}
	}
	j.down()
	j.slots()
	d := j.damage
	if d.streams >= bufferedEvents && d.buffered*2 > d.streams {
		j.found.whole(idBuffered, history.SeverityWarn, d.buffered, fmt.Sprintf("streams are buffered: in %d of %s all events arrived with the end, so a cut in mid-stream cannot be made. Switch buffering and compression of text/event-stream off, in the server and in every proxy before it.", d.buffered, plural(d.streams, "call")))
	}
	if cuts := j.counts.Cuts; j.tally.noise > 2 && j.tally.noise*2 > cuts && cuts > 0 {
		j.found.whole(idNoise, history.SeverityWarn, j.tally.noise, fmt.Sprintf("the server wrote %s for %s. A client that leaves is normal; log it as such.", plural(j.tally.noise, "error line"), plural(cuts, "cut")))
	}
	if n := j.tally.replays; n > 0 {
		j.found.whole(idReplay, history.SeverityWarn, n, fmt.Sprintf("events of an earlier request came again: %d. 2026-07-28 has no replay; ignore Last-Event-ID.", n))
	}
}

func (j *judge) gaps() {
	n := 0
	for _, src := range j.p.sources.sorted() {
		n += src.gapCount
	}
	if n > 0 {
		j.found.get(idGap, history.SeverityNote).Count = n
	}
}

// down reports a server that stopped answering.
func (j *judge) down() {
	var o outage
	what := ""
	if c := j.canary.down; c.fails > 0 {
		o, what = c, fmt.Sprintf("%d probes in a row failed", c.fails)
	}
	if d := j.damage.down; d.fails > 0 && (o.fails == 0 || d.length(d.to) > o.length(o.to)) {
		o, what = d, fmt.Sprintf("%d new connections in a row failed", d.fails)
	}
	if o.fails == 0 {
		return
	}
	when := ""
	if j.p.firstCut != 0 && o.from >= j.p.firstCut {
		when = ", after the first cut"
	}
	text := fmt.Sprintf("the server stopped answering for %s, from %s into the run%s: %s. Look for a crash, a lock or a pool that a cut call never gave back.",
		text(o.length(j.p.last)), text(o.from), when, what)
	j.found.whole(idServerDown, history.SeverityFail, 1, text, Cite{Name: "canary", Lo: o.from, Hi: o.to, Text: what})
}

// slots reports re-issues that suffer from what cut calls left behind.
func (j *judge) slots() {
	d := j.damage
	refused := d.leakedRefused
	if j.found.byID[idServerDown] == nil {
		refused += d.leakedConnect // else nobody could connect
	}
	if d.refusedBefore > 0 {
		refused = 0
	}
	if refused+d.leakedSlow < leakedSlots {
		return
	}
	x := j.found.whole(idSlotLeak, history.SeverityFail, refused+d.leakedSlow, fmt.Sprintf(
		"calls that were sent again after a cut were refused (%d) or had to wait far longer than first calls (%d). A cut call keeps its slot, lock or worker: free it when the stream is gone, not when the work would have ended.", refused, d.leakedSlow))
	for _, l := range d.leaked {
		if !slices.Contains(x.Attempts, l.ref) {
			x.Attempts = append(x.Attempts, l.ref)
		}
		what := l.text
		if what == "" {
			what = fmt.Sprintf("first answer after %s", text(l.server))
		}
		x.cite(Cite{Name: "wire", Lo: l.sent, Hi: l.sent + l.server, Text: clip(what)})
	}
}
