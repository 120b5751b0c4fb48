//go:build unix

package witness

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// polled waits for a file with poll(2). A read deadline would need the file in
// non-blocking mode, which for standard input other processes share.
type polled struct {
	f   *os.File
	raw syscall.RawConn
}

func newWaiter(r io.Reader) waiter {
	if f, ok := r.(*os.File); ok {
		if raw, err := f.SyscallConn(); err == nil {
			return &polled{f, raw}
		}
	}
	return newPumped(r)
}

func (p *polled) next(buf []byte, wait time.Duration) (int, error) {
	fds := []unix.PollFd{{Events: unix.POLLIN}}
	var n int
	var err error
	if ctlErr := p.raw.Control(func(fd uintptr) {
		fds[0].Fd = int32(fd)
		n, err = unix.Poll(fds, int(wait/time.Millisecond))
	}); ctlErr != nil {
		return 0, ctlErr
	}
	switch {
	case errors.Is(err, unix.EINTR), err == nil && n == 0:
		return 0, errIdle
	case err != nil:
		return 0, err
	}
	return p.f.Read(buf)
}

func (p *polled) close() {}
