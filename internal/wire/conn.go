package wire

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcpflood/mcpflood/history"
)

// readSize is how much is taken from the kernel at a time.
const readSize = 16 << 10

var buffers = sync.Pool{New: func() any { return new([readSize]byte) }}

// Conn is one connection. See the package comment for who may do what.
//
// It is kept small: ten thousands of them wait at the same time. While one
// waits it holds no buffer.
type Conn struct {
	mu     sync.Mutex
	mode   mode // guarded by mu
	woken  atomic.Bool
	tcp    *net.TCPConn
	raw    syscall.RawConn
	tls    *secure // nil: plain
	ready  func(fd uintptr) bool
	crew   *crew
	queued time.Duration

	// Owner only: the read deadline in force, and what ready hands on.
	armed int64
	got   arrival
}

// mode is what a cut has left of a connection.
type mode uint8

const (
	open   mode = iota
	ended       // FIN or RST is sent
	silent      // stalled or vanished: nothing is read any more
	closed
)

// arrival is what one read took from the kernel.
type arrival struct {
	buf  *[readSize]byte
	n    int
	err  error
	sink func(p []byte)
}

// Values of Conn.armed that are no deadline.
const (
	armedNone    = 0
	armedUnknown = -1
)

func newConn(tcp *net.TCPConn, crew *crew) (*Conn, error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	c := &Conn{tcp: tcp, raw: raw, crew: crew}
	c.ready = c.readOnce // once: a method value is an allocation
	return c, nil
}

// Lock guards against reads and other cuts; hold it for every cut and for
// Drain. The sink of [Conn.ReadAvailable] runs with it held.
func (c *Conn) Lock() { c.mu.Lock() }

// Unlock undoes Lock.
func (c *Conn) Unlock() { c.mu.Unlock() }

// Queued is how long the dial waited for a free slot: our own doing, part of no
// server's time.
func (c *Conn) Queued() time.Duration { return c.queued }

// Local and Remote name the two ends as address:port.
func (c *Conn) Local() string { return c.tcp.LocalAddr().String() }

// Remote is the other end.
func (c *Conn) Remote() string { return c.tcp.RemoteAddr().String() }

// Write hands p to the kernel, all of it, and returns when its last byte is
// there. The zero deadline is none. The error is an [*Error]; after a failed
// write an answer may still be readable.
func (c *Conn) Write(p []byte, deadline time.Time) error {
	err := c.tcp.SetWriteDeadline(deadline)
	if err == nil && c.tls != nil {
		_, err = c.tls.conn.Write(p)
	} else if err == nil {
		_, err = c.tcp.Write(p)
	}
	if err == nil {
		return nil
	}
	return c.writeError(err)
}

func (c *Conn) writeError(err error) error {
	e := &Error{Op: "write", Target: c.Remote(), Origin: OriginOf(err), Err: err}
	var outer *net.OpError
	if errors.As(err, &outer) {
		e.Err = outer.Err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mode != open {
		e.Origin, e.Err = history.Chaos, ErrCut
	}
	return e
}

// ReadAvailable waits until bytes have arrived and gives them to sink, which
// runs on another goroutine meanwhile; p is valid until it returns. The owner
// calls this in a loop, with a sink that it makes once. The zero deadline is
// none.
//
// It returns nil after sink was called; else io.EOF or a system error when the
// peer has ended the stream, [os.ErrDeadlineExceeded], [ErrWoken], [ErrCut], or
// [net.ErrClosed] after Close. Over TLS an end without close_notify is io.EOF
// too.
func (c *Conn) ReadAvailable(deadline time.Time, sink func(p []byte)) error {
	if c.tls != nil {
		return c.readSecure(deadline, sink)
	}
	if err := c.arm(deadline); err != nil {
		return err
	}
	if err := c.raw.Read(c.ready); err != nil {
		return c.waitError(err, deadline)
	}
	return c.deliver(sink)
}

// deliver hands on what readOnce took. It is not inlined, so that a wait does
// not carry its frame.
//
//go:noinline
func (c *Conn) deliver(sink func([]byte)) error {
	if c.got.n > 0 {
		c.got.sink = sink
		c.crew.do(c)
	}
	got := c.got
	c.got = arrival{}
	c.mu.Unlock() // readOnce locked it
	if got.buf != nil {
		buffers.Put(got.buf)
	}
	return got.err
}

// work is the part of a read that may need a stack.
func (c *Conn) work() {
	if c.tls != nil {
		c.takeRecords()
		return
	}
	c.got.sink(c.got.buf[:c.got.n])
}

// readOnce runs when bytes may be there. True means that there is an arrival,
// and leaves c.mu locked, so that no cut comes between it and its sink. The
// poller is edge-triggered; nothing is lost by reading once, because the next
// wait begins with a read.
func (c *Conn) readOnce(fd uintptr) bool {
	c.mu.Lock()
	if c.mode != open {
		c.got = arrival{err: c.cutError()}
		return true
	}
	buf := buffers.Get().(*[readSize]byte)
	n, err := readNow(int(fd), buf[:])
	if err == unix.EAGAIN {
		buffers.Put(buf)
		c.mu.Unlock()
		return false
	}
	c.got = arrival{buf: buf, n: n, err: err}
	return true
}

// readNow reads without waiting: EAGAIN when nothing is there, io.EOF at the
// end.
func readNow(fd int, p []byte) (int, error) {
	for {
		n, err := unix.Read(fd, p)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// arm sets the read deadline unless it is in force already, and answers a
// pending wake. The order matters: a Wake whose flag comes after our look at
// it also sets its deadline after ours.
func (c *Conn) arm(deadline time.Time) error {
	want := int64(armedNone)
	if !deadline.IsZero() {
		want = deadline.UnixNano()
	}
	if want != c.armed {
		if err := c.tcp.SetReadDeadline(deadline); err != nil {
			return c.ioError(err)
		}
		c.armed = want
	}
	if c.woken.Swap(false) {
		c.armed = armedUnknown
		return c.ioError(ErrWoken)
	}
	return nil
}

// waitError explains why a wait ended without bytes.
func (c *Conn) waitError(err error, deadline time.Time) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.armed = armedUnknown
		err = os.ErrDeadlineExceeded
		// The deadline may be a wake's, whose flag an earlier call has seen.
		if c.woken.Swap(false) || deadline.IsZero() || time.Now().Before(deadline) {
			err = ErrWoken
		}
	}
	return c.ioError(err)
}

// ioError is err, or what the cut says that came before it.
func (c *Conn) ioError(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mode != open {
		return c.cutError()
	}
	return err
}

func (c *Conn) cutError() error {
	if c.mode == closed {
		return net.ErrClosed
	}
	return ErrCut
}

// Wake makes a ReadAvailable that waits, or the next one, return [ErrWoken].
// Anyone may call it at any time, with or without the lock.
func (c *Conn) Wake() {
	c.woken.Store(true)
	_ = c.tcp.SetReadDeadline(time.Unix(1, 0)) // fails on a closed connection only, where nobody waits
}

// Close gives the connection up. Where both sides still talk it sends FIN; read
// the answer to its end first, for bytes that nobody has read make the kernel
// send RST. After Stall and Vanish it sends RST. The owner calls it once in any
// case, without the lock; more often does no harm.
func (c *Conn) Close() {
	c.mu.Lock()
	was := c.mode
	c.mode = closed
	c.mu.Unlock()
	switch {
	case was == closed:
		return
	case was == silent:
		_ = c.tcp.SetLinger(0)
	case was == open && c.tls != nil:
		_ = c.tls.goodbye()
	}
	_ = c.tcp.Close()
	c.crew.leave()
}
