//go:build !linux

package drive

import "time"

// sleeper is the portable form: Go's own timer, later by up to a millisecond.
type sleeper struct{ c chan struct{} }

func newSleeper() (sleeper, error) { return sleeper{make(chan struct{}, 1)}, nil }

func (s sleeper) begin() {}

func (s sleeper) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.c:
	}
}

func (s sleeper) interrupt() {
	select {
	case s.c <- struct{}{}:
	default:
	}
}

func (s sleeper) close() {}
