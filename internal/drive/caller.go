package drive

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpflood/mcpflood/chaos"
	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/stream"
	"github.com/mcpflood/mcpflood/internal/wire"
)

// Request makes the bytes of one attempt. state is what an input_required
// answer of the attempt before asked to be echoed, or nil.
type Request func(ref history.Ref, state json.RawMessage) ([]byte, error)

// Config is what a Caller needs. All fields but Clean are fixed for its life.
type Config struct {
	Clock    history.Clock
	History  history.Appender
	Dialer   *wire.Dialer
	Endpoint wire.Endpoint
	Alarm    *Alarm
	Request  Request
	Plan     chaos.Plan
	Clean    chaos.Clean // what the clean calls gave; resolves the plan's moments
	Reissue  stream.Reissue
	Stream   stream.Config
	Instance int
}

// MaxRounds bounds how often a call follows an input_required answer.
const MaxRounds = 10

// sampleFirst and sampleShare say which attempts' single events are kept: the
// first ones, and a seeded share of the rest.
const (
	sampleFirst = 100
	sampleShare = 0.01
)

// Live counts what is going on, for a live view.
type Live struct {
	Open, Held                                  atomic.Int64
	Attempts, Delivered, Cuts, Failed, Reissues atomic.Int64
	Calls                                       atomic.Int64
	// Trouble counts failures of our own: descriptors, ports.
	Trouble atomic.Int64
}

// Caller makes calls. Its methods may be called from any goroutine.
type Caller struct {
	cfg  Config
	live Live

	ending  chan struct{} // closed: no re-issues any more
	endOnce sync.Once
	dropped atomic.Bool
	dropCtx context.Context
	dropAll context.CancelFunc

	mu   sync.Mutex
	open map[*wire.Conn]struct{}

	held    sync.WaitGroup
	lastCut atomic.Int64
}

// NewCaller makes a Caller.
func NewCaller(cfg Config) *Caller {
	c := &Caller{cfg: cfg, ending: make(chan struct{}), open: map[*wire.Conn]struct{}{}}
	c.dropCtx, c.dropAll = context.WithCancel(context.Background())
	return c
}

// Live gives the counters.
func (c *Caller) Live() *Live { return &c.live }

// NoReissues ends waiting for re-issues: those calls are abandoned.
func (c *Caller) NoReissues() { c.endOnce.Do(func() { close(c.ending) }) }

// Drop closes every attempt that is still open and was not cut. Held sockets
// stay until they are settled.
func (c *Caller) Drop() {
	c.NoReissues()
	c.dropped.Store(true)
	c.dropAll()
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		conn.Wake()
	}
}

// LastCut is when the last cut was carried out; 0 if none was.
func (c *Caller) LastCut() time.Duration { return time.Duration(c.lastCut.Load()) }

// WaitHeld returns once every held socket is settled and closed.
func (c *Caller) WaitHeld() { c.held.Wait() }

// Call makes one call: its first attempt and its re-issues. It returns when the
// call is over, with the end of its last attempt; sockets that silent cuts keep
// are held on.
func (c *Caller) Call(call history.Ref, intended time.Duration) (history.Call, history.End) {
	c.live.Calls.Add(1)
	ref := call.Whole().Next()
	due := intended
	rounds := 0
	var state json.RawMessage
	outcome := "failed"
	var end *history.End
	for {
		var next json.RawMessage
		end, next = c.attempt(ref, due, state)
		if end.Outcome == history.Delivered || end.Outcome == history.TaskHandle {
			outcome = "delivered"
			break
		}
		if end.Outcome == history.Drained {
			outcome = "abandoned"
			break
		}
		var wait time.Duration
		if end.Outcome == history.MoreInput {
			if rounds++; rounds > MaxRounds {
				break
			}
			state = next
		} else {
			var again bool
			wait, again = c.cfg.Reissue.Next(end, rounds, chaos.Draw(c.cfg.Plan.Seed, ref, "backoff"))
			if !again {
				break
			}
			c.live.Reissues.Add(1)
		}
		if !c.pause(wait) {
			outcome = "abandoned"
			break
		}
		ref, due = ref.Next(), c.cfg.Clock.Now()
	}
	if outcome != "delivered" {
		c.live.Failed.Add(1)
	}
	rec := history.Call{Ref: call.Whole(), Outcome: outcome, Intended: intended, Ended: c.cfg.Clock.Now(), Attempts: int(ref.Attempt), Rounds: rounds}
	c.cfg.History.Append(history.Record{Call: &rec})
	return rec, *end
}

// pause waits out a backoff; false if the run ends first.
func (c *Caller) pause(d time.Duration) bool {
	select {
	case <-c.ending:
		return false
	default:
	}
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.ending:
		return false
	}
}

// attempt runs one attempt until it is over for its call, and returns what the
// client saw so far. The record of the end is appended here or, for held
// sockets, later.
func (c *Caller) attempt(ref history.Ref, intended time.Duration, state json.RawMessage) (*history.End, json.RawMessage) {
	s := c.begin(ref, intended)
	c.live.Attempts.Add(1)
	c.live.Open.Add(1)
	s.run(state)
	c.live.Open.Add(-1)
	end := s.m.End()
	c.tally(end)
	if s.m.Over() {
		s.close()
		c.cfg.History.Append(history.Record{End: end})
		return end, s.m.RequestState()
	}
	// A silent cut: the call goes on, the socket stays.
	seen := *end
	c.held.Add(1)
	c.live.Held.Add(1)
	go s.hold()
	return &seen, nil
}

func (c *Caller) tally(end *history.End) {
	if end.Outcome == history.Delivered {
		c.live.Delivered.Add(1)
	}
	if end.Cut != nil {
		c.live.Cuts.Add(1)
		for at := int64(end.Cut.C1); ; {
			last := c.lastCut.Load()
			if last >= at || c.lastCut.CompareAndSwap(last, at) {
				break
			}
		}
	}
	if end.Outcome == history.Failed && end.Origin == history.Us {
		c.live.Trouble.Add(1)
	}
}

func (c *Caller) begin(ref history.Ref, intended time.Duration) *shell {
	start := history.Start{Ref: ref, Instance: c.cfg.Instance, Intended: intended}
	var cut *chaos.Cut
	if d, ok := c.cfg.Plan.Cut(ref, c.cfg.Clean); ok {
		cut = &d
		start.Planned = &history.Planned{Clause: d.Clause, Style: d.Style, Moment: d.Trigger.String()}
	}
	start.Begun = c.cfg.Clock.Now()
	sampled := ref.Role == history.Load && (ref.Call <= sampleFirst || chaos.Draw(c.cfg.Plan.Seed, ref, "sample") < sampleShare)
	s := &shell{c: c}
	s.m = stream.New(&c.cfg.Stream, &start, cut, sampled)
	c.cfg.History.Append(history.Record{Start: &start})
	return s
}

func (c *Caller) enter(conn *wire.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[conn] = struct{}{}
}

func (c *Caller) leave(conn *wire.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn)
}
