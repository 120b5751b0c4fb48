package stream

import (
	"bytes"
	"fmt"
	"time"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/mcp"
	"github.com/mcpflood/mcpflood/internal/sse"
)

// event takes one event of the stream.
func (a *Attempt) event(now time.Duration, ev sse.Event) {
	switch ev.Kind {
	case sse.Message:
		a.note(now, ev, a.data(now, ev.Data))
	case sse.Comment:
		a.note(now, ev, "comment")
	case sse.Overflow:
		a.note(now, ev, "other")
		a.refuse(now, fmt.Sprintf("an event longer than %d bytes", sse.MaxEvent))
	}
}

// What is kept of one attempt at most, so that no server can fill the disk: its
// End counts all events, and a finding needs no more evidence than this.
const (
	MaxNotes  = 1000 // events, of sampled attempts
	MaxClaims = 100  // messages of other attempts, or after the cut
)

// note keeps an event of a sampled attempt, for the stream lanes.
func (a *Attempt) note(now time.Duration, ev sse.Event, what string) {
	if a.sampled && a.notes < MaxNotes {
		a.notes++
		a.cfg.History.Append(history.Record{Event: &history.Event{Ref: a.end.Ref, N: a.end.Events, At: now, Offset: ev.Offset, What: what}})
	}
}

// data takes an event's payload: one JSON-RPC message.
func (a *Attempt) data(now time.Duration, b []byte) string {
	m, err := mcp.DecodeMessage(b)
	if err != nil {
		a.counted(now)
		a.tail(now)
		return "other"
	}
	if m.Kind == mcp.ResultResponse || m.Kind == mcp.ErrorResponse {
		a.message(now, m)
		return "result"
	}
	a.counted(now)
	a.message(now, m)
	a.tail(now)
	if m.Method == mcp.MethodProgress {
		return "progress"
	}
	return "message"
}

// counted counts an event before the result.
func (a *Attempt) counted(now time.Duration) {
	if a.state == after {
		return
	}
	a.end.Events++
	if a.end.FirstEvent == 0 {
		a.end.FirstEvent = now
	}
	a.end.LastEvent = now
}

// message takes one JSON-RPC message, from a stream or as a JSON answer.
func (a *Attempt) message(now time.Duration, m mcp.Message) {
	if kind := a.foreign(m); kind != history.KindNone {
		a.evidence(kind, m)
		return
	}
	if a.state == after {
		a.late(now, m)
		return
	}
	switch m.Kind {
	case mcp.ResultResponse:
		a.result(now, m)
	case mcp.ErrorResponse:
		a.end.Result, a.end.Code, a.end.Cancelled = now, m.Err.Code, m.Cancelled()
		if a.end.FirstEvent == 0 {
			a.end.FirstEvent = now
		}
		a.miss()
		a.finish(now, history.Refused, history.Peer, m.Err.Message)
	case mcp.Notification:
		a.progress(m)
	}
}

// foreign tells messages that belong to another attempt: a stream carries only
// messages that relate to its own request (streamable HTTP, Receiving Messages).
func (a *Attempt) foreign(m mcp.Message) history.Kind {
	switch m.Kind {
	case mcp.ResultResponse, mcp.ErrorResponse:
		id := m.ID.String()
		if m.ID.IsZero() && m.Kind == mcp.ErrorResponse || id == a.cfg.Nonce.ID(a.id) {
			return history.KindNone
		}
		return history.WrongID
	case mcp.Notification:
		ref, claim := a.cfg.Nonce.ReadToken(m.Progress.Token.String())
		if claim == history.Ours && ref != a.end.Ref || claim == history.Foreign {
			return history.Stray
		}
	}
	return history.KindNone
}

func (a *Attempt) result(now time.Duration, m mcp.Message) {
	a.end.Result = now
	if a.end.FirstEvent == 0 {
		a.end.FirstEvent = now
	}
	switch m.Result.Type {
	case mcp.ResultComplete:
		a.end.Outcome, a.end.Origin = history.Delivered, history.Peer
		a.end.IsError, a.end.Cancelled, a.end.Error = m.Result.IsError, m.Cancelled(), m.Result.Text
	case mcp.ResultTask:
		a.end.Outcome, a.end.Origin = history.TaskHandle, history.Peer
	case mcp.ResultInputRequired:
		a.end.Outcome, a.end.Origin = history.MoreInput, history.Peer
		a.requestState = bytes.Clone(m.Result.RequestState)
		if m.Result.InputRequests != nil {
			a.refuse(now, "the tool asks for input (resultType input_required with inputRequests): mcpflood cannot answer it; choose arguments that need none")
			return
		}
	default:
		a.refuse(now, "an invalid result: "+m.Result.Reason)
		return
	}
	a.complete(now)
}

// progress looks how far the server says it is.
func (a *Attempt) progress(m mcp.Message) {
	if m.Method == mcp.MethodProgress {
		a.totals = a.totals || m.Progress.HasTotal
		a.total = a.total || m.Progress.Done()
	}
}

// tail looks whether the event just counted stands for the last side effect.
func (a *Attempt) tail(now time.Duration) {
	if a.state == reading && a.due == 0 && a.at(history.PhaseTail) && (a.total || !a.totals && a.end.Events >= a.trigger.Event) {
		a.due = now + a.trigger.After
	}
}

// late takes a message that came after an open cut.
func (a *Attempt) late(now time.Duration, m mcp.Message) {
	x := a.end.After
	x.Messages++
	a.evidence(history.Emission, m)
	switch m.Kind {
	case mcp.ErrorResponse:
		x.Result, x.IsError = now, true
		a.end.Code, a.end.Cancelled = m.Err.Code, m.Cancelled()
		a.finish(now, a.end.Outcome, a.end.Origin, m.Err.Message)
	case mcp.ResultResponse:
		x.Result, x.IsError = now, m.Result.IsError
		if m.Result.Type == mcp.ResultComplete {
			a.end.Outcome, a.end.Origin, a.end.Result = history.Delivered, history.Peer, now
			a.end.IsError, a.end.Cancelled = m.Result.IsError, m.Cancelled()
		}
		a.finish(now, a.end.Outcome, a.end.Origin, m.Result.Text)
	}
}

// evidence records what the wire itself shows.
func (a *Attempt) evidence(kind history.Kind, m mcp.Message) {
	if a.claims == MaxClaims {
		return
	}
	a.claims++
	a.cfg.History.Append(history.Record{Evidence: &history.Evidence{Kind: kind, Ref: a.end.Ref, By: "wire", Text: history.Clip(summary(m))}})
}

// summary says in one line what a message was, for the evidence.
func summary(m mcp.Message) string {
	switch m.Kind {
	case mcp.ResultResponse:
		return fmt.Sprintf("result for id %q, isError %v %s", m.ID, m.Result.IsError, m.Result.Text)
	case mcp.ErrorResponse:
		return fmt.Sprintf("error %d for id %q: %s", m.Err.Code, m.ID, m.Err.Message)
	case mcp.Notification:
		return fmt.Sprintf("%s for token %q", m.Method, m.Progress.Token)
	}
	return m.Kind.String() + " " + m.Method
}
