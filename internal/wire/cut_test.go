package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// ignore is a sink for what no test looks at.
func ignore([]byte) bool { return false }

// everyWay runs a test over plain and TLS, IPv4 and IPv6.
func everyWay(t *testing.T, test func(t *testing.T, p pair)) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) { test(t, connect(t, w)) })
	}
}

// locked carries out a cut as another goroutine would.
func locked(t *testing.T, c *Conn, cut func() (Cut, error)) Cut {
	t.Helper()
	c.Lock()
	defer c.Unlock()
	before := now()
	got, err := cut()
	after := now()
	if err != nil {
		t.Fatalf("cut: %v", err)
	}
	if !got.Stopped && (got.C0 < before || got.C1 < got.C0 || got.C1 > after) {
		t.Errorf("cut stamps %v and %v, want them in order within %v to %v", got.C0, got.C1, before, after)
	}
	return got
}

func TestFin(t *testing.T) {
	everyWay(t, func(t *testing.T, p pair) {
		p.peer.Write([]byte("not read yet"))
		p.arrived(t)
		var drained bytes.Buffer
		cut := locked(t, p.Conn, func() (Cut, error) {
			return p.Fin(now, func(b []byte) bool { drained.Write(b); return false })
		})
		if drained.String() != "not read yet" || cut.Unread != 0 {
			t.Errorf("drained %q and left %d bytes, want all drained", &drained, cut.Unread)
		}
		if how, _ := p.end(patience); how != "fin" {
			t.Errorf("the server saw %q, want fin", how)
		}
		if err := p.ReadAvailable(time.Time{}, func([]byte) {}); err != ErrCut {
			t.Errorf("ReadAvailable after Fin = %v, want ErrCut", err)
		}
		p.Close()
		if how, _ := p.end(patience); how != "fin" {
			t.Errorf("after Close the server saw %q, want still fin", how)
		}
	})
}

// A server that never stops writing must see FIN too, never RST in its place,
// however the bytes fall between drain and close.
func TestFinUnderFire(t *testing.T) {
	for range 50 {
		p := connect(t, ways[0])
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				if _, err := p.peer.Write([]byte("data: x\n\n")); err != nil {
					return
				}
			}
		})
		if _, err := p.receive(100); err != nil {
			t.Fatal(err)
		}
		locked(t, p.Conn, func() (Cut, error) { return p.Fin(now, ignore) })
		p.Close()
		if how, _ := p.end(patience); how != "fin" {
			t.Errorf("the server saw %q, want fin", how)
		}
		wg.Wait() // the reset that answers its next bytes, as after any close
	}
}

func TestFinStops(t *testing.T) {
	everyWay(t, func(t *testing.T, p pair) {
		p.peer.Write([]byte("the result"))
		p.arrived(t)
		cut := locked(t, p.Conn, func() (Cut, error) {
			return p.Fin(now, func(b []byte) bool { return bytes.Contains(b, []byte("result")) })
		})
		if !cut.Stopped {
			t.Errorf("Fin went on although its sink stopped it: %+v", cut)
		}
		if how, _ := p.end(20 * time.Millisecond); how != "nothing" {
			t.Fatalf("the server saw %q of a cut that did not happen", how)
		}
		p.tcp.SetDeadline(time.Now().Add(patience))
		p.peer.Write([]byte("more"))
		if got, err := p.receive(4); got != "more" || err != nil {
			t.Errorf("then read %q, %v, want the connection as before", got, err)
		}
	})
}

func TestReset(t *testing.T) {
	everyWay(t, func(t *testing.T, p pair) {
		p.peer.Write([]byte("never read"))
		p.arrived(t)
		locked(t, p.Conn, func() (Cut, error) { return p.Reset(now) })
		if how, _ := p.end(patience); how != "rst" {
			t.Errorf("the server saw %q, want rst", how)
		}
		if err := p.ReadAvailable(time.Time{}, func([]byte) {}); err != ErrCut {
			t.Errorf("ReadAvailable after Reset = %v, want ErrCut", err)
		}
	})
}

