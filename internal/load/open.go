package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// MaxRate bounds the arrivals per second that an open model may ask for.
const MaxRate = 1e6

// Open is the open model: arrivals at Rate per second, reached linearly over
// Ramp. It ends at Duration or after Count arrivals, whichever comes first; 0
// means no such limit.
type Open struct {
	Rate     float64
	Ramp     time.Duration
	Duration time.Duration
	Count    int
}

// Validate reports every problem at once.
func (o Open) Validate() error {
	var errs []error
	if !(o.Rate > 0 && o.Rate <= MaxRate) { // also NaN
		errs = append(errs, fmt.Errorf("rate %v/s: want above 0 and up to %v", o.Rate, MaxRate))
	}
	return errors.Join(append(errs, negative(o.Ramp, o.Duration, o.Count)...)...)
}

func negative(ramp, duration time.Duration, count int) []error {
	var errs []error
	if ramp < 0 {
		errs = append(errs, fmt.Errorf("ramp %s: want 0 or more", ramp))
	}
	if duration < 0 {
		errs = append(errs, fmt.Errorf("duration %s: want 0 or more", duration))
	}
	if count < 0 {
		errs = append(errs, fmt.Errorf("calls %d: want 0 or more", count))
	}
	return errs
}

// At is the intended time of the i-th arrival, counted from 0, since the start
// of the load; false when the load is over before it.
//
// It is the inverse of the cumulative rate, computed from i alone: rounding
// never adds up, however long the run.
func (o Open) At(i int) (time.Duration, bool) {
	if i < 0 || o.Count > 0 && i >= o.Count {
		return 0, false
	}
	// Up to time t of the ramp Rate·t²/(2·Ramp) calls have arrived, hence
	// Rate·Ramp/2 at its end; from there on Rate a second.
	ramp := o.Ramp.Seconds()
	inRamp := o.Rate * ramp / 2
	var s float64
	if n := float64(i); n < inRamp {
		s = math.Sqrt(2 * n * ramp / o.Rate)
	} else {
		s = ramp + (n-inRamp)/o.Rate
	}
	if s >= maxSeconds {
		return 0, false
	}
	t := time.Duration(math.Round(s * float64(time.Second)))
	if o.Duration > 0 && t >= o.Duration {
		return 0, false
	}
	return t, true
}

// maxSeconds is about the longest time a time.Duration holds.
const maxSeconds = math.MaxInt64 / 1e9

// Run calls start for every arrival at its intended time, in order, from one
// goroutine, until the load or ctx is over. i counts from 0; intended is run
// time of clock. start must not block; it returns false when the arrival could
// not start, because too many calls are open, and the arrival is then dropped:
// an open model never waits for the server. An executor that has fallen behind
// starts what is due at once.
func (o Open) Run(ctx context.Context, clock history.Clock, start func(i int, intended time.Duration) bool) (started, dropped int) {
	from := clock.Now()
	for i := 0; ; i++ {
		at, ok := o.At(i)
		if !ok || !waitUntil(ctx, clock, from+at) {
			return started, dropped
		}
		if start(i, from+at) {
			started++
		} else {
			dropped++
		}
	}
}
