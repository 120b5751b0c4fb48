package probe

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/mcp"
	"github.com/mcpflood/mcpflood/internal/wire"
)

// askTimeout bounds one question before the load.
const askTimeout = 30 * time.Second

// maxPages bounds how many pages of tools/list are read.
const maxPages = 100

// ErrNoAnswer is wrapped by errors that mean that nobody answers at the target
// at all.
var ErrNoAnswer = errors.New("no answer")

// StatusError is an HTTP error status instead of an answer.
type StatusError struct {
	Status int
	What   string // the method asked
	Text   string // the server's words
}

func (e *StatusError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("%s: the server answers with status %d: %s", e.What, e.Status, e.Text), ": ")
}

// Server is what discovery found out.
type Server struct {
	Name     string   // name and version the server gives itself; may be empty
	Versions []string // protocol revisions it says it speaks; may be empty
	// Cheapest is the method that costs the server least: what the canary asks.
	Cheapest string
}

// ask numbers and sends one question before the load.
func (c *Client) ask(ctx context.Context, n uint64, method string, params []byte) (*Answer, error) {
	call := mcp.Call{ID: mcp.StringID(c.Nonce.ID(history.Ref{Role: history.Probe, Call: n, Attempt: 1})), Method: method, Params: params}
	limit := askTimeout
	if c.Timeout > 0 {
		limit = min(limit, c.Timeout)
	}
	a, err := c.AskWithin(ctx, limit, call)
	if err == nil {
		return a, denied(method, a)
	}
	var ours *wire.Error
	var late lateAnswer
	var garbage *wire.ProtocolError
	var bad badAnswer
	switch {
	case errors.As(err, &late):
	case errors.As(err, &ours) && ours.Origin == history.Us:
		return nil, err
	case errors.As(err, &garbage), errors.As(err, &bad):
		return nil, fmt.Errorf("%s: no MCP server answers at %s: %w", method, c.Endpoint, err)
	}
	return nil, &noAnswer{fmt.Errorf("%s: %w", method, err)}
}

// denied tells answers that no other look can help: they are about who asks,
// or where.
func denied(method string, a *Answer) error {
	text := shorten(string(a.Body))
	if a.Err == nil && a.Message.Kind == mcp.ErrorResponse {
		text = a.Message.Err.Message
	}
	switch {
	case a.Status == 401 || a.Status == 403:
		return &StatusError{a.Status, method, text}
	case a.Status/100 == 3:
		return fmt.Errorf("%s: the server redirects (status %d) to %q: give the final URL", method, a.Status, shorten(a.Location))
	}
	return nil
}

type noAnswer struct{ error }

func (e *noAnswer) Unwrap() []error { return []error{ErrNoAnswer, e.error} }

// Discover asks the server what it is. It tells servers that speak only older
// revisions (versioning, "Backward Compatibility") in plain words. A server
// without server/discover is asked for its tools instead.
func (c *Client) Discover(ctx context.Context) (Server, error) {
	a, err := c.ask(ctx, 1, mcp.MethodDiscover, nil)
	if err != nil {
		return Server{}, err
	}
	era, words := mcp.ReadEra(a.Status, a.ContentType, a.Body)
	switch {
	case era == mcp.EraLegacy:
		return Server{}, fmt.Errorf("the server speaks an older revision of MCP only: %s; mcpflood needs 2026-07-28, where closing a stream is the cancellation (before it, running on after a disconnect was right)", words)
	case era != mcp.EraModern:
		return Server{}, fmt.Errorf("no MCP server answers at %s: %s", c.Endpoint, words)
	case a.Err != nil:
		return Server{}, fmt.Errorf("server/discover: %w", a.Err)
	}
	if a.Message.Kind == mcp.ErrorResponse {
		if a.Message.Err.Code == mcp.CodeMethodNotFound {
			return Server{Cheapest: mcp.MethodToolsList}, nil
		}
		return Server{}, fmt.Errorf("server/discover: %s", words)
	}
	d, err := mcp.ParseDiscover(a.Message.Result.Raw)
	if err != nil {
		return Server{}, fmt.Errorf("server/discover: %w", err)
	}
	return Server{Name: d.Server, Versions: d.Versions, Cheapest: mcp.MethodDiscover}, nil
}

// Tool finds a tool by name, over all pages of tools/list. warn is told of tools
// that the server lists but no client may use.
func (c *Client) Tool(ctx context.Context, name string, warn func(format string, args ...any)) (mcp.Tool, error) {
	var names []string
	var params []byte
	for page := range uint64(maxPages) {
		a, err := c.ask(ctx, 2+page, mcp.MethodToolsList, params)
		if err != nil {
			return mcp.Tool{}, err
		}
		switch {
		case a.Err != nil:
			return mcp.Tool{}, fmt.Errorf("tools/list: %w; the answer, status %d, is %q", a.Err, a.Status, shorten(string(a.Body)))
		case a.Message.Kind == mcp.ErrorResponse:
			return mcp.Tool{}, fmt.Errorf("tools/list: error %d: %s", a.Message.Err.Code, a.Message.Err.Message)
		}
		list, err := mcp.ParseTools(a.Message.Result.Raw)
		if err != nil {
			return mcp.Tool{}, fmt.Errorf("tools/list: %w", err)
		}
		for _, d := range list.Dropped {
			warn("warning: the server's tool %s cannot be used: %s", d.Name, d.Reason)
		}
		for _, t := range list.Tools {
			if t.Name == name {
				return t, nil
			}
			names = append(names, shorten(t.Name))
		}
		if list.NextCursor == nil {
			return mcp.Tool{}, noTool(name, names)
		}
		params = mcp.CursorParams(*list.NextCursor)
	}
	return mcp.Tool{}, fmt.Errorf("tools/list does not end: more than %d pages", maxPages)
}

// Bounds of what an error quotes.
const (
	namesShown = 20  // tool names
	textShown  = 200 // bytes of an answer, or of a name
)

func shorten(s string) string {
	if len(s) <= textShown {
		return s
	}
	return strings.ToValidUTF8(s[:textShown], "") + "…"
}

func noTool(name string, names []string) error {
	sort.Strings(names)
	shown := names
	if len(shown) > namesShown {
		shown = append(shown[:namesShown:namesShown], "…")
	}
	if len(names) == 0 {
		return fmt.Errorf("the server has no tool %q, nor any other", name)
	}
	return fmt.Errorf("the server has no tool %q; it has %s", name, strings.Join(shown, ", "))
}
