package history

import "time"

// Clock is the time base of one run: monotonic time since its start, and the
// wall time of that start. The zero value is not usable; see NewClock.
type Clock struct{ start time.Time }

// NewClock starts a run's time.
func NewClock() Clock { return Clock{start: time.Now()} }

// Now is the time since the run's start.
func (c Clock) Now() time.Duration { return time.Since(c.start) }

// Started is the wall time of the run's start.
func (c Clock) Started() time.Time { return c.start.Round(0) }

// At converts a wall time of this machine to run time.
func (c Clock) At(wall time.Time) time.Duration { return wall.Round(0).Sub(c.Started()) }

// Time converts run time to a [time.Time] that carries the monotonic reading,
// fit for deadlines.
func (c Clock) Time(t time.Duration) time.Time { return c.start.Add(t) }
