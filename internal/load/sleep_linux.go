package load

import (
	"time"

	"golang.org/x/sys/unix"
)

// fineSleep blocks the thread, for a kernel timer that is exact to some tens of
// microseconds. An early return is fine: the caller looks at the clock.
func fineSleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil) // interrupted by a signal: returns early
}