func TestHalfClose(t *testing.T) {
	everyWay(t, func(t *testing.T, p pair) {
		locked(t, p.Conn, func() (Cut, error) { return p.HalfClose(now) })
		if how, _ := p.end(patience); how != "fin" {
			t.Errorf("the server saw %q, want fin", how)
		}
		p.peer.Write([]byte("the answer"))
		if got, err := p.receive(10); got != "the answer" || err != nil {
			t.Errorf("after HalfClose read %q, %v, want the answer", got, err)
		}
		p.peer.Close()
		_, err := p.receive(1)
		if !errors.Is(err, io.EOF) {
			t.Errorf("after the server's end ReadAvailable = %v, want io.EOF", err)
		}
	})
}

// backsUp holds that a client which hardly reads is no end of the stream for the
// server, whose writes back up, and that closing it sends RST.
func backsUp(t *testing.T, p pair) {
	t.Helper()
	p.tcp.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	block := make([]byte, 1<<20)
	var err error
	for range 64 {
		if _, err = p.peer.Write(block); err != nil {
			break
		}
	}
	if err == nil {
		t.Errorf("the server wrote 64 MiB to a client that hardly reads")
	}
	if how, _ := p.end(20 * time.Millisecond); how != "nothing" {
		t.Errorf("the server saw %q meanwhile, want nothing", how)
	}
	p.Close()
	if how, _ := p.end(patience); how != "rst" {
		t.Errorf("the server saw %q at the end, want rst", how)
	}
}

func TestStall(t *testing.T) {
	everyWay(t, func(t *testing.T, p pair) {
		p.peer.Write([]byte("before"))
		p.arrived(t)
		var got bytes.Buffer
		locked(t, p.Conn, func() (Cut, error) {
			return p.Stall(now, func(b []byte) bool { got.Write(b); return false })
		})
		if got.String() != "before" {
			t.Errorf("Stall drained %q, want %q", &got, "before")
		}
		if err := p.ReadAvailable(time.Time{}, func([]byte) {}); err != ErrCut {
			t.Errorf("ReadAvailable after Stall = %v, want ErrCut", err)
		}
		backsUp(t, p)
	})
}

// A cut from another goroutine ends the owner's wait.
func TestCutEndsWait(t *testing.T) {
	cuts := map[string]func(c *Conn) (Cut, error){
		"fin":   func(c *Conn) (Cut, error) { return c.Fin(now, ignore) },
		"reset": func(c *Conn) (Cut, error) { return c.Reset(now) },
		"stall": func(c *Conn) (Cut, error) { return c.Stall(now, ignore) },
	}
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			everyWay(t, func(t *testing.T, p pair) {
				ended := make(chan error, 1)
				waiting := make(chan struct{})
				go func() {
					close(waiting)
					ended <- p.ReadAvailable(time.Time{}, func([]byte) {})
				}()
				<-waiting
				time.Sleep(5 * time.Millisecond) // either side of this may win; mostly it waits by now
				locked(t, p.Conn, func() (Cut, error) { return cut(p.Conn) })
				if err := <-ended; err != ErrCut {
					t.Errorf("the wait ended with %v, want ErrCut", err)
				}
				if _, err := cut(p.Conn); err != ErrCut {
					t.Errorf("a second cut = %v, want ErrCut", err)
				}
			})
		})
	}
}

// Where the socket cannot be disconnected, closing it resets as well, also under
// a reader that waits.
func TestResetByClose(t *testing.T) {
	everyWay(t, func(t *testing.T, p pair) {
		result := make(chan error, 1)
		waiting := make(chan struct{})
		go func() {
			close(waiting)
			result <- p.ReadAvailable(time.Time{}, func([]byte) {})
		}()
		<-waiting
		time.Sleep(5 * time.Millisecond) // as in TestCutEndsWait
		locked(t, p.Conn, func() (Cut, error) {
			p.mode = ended
			return p.resetByClose(now)
		})
		if err := <-result; err != ErrCut {
			t.Errorf("the wait ended with %v, want ErrCut", err)
		}
		if how, _ := p.end(patience); how != "rst" {
			t.Errorf("the server saw %q, want rst", how)
		}
		p.Close()
	})
}

