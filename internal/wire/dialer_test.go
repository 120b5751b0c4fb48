package wire

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcpflood/mcpflood/history"
)

// dialError dials and wants it to fail.
func dialError(t *testing.T, ctx context.Context, conf DialConfig, e Endpoint) *Error {
	t.Helper()
	d, err := NewDialer(conf)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Dial(ctx, e)
	if err == nil {
		c.Close()
		t.Fatalf("Dial(%v) succeeded, want an error", e)
	}
	var typed *Error
	if !errors.As(err, &typed) {
		t.Fatalf("Dial(%v) = %v, want an *Error", e, err)
	}
	return typed
}

func TestDialRefused(t *testing.T) {
	ln := listen(t, "127.0.0.1:0")
	ln.Close()
	err := dialError(t, t.Context(), DialConfig{}, endpoint(t, false, ln.Addr()))
	if err.Op != "dial" || err.Origin != history.Network || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("Dial of a closed port = %v, origin %v, want refused, network", err, err.Origin)
	}
	if want := "dial " + ln.Addr().String() + ": connect: connection refused"; err.Error() != want {
		t.Errorf("the error reads %q, want %q", err, want)
	}
}

func TestDialUnknownName(t *testing.T) {
	e, perr := ParseEndpoint("http://no-such-host.invalid/")
	if perr != nil {
		t.Fatal(perr)
	}
	err := dialError(t, t.Context(), DialConfig{Timeout: patience}, e)
	if err.Op != "resolve" || err.Origin != history.Network {
		t.Errorf("Dial of an unknown name = %v, origin %v, want resolve, network", err, err.Origin)
	}
}

// A server that accepts and then says nothing to a TLS hello.
func TestDialTimeout(t *testing.T) {
	ln := listen(t, "127.0.0.1:0")
	err := dialError(t, t.Context(), DialConfig{Timeout: 50 * time.Millisecond}, endpoint(t, true, ln.Addr()))
	if err.Op != "tls" || err.Origin != history.Network || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Errorf("Dial of a silent server = %v, origin %v, want a time-out, network", err, err.Origin)
	}
}

func TestDialCancelled(t *testing.T) {
	ln := listen(t, "127.0.0.1:0")
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	time.AfterFunc(20*time.Millisecond, func() { cancel(enough) })
	err := dialError(t, ctx, DialConfig{Timeout: patience}, endpoint(t, true, ln.Addr()))
	if err.Origin != history.Us || !errors.Is(err, enough) {
		t.Errorf("a dial given up = %v, origin %v, want us and the cause", err, err.Origin)
	}
}

func TestDialTLSErrors(t *testing.T) {
	p := connect(t, ways[2]) // proves that the certificate is good once it is trusted
	p.Close()
	ln := listen(t, "127.0.0.1:0")
	var wg sync.WaitGroup
	defer wg.Wait()
	defer ln.Close()
	wg.Go(func() {
		for n := 0; ; n++ {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			if n == 0 {
				c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
				c.Close()
				continue
			}
			s := tlsServer(t, c)
			s.Handshake()
			s.Close()
		}
	})
	e := endpoint(t, true, ln.Addr())
	if err := dialError(t, t.Context(), DialConfig{}, e); err.Op != "tls" || err.Origin != history.Peer {
		t.Errorf("TLS to a plain server = %v, origin %v, want tls, peer", err, err.Origin)
	}
	err := dialError(t, t.Context(), DialConfig{}, e)
	if err.Op != "tls" || err.Origin != history.Peer || !strings.Contains(err.Error(), "--insecure") {
		t.Errorf("an untrusted certificate = %v, origin %v, want tls, peer, and the way out", err, err.Origin)
	}
	for _, conf := range []DialConfig{{Insecure: true}, {CAFile: identity(t).caFile(t), ServerName: "server.test"}} {
		dialTo(t, conf, true, ln.Addr()).Close()
	}
	err = dialError(t, t.Context(), DialConfig{CAFile: identity(t).caFile(t), ServerName: "other.test"}, e)
	if !strings.Contains(err.Error(), "other.test") {
		t.Errorf("a certificate for another name = %v, want both names", err)
	}
}

func TestNewDialerRefuses(t *testing.T) {
	if _, err := NewDialer(DialConfig{CAFile: "no/such/file"}); err == nil {
		t.Error("NewDialer with a missing CA file succeeded")
	}
	if _, err := NewDialer(DialConfig{CAFile: "dialer_test.go"}); err == nil || !strings.Contains(err.Error(), "PEM") {
		t.Errorf("NewDialer with a CA file of Go code = %v, want PEM named", err)
	}
}

