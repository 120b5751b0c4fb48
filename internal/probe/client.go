// Package probe is what is asked of a server before and beside the load: which
// era it speaks, which tools it has, and whether it still answers anybody.
package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"time"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/mcp"
	"github.com/mcpflood/mcpflood/internal/sse"
	"github.com/mcpflood/mcpflood/internal/wire"
)

// maxAnswer bounds the body of one answer.
const maxAnswer = 8 << 20

// Client asks one server single questions, each on a fresh connection. Its
// methods may be called from any goroutine.
type Client struct {
	Dialer   *wire.Dialer
	Endpoint wire.Endpoint
	// Headers are sent with every request: authorization and the user's own.
	Headers []mcp.Field
	Nonce   history.Nonce
	// Timeout bounds each question before the load where it is shorter than 30
	// s; 0: it is not.
	Timeout time.Duration
}

// Answer is what a question got.
type Answer struct {
	Status      int
	ContentType string
	Location    string // of a redirect
	Body        []byte // JSON, or an error's text; of a stream the last message
	Message     mcp.Message
	// Err says why there is no Message: what came was no JSON-RPC answer.
	Err error
}

// badAnswer is what broke an answer that did come.
type badAnswer string

func (e badAnswer) Error() string { return string(e) }

// lateAnswer is a limit that has passed.
type lateAnswer time.Duration

func (e lateAnswer) Error() string { return fmt.Sprintf("no answer within %s", time.Duration(e)) }

// Ask sends one request and reads its answer. The error is a [*wire.Error] or
// says what broke; an HTTP error status is an Answer.
func (c *Client) Ask(ctx context.Context, call mcp.Call) (*Answer, error) {
	fields := append(call.Headers(), c.Headers...)
	req, err := wire.AppendRequest(nil, c.Endpoint, fields, call.Body())
	if err != nil {
		return nil, &wire.Error{Op: "request", Target: c.Endpoint.Authority, Origin: history.Us, Err: err}
	}
	conn, err := c.Dialer.Dial(ctx, c.Endpoint)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, conn.Wake)
	defer stop()
	deadline, _ := ctx.Deadline()
	if err := conn.Write(req, deadline); err != nil && wire.OriginOf(err) != history.Peer {
		return nil, err
	}
	r := reader{id: call.ID}
	for !r.done {
		err := conn.ReadAvailable(deadline, r.feed)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded): // that of ctx
			<-ctx.Done()
			return nil, context.Cause(ctx)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case r.err != nil:
			return nil, r.err
		case err != nil && !errors.Is(err, wire.ErrWoken):
			if !errors.Is(err, io.EOF) || r.resp.EOF() != nil || !r.headed {
				return nil, fmt.Errorf("no answer: %w", err)
			}
			r.done = true
		}
	}
	return r.finish(), nil
}

// reader collects one answer.
type reader struct {
	id     mcp.ID
	resp   wire.Response
	events sse.Parser
	stream bool
	headed bool
	done   bool
	answer Answer
	err    error
}

func (r *reader) feed(p []byte) {
	for !r.done && r.err == nil {
		part, n, err := r.resp.Next(p)
		p = p[n:]
		switch {
		case err != nil:
			r.err = err
		case part.Kind == wire.PartNone || part.Kind == wire.PartExtra:
			return
		case part.Kind == wire.PartHead:
			r.head(part.Head)
		case part.Kind == wire.PartEnd:
			r.done = true
		case r.stream:
			r.events.Feed(part.Body, r.event)
		case len(r.answer.Body)+len(part.Body) > maxAnswer:
			r.err = badAnswer(fmt.Sprintf("an answer of more than %d bytes", maxAnswer))
		default:
			r.answer.Body = append(r.answer.Body, part.Body...)
		}
	}
}

func (r *reader) head(h *wire.Head) {
	r.headed = true
	r.answer.Status, r.answer.ContentType, r.answer.Location = h.Status, h.Get("Content-Type"), h.Get("Location")
	media, _, _ := mime.ParseMediaType(r.answer.ContentType)
	r.stream = media == "text/event-stream"
}

// event looks for the message that answers.
func (r *reader) event(ev sse.Event) {
	switch {
	case r.done || r.err != nil:
	case ev.Kind == sse.Overflow:
		r.err = badAnswer(fmt.Sprintf("an event of more than %d bytes", sse.MaxEvent))
	case ev.Kind == sse.Message:
		if _, err := r.read(ev.Data); err == nil {
			r.answer.Body = bytes.Clone(ev.Data)
			r.done = true
		}
	}
}

// read reads b as the answer to the question; an error may come without an id.
func (r *reader) read(b []byte) (mcp.Message, error) {
	m, err := mcp.DecodeMessage(b)
	switch {
	case err != nil:
	case m.Kind != mcp.ResultResponse && m.Kind != mcp.ErrorResponse:
		err = errors.New("the answer is a " + m.Kind.String())
	case m.ID != r.id && !(m.Kind == mcp.ErrorResponse && m.ID.IsZero()):
		err = fmt.Errorf("the answer is for id %.80q, which was not asked", m.ID)
	}
	return m, err
}

func (r *reader) finish() *Answer {
	a := &r.answer
	a.Message, a.Err = r.read(a.Body)
	return a
}

// AskWithin is Ask with a time limit.
func (c *Client) AskWithin(ctx context.Context, limit time.Duration, call mcp.Call) (*Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, lateAnswer(limit))
	defer cancel()
	return c.Ask(ctx, call)
}

// Tell posts a notification and waits until anything was answered; what it was
// proves nothing.
func (c *Client) Tell(ctx context.Context, limit time.Duration, method string, params any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	fields := append([]mcp.Field{{Name: "Content-Type", Value: "application/json"}, {Name: "Accept", Value: "application/json, text/event-stream"},
		{Name: mcp.HeaderVersion, Value: mcp.Version}, {Name: mcp.HeaderMethod, Value: method}}, c.Headers...)
	req, err := wire.AppendRequest(nil, c.Endpoint, fields, mcp.AppendNotification(nil, method, raw))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := c.Dialer.Dial(ctx, c.Endpoint)
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.Write(req, deadline); err != nil {
		return err
	}
	_ = conn.ReadAvailable(deadline, func([]byte) {})
	return nil
}