// A stream that the peer has ended is not cut any more.
func TestCutAfterPeerEnd(t *testing.T) {
	everyWay(t, func(t *testing.T, p pair) {
		p.peer.Write([]byte("bye"))
		p.peer.Close()
		var got bytes.Buffer
		cuts := []func(Clock, Sink) (Cut, error){p.Fin, p.Stall}
		eventually(t, "the end arrives", func() bool {
			p.Lock()
			defer p.Unlock()
			return How(p.Drain(func(b []byte) bool { got.Write(b); return false })) == "eof"
		})
		for _, cut := range cuts {
			p.Lock()
			_, err := cut(now, ignore)
			p.Unlock()
			if !errors.Is(err, io.EOF) {
				t.Errorf("a cut after the peer's end = %v, want io.EOF", err)
			}
		}
		if got.String() != "bye" {
			t.Errorf("read %q, want all that came before the end", &got)
		}
	})
}

// A cut may come from the sink itself: at a byte of the stream.
func TestCutInsideSink(t *testing.T) {
	p := connect(t, ways[0])
	p.peer.Write([]byte("one two"))
	var rest strings.Builder
	err := p.ReadAvailable(time.Now().Add(patience), func(b []byte) {
		if _, err := p.Fin(now, func(b []byte) bool { rest.Write(b); return false }); err != nil {
			t.Errorf("Fin inside the sink: %v", err)
		}
	})
	if err != nil {
		t.Errorf("ReadAvailable = %v, want nil: its bytes were delivered", err)
	}
	if how, _ := p.end(patience); how != "fin" {
		t.Errorf("the server saw %q, want fin", how)
	}
}

// A cut while a large request is being written is a cut, no write error.
func TestResetWhileWriting(t *testing.T) {
	p := connect(t, ways[0])
	failed := make(chan error, 1)
	go func() { failed <- p.Write(make([]byte, 64<<20), time.Time{}) }()
	eventually(t, "the write fills the buffers", func() bool {
		n, err := p.Unacked()
		return err == nil && n > 0
	})
	locked(t, p.Conn, func() (Cut, error) { return p.Reset(now) })
	err := <-failed
	if !errors.Is(err, ErrCut) || OriginOf(err) != history.Chaos {
		t.Errorf("Write = %v, origin %v, want ErrCut, chaos", err, OriginOf(err))
	}
}

func TestCloseSendsFin(t *testing.T) {
	everyWay(t, func(t *testing.T, p pair) {
		p.Close()
		p.Close()
		if how, _ := p.end(patience); how != "fin" {
			t.Errorf("the server saw %q, want fin", how)
		}
		if _, err := p.Fin(now, ignore); err == nil {
			t.Errorf("Fin after Close succeeded")
		}
		if err := p.Write([]byte("x"), time.Time{}); err == nil {
			t.Errorf("Write after Close succeeded")
		}
	})
}

func TestPeerReset(t *testing.T) {
	everyWay(t, func(t *testing.T, p pair) {
		p.tcp.SetLinger(0)
		p.tcp.Close()
		_, err := p.receive(1)
		if !errors.Is(err, syscall.ECONNRESET) || OriginOf(err) != history.Peer || How(err) != "reset" {
			t.Errorf("ReadAvailable = %v, origin %v, %q, want a reset by the peer", err, OriginOf(err), How(err))
		}
	})
}

func TestPeerEnd(t *testing.T) {
	everyWay(t, func(t *testing.T, p pair) {
		p.peer.Write([]byte("bye"))
		p.tcp.CloseWrite() // no close_notify over TLS: many servers send none
		got, err := p.receive(1000)
		if got != "bye" || !errors.Is(err, io.EOF) || OriginOf(err) != history.Peer || How(err) != "eof" {
			t.Errorf("read %q, %v, origin %v, %q, want %q and the peer's eof", got, err, OriginOf(err), How(err), "bye")
		}
	})
}

// A slow reader takes its sips and no more, so the server's writes back up; the
// server's end shows between two of them.
func TestSlow(t *testing.T) {
	everyWay(t, func(t *testing.T, p pair) {
		locked(t, p.Conn, func() (Cut, error) { return p.Slow(now, ignore) })
		p.peer.Write(make([]byte, 100))
		p.arrived(t)
		for range 3 {
			if n, err := p.Sip(); n != SlowBytes || err != nil {
				t.Fatalf("Sip = %d, %v, want %d bytes", n, err, SlowBytes)
			}
		}
		backsUp(t, p)
	})
}
