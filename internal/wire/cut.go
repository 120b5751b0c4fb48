package wire

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// drainLimit bounds what one drain reads: more than any receive buffer, so
	// only a server that sends as fast as we read can reach it.
	drainLimit = 16 << 20
	// VanishWait is how long a caller should go on trying a Vanish that answers
	// [ErrUnacked] before it stalls instead.
	VanishWait = 200 * time.Millisecond
)

// Cut is what a cut did.
type Cut struct {
	// C0 and C1 are the times just before and just after the system call.
	C0, C1 time.Duration
	// Stopped: the sink asked to stop while it was fed what had arrived. Nothing
	// was done; the connection is as before.
	Stopped bool
	// Unread counts bytes that came between the drain and the FIN. They are
	// lost, as they are for any client that closes.
	Unread int
}

// Clock gives run time.
type Clock = func() time.Duration

// Sink takes bytes that have arrived, valid until it returns. True stops.
type Sink = func(p []byte) (stop bool)

// Drain gives sink what has arrived so far and does not wait. It returns nil
// when nothing more is there or sink stopped, io.EOF or a system error when
// the peer has ended the stream. The caller holds the lock.
func (c *Conn) Drain(sink Sink) error {
	_, err := c.drain(sink)
	return err
}

func (c *Conn) drain(sink Sink) (stopped bool, err error) {
	if c.mode != open {
		return false, c.cutError()
	}
	buf := buffers.Get().(*[readSize]byte)
	defer buffers.Put(buf)
	for total := 0; total < drainLimit; {
		n, err := c.take(buf[:])
		if n > 0 && sink(buf[:n]) {
			return true, nil
		}
		if err == unix.EAGAIN {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		total += n
	}
	return false, nil
}

// take reads what is there, decrypted. EAGAIN: nothing.
func (c *Conn) take(p []byte) (n int, err error) {
	if c.tls != nil {
		return c.tls.take(p)
	}
	if cerr := c.raw.Control(func(fd uintptr) { n, err = readNow(int(fd), p) }); cerr != nil {
		return 0, cerr
	}
	return n, err
}

// Fin hands what has arrived to sink, then sends FIN (over TLS after a
// close_notify). The caller holds the lock.
//
// A plain close would send RST instead if a byte came in after the drain. So
// FIN is sent by shutdown in both directions, which never resets; from then on
// the kernel treats the peer as close would: its next data is answered with
// RST. What came in between is thrown away and counted.
//
// Where the peer has ended the stream before, nothing is done and the error is
// the one that ReadAvailable would have returned; so with Stall and Vanish.
func (c *Conn) Fin(now Clock, sink Sink) (Cut, error) {
	if stopped, err := c.drain(sink); stopped || err != nil {
		return Cut{Stopped: stopped}, err
	}
	c.mode = ended
	var cut Cut
	var err error
	cut.C0 = now()
	if c.tls != nil {
		_ = c.tls.goodbye() // best effort, like any client's
	}
	cerr := c.raw.Control(func(fd uintptr) {
		err = unix.Shutdown(int(fd), unix.SHUT_RDWR)
		cut.C1 = now()
		cut.Unread = discard(int(fd))
	})
	return cut, firstError(cerr, err)
}

// discard reads and forgets what the kernel holds.
func discard(fd int) (total int) {
	buf := buffers.Get().(*[readSize]byte)
	defer buffers.Put(buf)
	for total < drainLimit {
		n, err := readNow(fd, buf[:])
		total += n
		if err != nil {
			return total
		}
	}
	return total
}

// Reset sends RST, as a close with SO_LINGER 0 does. Unread bytes are lost. The
// caller holds the lock; on systems other than Linux it is released for a
// moment.
func (c *Conn) Reset(now Clock) (Cut, error) {
	if c.mode != open {
		return Cut{}, c.cutError()
	}
	c.mode = ended
	var cut Cut
	var err error
	cerr := c.raw.Control(func(fd uintptr) {
		cut.C0 = now()
		err = disconnect(int(fd))
		cut.C1 = now()
	})
	if cerr == nil && err == nil {
		return cut, nil
	}
	return c.resetByClose(now)
}

// resetByClose is Reset where the socket cannot be disconnected. Go closes a
// descriptor only when no reader holds it any more, and the reader may be
// waiting for our lock.
func (c *Conn) resetByClose(now Clock) (Cut, error) {
	c.mu.Unlock()
	defer c.mu.Lock()
	err := c.tcp.SetLinger(0)
	var cut Cut
	cut.C0 = now()
	cerr := c.tcp.Close()
	cut.C1 = now()
	return cut, firstError(err, cerr)
}

// HalfClose ends our side only: FIN is sent (over TLS after a close_notify) and
// reading goes on. The caller holds the lock.
func (c *Conn) HalfClose(now Clock) (Cut, error) {
	if c.mode != open {
		return Cut{}, c.cutError()
	}
	var cut Cut
	var err error
	cut.C0 = now()
	if c.tls != nil {
		_ = c.tls.goodbye()
	}
	cerr := c.raw.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_WR) })
	cut.C1 = now()
	return cut, firstError(cerr, err)
}