// The safety rule holds at the dial too.
func TestDialLoopbackOnly(t *testing.T) {
	e := Endpoint{Host: "192.0.2.1", Port: 80, Authority: "192.0.2.1", Target: "/"}
	err := dialError(t, t.Context(), DialConfig{LoopbackOnly: true}, e)
	if err.Origin != history.Us || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("Dial = %v, origin %v, want it refused by us", err, err.Origin)
	}
	ln := listen(t, "127.0.0.1:0")
	dialTo(t, DialConfig{LoopbackOnly: true}, false, ln.Addr()).Close()
}

// Running out of descriptors is our fault, never the server's.
func TestDialOutOfFiles(t *testing.T) {
	ln := listen(t, "127.0.0.1:0")
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &was)
	low := was
	low.Cur = 3 // all three are taken
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Skipf("cannot lower the limit: %v", err)
	}
	err := dialError(t, t.Context(), DialConfig{}, endpoint(t, false, ln.Addr()))
	if err.Origin != history.Us || !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), "ulimit -n") {
		t.Errorf("Dial without descriptors = %v, origin %v, want us and the way out", err, err.Origin)
	}
}

func TestDialTriesEveryAddress(t *testing.T) {
	ln := listen(t, "127.0.0.1:0")
	d, err := NewDialer(DialConfig{Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	e := endpoint(t, false, ln.Addr())
	e.Host = "two.test"
	entry := &hostEntry{addrs: []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1")}, asked: time.Now()}
	d.hosts[e.Host] = entry
	for range 2 {
		c, err := d.Dial(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if n := entry.good.Load(); n != 1 {
			t.Errorf("the next dial begins with address %d, want 1: it answered", n)
		}
	}
}

func TestDialSpreadsLoopbackSources(t *testing.T) {
	if !loopbackIsNet {
		t.Skip("one loopback address only")
	}
	ln := listen(t, "127.0.0.1:0")
	d, err := NewDialer(DialConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int64]string{0: "127.0.0.1", perSource - 1: "127.0.0.1", perSource: "127.77.1.1", sources*perSource - 1: "127.77.63.1", sources * perSource: "127.0.0.1"} {
		d.dials.Store(n)
		c, err := d.Dial(t.Context(), endpoint(t, false, ln.Addr()))
		if err != nil {
			t.Fatal(err)
		}
		if host, _, _ := net.SplitHostPort(c.Local()); host != want {
			t.Errorf("dial %d leaves from %s, want %s", n, host, want)
		}
		c.Close()
	}
	local := netip.MustParseAddr("127.1.2.3")
	c := dialTo(t, DialConfig{Local: local}, false, ln.Addr())
	if host, _, _ := net.SplitHostPort(c.Local()); host != local.String() {
		t.Errorf("a dial with a local address leaves from %s, want %s", host, local)
	}
}

// No more than Pending dials are under way, and the wait for a slot is told
// apart from the server's time.
func TestDialPending(t *testing.T) {
	ln := listen(t, "127.0.0.1:0")
	var under, most atomic.Int32
	release := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			most.Store(max(most.Load(), under.Add(1)))
			wg.Go(func() {
				<-release
				under.Add(-1) // before the client can know, so before the next dial
				s := tlsServer(t, c)
				s.Handshake()
				s.Close()
			})
		}
	})
	d, err := NewDialer(DialConfig{Insecure: true, Pending: 2})
	if err != nil {
		t.Fatal(err)
	}
	var dials sync.WaitGroup
	var longest atomic.Int64
	for range 6 {
		dials.Go(func() {
			c, err := d.Dial(t.Context(), endpoint(t, true, ln.Addr()))
			if err != nil {
				t.Error(err)
				return
			}
			longest.Store(max(longest.Load(), int64(c.Queued())))
			c.Close()
		})
	}
	eventually(t, "two dials are under way", func() bool { return under.Load() == 2 })
	time.Sleep(20 * time.Millisecond)
	close(release)
	dials.Wait()
	ln.Close()
	wg.Wait()
	if n := most.Load(); n != 2 {
		t.Errorf("%d dials at once, want 2", n)
	}
	if time.Duration(longest.Load()) < 20*time.Millisecond {
		t.Errorf("the longest wait for a slot was %v, want at least 20ms", time.Duration(longest.Load()))
	}
}

func TestDialQueueCancelled(t *testing.T) {
	d, err := NewDialer(DialConfig{Pending: 1})
	if err != nil {
		t.Fatal(err)
	}
	d.pending <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, derr := d.Dial(ctx, Endpoint{Host: "127.0.0.1", Port: 1, Authority: "127.0.0.1:1"})
	var e *Error
	if !errors.As(derr, &e) || e.Origin != history.Us || e.Queued < 10*time.Millisecond {
		t.Errorf("a dial that never got a slot = %v, want us, and the wait", derr)
	}
}
