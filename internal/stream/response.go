package stream

import (
	"fmt"
	"mime"
	"strings"
	"time"

	"github.com/mcpflood/mcpflood/chaos"
	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/mcp"
)

// Head takes the response's head.
func (a *Attempt) Head(now time.Duration, h Head) {
	if a.sealed() {
		return
	}
	a.Arrived(now)
	a.end.Headers, a.end.Status, a.end.RetryAfter = now, h.Status, h.RetryAfter
	if a.state == waiting {
		a.state = reading
	}
	media, _, _ := mime.ParseMediaType(h.ContentType)
	switch {
	case h.Encoding != "" && h.Encoding != "identity":
		a.end.Form = h.Encoding // not read: such an attempt lives to be cut
	case h.Status/100 == 2 && media == "text/event-stream":
		a.end.Form = "sse"
	case media == "application/json" || h.Status/100 != 2:
		a.end.Form = "json" // an error body is read as JSON-RPC on every status
	default:
		a.refuse(now, fmt.Sprintf("status %d with content type %q: want application/json or text/event-stream", h.Status, history.Clip(h.ContentType)))
		return
	}
	if h.Status/100 == 3 {
		a.refuse(now, fmt.Sprintf("status %d redirects to %q: give the final URL", h.Status, history.Clip(h.Location)))
		return
	}
	if a.state == reading && h.Status/100 == 2 && a.at(history.PhaseHeaders) {
		a.due = now
		a.fire(causePlan)
	}
}

// Arrived says that bytes of the response arrived.
func (a *Attempt) Arrived(now time.Duration) {
	if a.sealed() {
		return
	}
	if a.end.FirstByte == 0 {
		a.end.FirstByte = now
	}
	if a.trigger.Kind == chaos.AfterQuiet && a.state != firing && a.end.Cut == nil {
		a.due = now + a.trigger.After
	}
}

// Body takes bytes of the response's body and tells how many it took: fewer
// than all when the cut's moment lies between them, or when the attempt is
// over. While a cut is due, what the shell drains is read for a result only.
func (a *Attempt) Body(now time.Duration, p []byte) int {
	if a.sealed() {
		return 0
	}
	entered := a.state
	n := 0
	for n < len(p) && a.state == entered {
		k := a.room(len(p) - n)
		switch a.end.Form {
		case "sse":
			k = a.feed(now, p[n:n+k])
		case "json":
			a.collect(now, p[n:n+k])
		}
		n += k
		a.count(int64(k))
		if a.atByte() {
			a.due = now
			a.fire(causePlan)
		}
	}
	return n
}

func (a *Attempt) count(k int64) {
	if a.state == after {
		a.end.After.Bytes += k
		return
	}
	a.end.Bytes += k
}

// byteExact reports whether a cut at an exact byte is still to come.
func (a *Attempt) byteExact() bool { return a.state == reading && a.style != history.StyleNone }

// room is how many of k bytes may be taken before a cut at a byte is due.
func (a *Attempt) room(k int) int {
	if !a.byteExact() || a.trigger.Kind != chaos.AtBytes {
		return k
	}
	return int(max(1, min(int64(k), a.trigger.Bytes-a.end.Bytes)))
}

func (a *Attempt) atByte() bool {
	if !a.byteExact() {
		return false
	}
	switch t := a.trigger; t.Kind {
	case chaos.AtBytes:
		return a.end.Bytes >= t.Bytes
	case chaos.AtEvent:
		if t.Offset == 0 {
			return a.end.Events >= t.Event
		}
		return a.end.Events == t.Event-1 && a.parser.Into() >= int64(t.Offset)
	}
	return false
}

// feed reads up to the end of the first event in p.
func (a *Attempt) feed(now time.Duration, p []byte) int {
	until := int64(0)
	if t := a.trigger; a.byteExact() && t.Kind == chaos.AtEvent && a.end.Events == t.Event-1 {
		until = int64(t.Offset)
	}
	ev, n, ok := a.parser.NextUntil(p, until)
	if ok {
		a.event(now, ev)
	}
	return n
}

func (a *Attempt) collect(now time.Duration, p []byte) {
	if a.end.FirstEvent == 0 {
		a.end.FirstEvent = now
	}
	if len(a.answer)+len(p) > MaxAnswer {
		a.refuse(now, fmt.Sprintf("an answer longer than %d bytes", MaxAnswer))
		return
	}
	a.answer = append(a.answer, p...)
}

// BodyEnd says that the response is complete as HTTP sees it.
func (a *Attempt) BodyEnd(now time.Duration) {
	switch {
	case a.sealed(), a.state == firing && a.end.Result != 0:
	case a.end.Form == "json":
		a.whole(now)
	case a.end.Form != "" && a.end.Form != "sse":
		a.refuse(now, "an answer encoded as "+history.Clip(a.end.Form)+" ended before its cut; it is not read")
	default:
		a.PeerEnded(now, "eof")
	}
}

// whole reads the collected JSON body.
func (a *Attempt) whole(now time.Duration) {
	body := a.answer
	a.answer = nil
	m, err := mcp.DecodeMessage(body)
	answer := err == nil && (m.Kind == mcp.ResultResponse || m.Kind == mcp.ErrorResponse)
	if answer {
		a.message(now, m)
	}
	switch {
	case a.state == over || a.end.Result != 0:
	case a.end.Status/100 != 2:
		a.refuse(now, strings.TrimSuffix(fmt.Sprintf("status %d: %s", a.end.Status, firstLine(body)), ": "))
	case answer:
		a.broken(now, history.Peer, "eof", "the server answered another id")
	case len(body) == 0:
		a.refuse(now, fmt.Sprintf("status %d with an empty body", a.end.Status))
	default:
		a.refuse(now, fmt.Sprintf("status %d whose body is no JSON-RPC answer: %s", a.end.Status, firstLine(body)))
	}
}

func firstLine(b []byte) string {
	s, _, _ := strings.Cut(strings.TrimSpace(string(b[:min(len(b), history.MaxText)])), "\n")
	return history.Clip(s)
}
