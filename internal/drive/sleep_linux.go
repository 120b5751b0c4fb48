package drive

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper sleeps on one locked thread with nanosecond timers, and can be woken.
type sleeper struct{ fd int }

func newSleeper() (sleeper, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return sleeper{}, fmt.Errorf("eventfd for the cut timer: %w", err)
	}
	return sleeper{fd}, nil
}

// begin ties the calling goroutine to its thread and takes away the 50 µs by
// which the kernel may round its sleeps.
func (s sleeper) begin() {
	runtime.LockOSThread()
	// Without it sleeps are a little later; nothing else depends on it.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
}

func (s sleeper) sleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	fds := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
	if n, _ := unix.Ppoll(fds, &ts, nil); n > 0 {
		var b [8]byte
		_, _ = unix.Read(s.fd, b[:]) // empties the counter; EAGAIN means it was empty
	}
}

func (s sleeper) interrupt() {
	_, _ = unix.Write(s.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // EAGAIN: already full of wake-ups
}

func (s sleeper) close() { _ = unix.Close(s.fd) }
