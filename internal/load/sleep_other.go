//go:build !linux

package load

import "time"

// fineSleep is as exact as Go's timers are.
func fineSleep(d time.Duration) { time.Sleep(d) }
