package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/mcp"
	"github.com/mcpflood/mcpflood/internal/wire"
)

const (
	// canaryEvery is the pace of the canary.
	canaryEvery = time.Second
	// CanaryTimeout is when a probe counts as failed.
	CanaryTimeout = 5 * time.Second
)

// Canary probes the server once a second, each time on a fresh connection with
// the cheapest call it has, and appends every probe to the history, until ctx
// is over. It runs on the caller's goroutine.
func (c *Client) Canary(ctx context.Context, method string, clock history.Clock, to history.Appender) {
	tick := time.NewTicker(canaryEvery)
	defer tick.Stop()
	for n := uint64(1); ctx.Err() == nil; n++ {
		at := clock.Now()
		call := mcp.Call{ID: mcp.StringID(c.Nonce.ID(history.Ref{Role: history.Probe, Call: canaryCalls + n, Attempt: 1})), Method: method}
		answer, err := c.AskWithin(ctx, CanaryTimeout, call)
		if ctx.Err() != nil {
			return // our own end says nothing about the server
		}
		rec := history.Canary{At: at, Latency: clock.Now() - at, OK: err == nil}
		switch {
		case err != nil:
			rec.Error = history.Clip(err.Error())
		case answer.Err != nil:
			rec.OK, rec.Error = false, history.Clip(fmt.Sprintf("status %d: %v", answer.Status, answer.Err))
		case answer.Message.Kind == mcp.ErrorResponse:
			rec.OK, rec.Error = false, history.Clip(fmt.Sprintf("error %d: %s", answer.Message.Err.Code, answer.Message.Err.Message))
		}
		if err != nil && ours(err) {
			// Says nothing about the server either.
			to.Append(history.Record{Driver: &history.Driver{Trouble: history.Clip(err.Error())}})
		} else {
			to.Append(history.Record{Canary: &rec})
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// canaryCalls is where the canary's call numbers begin: below it are the
// questions asked before the load.
const canaryCalls = 1 << 20

// ours reports whether a probe failed for a reason of this machine: descriptors
// or ports. A server that does not answer in time is no such reason.
func ours(err error) bool {
	var e *wire.Error
	return errors.As(err, &e) && e.Origin == history.Us
}
