package load

import (
	"context"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// coarse is how long before its moment a wait leaves Go's timers, which run up
// to a millisecond late on Linux: its poller sleeps in whole milliseconds.
const coarse = 2 * time.Millisecond

// waitUntil returns true at run time t, or at once if that is past; false as
// soon as ctx is over. The last stretch, under two milliseconds, does not look
// at ctx.
func waitUntil(ctx context.Context, clock history.Clock, t time.Duration) bool {
	for {
		left := t - clock.Now()
		switch {
		case ctx.Err() != nil:
			return false
		case left <= 0:
			return true
		case left > coarse:
			timer := time.NewTimer(left - coarse)
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			timer.Stop()
		default:
			before := clock.Now()
			fineSleep(left)
			if clock.Now() == before {
				// Time stands still while a thread sleeps: this is the virtual
				// time of a test, which only Go's own timers move.
				time.Sleep(left)
			}
		}
	}
}
