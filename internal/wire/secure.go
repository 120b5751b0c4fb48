package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// secure is the TLS part of a connection.
type secure struct {
	conn *tls.Conn
	link *link
	dry  bool // the last read found no record; guarded by Conn.mu
}

// link is what a tls.Conn talks through. During the handshake it is the TCP
// connection; afterwards it never waits.
type link struct {
	*net.TCPConn
	raw     syscall.RawConn
	polling bool // reads answer errAgain instead of waiting
	leaving bool // writes do not wait either
}

// again is a read that found nothing. It is temporary, for tls.Conn keeps a
// partial record over temporary errors only.
type again struct{}

func (again) Error() string   { return "nothing there yet" }
func (again) Timeout() bool   { return true }
func (again) Temporary() bool { return true }

var errAgain net.Error = again{}

func (l *link) Read(p []byte) (n int, err error) {
	if !l.polling {
		return l.TCPConn.Read(p)
	}
	if cerr := l.raw.Control(func(fd uintptr) { n, err = readNow(int(fd), p) }); cerr != nil {
		return 0, cerr
	}
	if err == unix.EAGAIN {
		err = errAgain
	}
	return n, err
}

func (l *link) Write(p []byte) (n int, err error) {
	if !l.leaving {
		return l.TCPConn.Write(p)
	}
	if cerr := l.raw.Control(func(fd uintptr) { n, err = unix.Write(int(fd), p) }); cerr != nil {
		return 0, cerr
	}
	return n, err
}

func (c *Conn) startTLS(ctx context.Context, conf *tls.Config) error {
	l := &link{TCPConn: c.tcp, raw: c.raw}
	conn := tls.Client(l, conf)
	if err := conn.HandshakeContext(ctx); err != nil {
		return err
	}
	// The handshake may have left a deadline behind.
	if err := c.tcp.SetDeadline(time.Time{}); err != nil {
		return err
	}
	l.polling = true
	c.tls = &secure{conn: conn, link: l}
	c.ready = func(fd uintptr) bool { return readable(int(fd)) }
	return nil
}

// goodbye sends close_notify if the kernel takes it at once.
func (s *secure) goodbye() error {
	s.link.leaving = true
	return s.conn.CloseWrite()
}

// take decrypts what is there. EAGAIN: no complete record.
func (s *secure) take(p []byte) (int, error) {
	n, err := s.conn.Read(p)
	s.dry = err == errAgain
	switch {
	case s.dry:
		err = unix.EAGAIN
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = io.EOF // no close_notify; many servers send none
	}
	return n, err
}

// readSecure is ReadAvailable over TLS. It looks for records before it waits:
// the handshake may have read past its own end.
func (c *Conn) readSecure(deadline time.Time, sink func([]byte)) error {
	for {
		if err := c.arm(deadline); err != nil {
			return err
		}
		if c.dry() {
			if err := c.raw.Read(c.ready); err != nil {
				return c.waitError(err, deadline)
			}
		}
		c.got.sink = sink
		c.crew.do(c)
		got := c.got
		c.got = arrival{}
		if got.n > 0 {
			return nil // an error stays with the TLS layer, for the next call
		}
		if got.err != nil {
			return got.err
		}
	}
}

func (c *Conn) dry() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tls.dry
}

// takeRecords gives the records that have come to the sink and counts them.
func (c *Conn) takeRecords() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, c.got.err = c.drain(func(p []byte) bool {
		c.got.n += len(p)
		c.got.sink(p)
		return false
	})
}

// readable reports whether a read would not wait.
func readable(fd int) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds[:], 0)
	return n > 0 || (err != nil && err != unix.EINTR)
}
