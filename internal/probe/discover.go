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
	return fmt.Sprintf("%s: the server answers with status %d: %s", e.What, e.Status, e.Text)
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
	a, err := c.AskWithin(ctx, askTimeout, call)
	var wireErr *wire.Error
	switch {
	case err == nil:
		return a, nil
	case errors.As(err, &wireErr) && wireErr.Origin == history.Us:
		return nil, err
	}
	return nil, &noAnswer{fmt.Errorf("%s: %w", method, err)}
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
	case a.Status == 401 || a.Status == 403:
		return Server{}, &StatusError{a.Status, mcp.MethodDiscover, words}
	case era == mcp.EraLegacy:
		return Server{}, fmt.Errorf("the server speaks an older revision of MCP only: %s; mcpflood needs 2026-07-28, where closing a stream is the cancellation (before it, running on after a disconnect was right)", words)
	case era != mcp.EraModern:
		return Server{}, fmt.Errorf("no MCP server answers at %s: %s", c.Endpoint, words)
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
			return mcp.Tool{}, &StatusError{a.Status, mcp.MethodToolsList, history.Clip(string(a.Body))}
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
			names = append(names, t.Name)
		}
		if list.NextCursor == nil {
			return mcp.Tool{}, noTool(name, names)
		}
		params = mcp.CursorParams(*list.NextCursor)
	}
	return mcp.Tool{}, fmt.Errorf("tools/list does not end: more than %d pages", maxPages)
}

// namesShown is how many tool names an error lists.
const namesShown = 20

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
