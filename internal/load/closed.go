package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// Closed is the closed model: Streams slots, each of which makes one call after
// the other. Slots begin evenly spread over Ramp. No call starts after Duration
// or beyond Count calls, whichever comes first; 0 means no such limit.
type Closed struct {
	Streams  int
	Ramp     time.Duration
	Duration time.Duration
	Count    int
}

// MaxStreams bounds the slots a closed model may ask for.
const MaxStreams = 1_000_000

// Validate reports every problem at once.
func (c Closed) Validate() error {
	var errs []error
	if c.Streams < 1 || c.Streams > MaxStreams {
		errs = append(errs, fmt.Errorf("streams %d: want 1 to %d", c.Streams, MaxStreams))
	}
	return errors.Join(append(errs, negative(c.Ramp, c.Duration, c.Count)...)...)
}

// At is the intended time at which a slot, counted from 0, makes its first
// call, since the start of the load; false when the load is over before it.
func (c Closed) At(slot int) (time.Duration, bool) {
	if slot < 0 || slot >= c.Streams || c.Count > 0 && slot >= c.Count {
		return 0, false
	}
	t := time.Duration(float64(c.Ramp) * float64(slot) / float64(c.Streams))
	return t, c.Duration == 0 || t < c.Duration
}

// Run runs body for every call, in one goroutine a slot, and returns the number
// of calls once every body has returned. i counts calls from 0 in the order
// they start; intended is run time of clock: the slot's place in the ramp, then
// the moment its last call ended. body gets ctx as it is: when ctx is over no
// call starts any more, and what becomes of the open ones is up to body.
func (c Closed) Run(ctx context.Context, clock history.Clock, body func(ctx context.Context, i int, intended time.Duration)) int {
	var (
		wg   sync.WaitGroup
		next atomic.Int64
		from = clock.Now()
	)
	// take hands out call numbers without a hole, so that it may not count a
	// call that does not start.
	take := func() (int, bool) {
		if ctx.Err() != nil || c.Duration > 0 && clock.Now() >= from+c.Duration {
			return 0, false
		}
		for {
			n := next.Load()
			if c.Count > 0 && n >= int64(c.Count) {
				return 0, false
			}
			if next.CompareAndSwap(n, n+1) {
				return int(n), true
			}
		}
	}
	for slot := 0; ; slot++ {
		at, ok := c.At(slot)
		if !ok || !waitUntil(ctx, clock, from+at) {
			break
		}
		wg.Go(func() {
			intended := from + at
			for {
				i, ok := take()
				if !ok {
					return
				}
				body(ctx, i, intended)
				intended = clock.Now()
			}
		})
	}
	wg.Wait()
	return int(next.Load())
}