// Stall hands what has arrived to sink and reads nothing from then on: the
// peer sees a window that fills up. Close ends it with RST. The caller holds the
// lock.
func (c *Conn) Stall(now Clock, sink Sink) (Cut, error) {
	return c.silence(now, sink, func(int) error { return nil })
}

// A slow connection reads at most SlowBytes every SlowEvery, into a receive
// buffer of slowBuffer bytes, so that the peer's window closes soon.
const (
	SlowBytes  = 16
	SlowEvery  = time.Second
	slowBuffer = 4 << 10
)

// Slow hands what has arrived to sink and makes the receive buffer small; from
// then on only Sip reads. Close ends it with RST. The caller holds the lock.
func (c *Conn) Slow(now Clock, sink Sink) (Cut, error) {
	return c.silence(now, sink, func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, slowBuffer) })
}

// Sip reads and forgets up to [SlowBytes] of a slow connection, and does not
// wait. It returns io.EOF or a system error when the peer has ended the stream.
// Over TLS the bytes are those of its records.
func (c *Conn) Sip() (n int, err error) {
	var sip [SlowBytes]byte
	cerr := c.raw.Control(func(fd uintptr) { n, err = readNow(int(fd), sip[:]) })
	if err == unix.EAGAIN {
		err = nil
	}
	return n, firstError(cerr, err)
}

// Vanish hands what has arrived to sink, then makes the kernel drop every
// segment that comes for this connection, unacknowledged: for the peer we are
// gone without a word. Close ends it with RST. The caller holds the lock.
//
// [ErrUnacked] means that our own sent bytes are still under way, and would be
// sent again and again; nothing was done, try again soon. [ErrNoVanish], or
// a system error, means that it cannot be done here; nothing was done but the
// drain, and the caller stalls instead.
func (c *Conn) Vanish(now Clock, sink Sink) (Cut, error) {
	left, err := c.Unacked()
	if err != nil {
		return Cut{}, err
	}
	if left > 0 {
		return Cut{}, ErrUnacked
	}
	return c.silence(now, sink, func(fd int) error {
		flushAck(fd)
		return deafen(fd)
	})
}

func (c *Conn) silence(now Clock, sink Sink, how func(fd int) error) (Cut, error) {
	if stopped, err := c.drain(sink); stopped || err != nil {
		return Cut{Stopped: stopped}, err
	}
	var cut Cut
	var err error
	cerr := c.raw.Control(func(fd uintptr) {
		cut.C0 = now()
		err = how(int(fd))
		cut.C1 = now()
	})
	if err = firstError(cerr, err); err != nil {
		return Cut{}, err
	}
	c.mode = silent
	c.Wake() // no segment will
	return cut, nil
}

// Unacked counts the bytes we sent that the peer's kernel has not acknowledged;
// 0 on systems other than Linux.
func (c *Conn) Unacked() (n int, err error) {
	cerr := c.raw.Control(func(fd uintptr) { n, err = unacked(int(fd)) })
	return n, firstError(cerr, err)
}

// Drops counts the segments that a vanished connection has dropped: what the
// peer still sent, repeats included. Linux only.
func (c *Conn) Drops() (n int, err error) {
	cerr := c.raw.Control(func(fd uintptr) { n, err = drops(int(fd)) })
	return n, firstError(cerr, err)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
