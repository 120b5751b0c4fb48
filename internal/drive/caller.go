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

// Ask is what a request is made for.
type Ask struct {
	Ref     history.Ref
	ID      history.Ref // whose JSON-RPC id it carries: its own, but in a probe
	Variant string
	// State is what an input_required answer of the attempt before asked to be
	// echoed, or nil.
	State json.RawMessage
}

// Request makes the bytes of one attempt.
type Request func(Ask) ([]byte, error)

// Act is a call made on purpose: what the plan decides for others is given.
type Act struct {
	Cut     *chaos.Cut // of its first attempt; nil: it is left alone
	Variant string
	Probe   string
	ID      history.Ref // use this attempt's id; zero: its own
	// First is called once, on another goroutine, when the first event came
	// (JSON: the first byte of the body); nil: nobody waits for it.
	First func(at time.Duration)
}

// Config is what a Caller needs. All fields but Clean are fixed for its life.
type Config struct {
	Clock    history.Clock
	History  history.Appender
	Dialer   *wire.Dialer
	Redialer *wire.Dialer // for re-issues; nil: Dialer
	Endpoint wire.Endpoint
	Alarm    *Alarm
	Request  Request
	// Signal makes the bytes of a notifications/cancelled for an attempt, for
	// cuts in the style wrong-signal.
	Signal   func(ref history.Ref) ([]byte, error)
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
	if cfg.Redialer == nil {
		cfg.Redialer = cfg.Dialer
	}
	c := &Caller{cfg: cfg, ending: make(chan struct{}), open: map[*wire.Conn]struct{}{}}
	c.dropCtx, c.dropAll = context.WithCancel(context.Background())
	return c
}

// Live gives the counters.
func (c *Caller) Live() *Live { return &c.live }

// NoReissues ends waiting for re-issues: those calls are abandoned.
func (c *Caller) NoReissues() { c.endOnce.Do(func() { close(c.ending) }) }

// Drop closes every attempt that is still open and was not cut. Held sockets
// stay until they are settled. A Caller that is no longer needed must be dropped.
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

// call is one call under way.
type call struct {
	c   *Caller
	rec history.Call
	ref history.Ref // of the attempt under way
	due time.Duration
	// state is what the next attempt must echo after an input_required answer.
	state json.RawMessage
	act   *Act // nil: the plan decides
	s     *shell
	end   *history.End // of the last attempt

	again bool
	wait  time.Duration
}

// Call makes one call: its first attempt and its re-issues. It returns when the
// call is over, with the end of its last attempt; sockets that silent cuts keep
// are held on.
//
// The calling goroutine only waits, on its smallest stack: ten thousand calls do
// so at once. Whatever needs a deeper one runs elsewhere meanwhile.
func (c *Caller) Call(ref history.Ref, intended time.Duration) (*history.Call, *history.End) {
	return c.run(ref, intended, nil)
}

// Act is Call for a call made on purpose.
func (c *Caller) Act(ref history.Ref, intended time.Duration, act Act) (*history.Call, *history.End) {
	return c.run(ref, intended, &act)
}

func (c *Caller) run(ref history.Ref, intended time.Duration, act *Act) (*history.Call, *history.End) {
	k := &call{c: c, ref: ref.Whole().Next(), due: intended, act: act}
	k.rec = history.Call{Ref: ref.Whole(), Outcome: "failed", Intended: intended}
	c.live.Calls.Add(1)
	begin, next := k.begin, k.next
	for k.again = true; k.again && c.pause(k.wait); {
		c.cfg.Dialer.Deep(begin)
		k.s.run()
		c.cfg.Dialer.Deep(next)
	}
	if k.again {
		k.rec.Outcome = "abandoned"
	}
	c.cfg.Dialer.Deep(k.over)
	return &k.rec, k.end
}

// begin starts the next attempt: its record, its dial, its request.
func (k *call) begin() {
	k.s = k.c.begin(k.ref, k.due, k.act)
	k.c.live.Attempts.Add(1)
	k.c.live.Open.Add(1)
	k.s.ask.State, k.state = k.state, nil
	k.s.send()
}

// next closes the attempt that is over for its call, and decides how the call
// goes on.
func (k *call) next() {
	c := k.c
	c.live.Open.Add(-1)
	k.end = c.conclude(k.s)
	k.again = false
	k.rec.Attempts = int(k.ref.Attempt)
	switch k.end.Outcome {
	case history.Delivered, history.TaskHandle:
		k.rec.Outcome = "delivered"
	case history.Drained:
		k.rec.Outcome = "abandoned"
	case history.MoreInput:
		k.rec.Rounds++
		k.again, k.wait, k.state = k.rec.Rounds <= MaxRounds, 0, k.s.m.RequestState()
	default:
		k.wait, k.again = c.cfg.Reissue.Next(k.end, k.rec.Rounds, chaos.Draw(c.cfg.Plan.Seed, k.ref, "backoff"))
		if k.again {
			c.live.Reissues.Add(1)
		}
	}
	k.ref, k.due = k.ref.Next(), c.cfg.Clock.Now()+k.wait
}

func (k *call) over() {
	if k.rec.Outcome != "delivered" {
		k.c.live.Failed.Add(1)
	}
	k.rec.Ended = k.c.cfg.Clock.Now()
	k.c.cfg.History.Append(history.Record{Call: &k.rec})
}

// pause waits out a backoff; false if the run ends first.
func (c *Caller) pause(d time.Duration) bool {
	if d <= 0 {
		select {
		case <-c.ending:
			return false
		default:
			return true
		}
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

// conclude appends an attempt's end, or leaves that to the holder of its socket
// where a silent cut keeps it.
func (c *Caller) conclude(s *shell) *history.End {
	end := s.m.End()
	c.tally(end)
	if s.m.Over() {
		s.close()
		c.cfg.History.Append(history.Record{End: end})
		return end
	}
	seen := *end // the holder goes on to write its own
	c.held.Add(1)
	c.live.Held.Add(1)
	go s.hold()
	return &seen
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

func (c *Caller) begin(ref history.Ref, intended time.Duration, act *Act) *shell {
	start := history.Start{Ref: ref, Instance: c.cfg.Instance, Intended: intended}
	s := newShell(c)
	s.ask = Ask{Ref: ref, ID: ref}
	cut := c.decide(ref, act)
	if act != nil {
		s.first = act.First
		s.ask.Variant, start.Variant, start.Probe = act.Variant, act.Variant, act.Probe
		if !act.ID.IsZero() {
			s.ask.ID = act.ID
		}
	}
	if cut != nil {
		start.Planned = &history.Planned{Clause: cut.Clause, Style: cut.Style, Moment: cut.Trigger.String(), Phase: cut.Trigger.Named(), Code: cut.Code.Wire()}
	}
	start.Begun = c.cfg.Clock.Now()
	sampled := ref.Role == history.Load && (ref.Call <= sampleFirst || chaos.Draw(c.cfg.Plan.Seed, ref, "sample") < sampleShare)
	s.m = stream.New(&c.cfg.Stream, &start, cut, sampled)
	s.m.Expect(s.ask.ID)
	c.cfg.History.Append(history.Record{Start: &start})
	return s
}

// decide is the cut of an attempt, nil for none.
func (c *Caller) decide(ref history.Ref, act *Act) *chaos.Cut {
	if act != nil {
		if ref.Attempt > 1 {
			return nil
		}
		return act.Cut
	}
	if d, ok := c.cfg.Plan.Cut(ref, c.cfg.Clean); ok {
		return &d
	}
	return nil
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
