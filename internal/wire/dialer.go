package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

const (
	defaultTimeout = 10 * time.Second
	defaultPending = 256
	// resolveEvery is how long the addresses of a name are kept: a run must not
	// measure its resolver.
	resolveEvery = 5 * time.Minute
	// perSource is how many dials in a row leave from one loopback address.
	// Linux looks for free ports two by two: above some 14,000 connections per
	// pair of addresses connect slows down twentyfold, and 28,232 is the end.
	perSource = 10_000
	// sources is how many loopback addresses take turns. Closed connections
	// hold their port for a minute in TIME_WAIT, so turns must be long.
	sources = 64
)

// DialConfig is how connections are made. The zero value is usable.
type DialConfig struct {
	Timeout time.Duration // TCP and TLS together; 0: 10s
	Pending int           // dials at the same time; 0: 256
	// Local is the source address. Zero: the kernel's choice, and on Linux, for
	// targets in 127.0.0.0/8, one of several loopback addresses, so that tens of
	// thousands of connections find a port quickly.
	Local netip.Addr
	// LoopbackOnly refuses any address that is not loopback, at every dial: a
	// name that changes its address does not lead a flood elsewhere.
	LoopbackOnly bool

	Insecure   bool   // TLS: accept any certificate
	CAFile     string // TLS: PEM file of the authorities to trust; empty: the system's
	ServerName string // TLS: name to ask for and to verify; empty: the endpoint's host
}

// Dialer makes connections, a bounded number at a time. It is safe for
// concurrent use and needs no closing. Make one with [NewDialer].
type Dialer struct {
	conf    DialConfig
	roots   *x509.CertPool
	pending chan struct{}
	dials   atomic.Int64 // to loopback, for taking turns among the sources
	crew    crew

	mu    sync.Mutex
	hosts map[string]*hostEntry
}

// hostEntry is what is known about one host name.
type hostEntry struct {
	addrs []netip.Addr
	asked time.Time
	tls   *tls.Config  // one for all connections: a config is a kilobyte
	good  atomic.Int32 // index of the address that answered last
}

// NewDialer reads the CA file, if one is named.
func NewDialer(conf DialConfig) (*Dialer, error) {
	if conf.Timeout <= 0 {
		conf.Timeout = defaultTimeout
	}
	if conf.Pending <= 0 {
		conf.Pending = defaultPending
	}
	d := &Dialer{conf: conf, pending: make(chan struct{}, conf.Pending), hosts: map[string]*hostEntry{}}
	if conf.CAFile == "" {
		return d, nil
	}
	pem, err := os.ReadFile(conf.CAFile)
	if err != nil {
		return nil, fmt.Errorf("CA file: %w", err)
	}
	d.roots = x509.NewCertPool()
	if !d.roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("CA file %s has no certificate in PEM form", conf.CAFile)
	}
	return d, nil
}

// Dial connects, TLS included. It waits for a free slot, then for at most the
// configured timeout. The error is an [*Error].
//
// The work is done on another goroutine, for the stack's sake; see [Dialer.Deep].
func (d *Dialer) Dial(ctx context.Context, e Endpoint) (*Conn, error) {
	begun := time.Now()
	select {
	case d.pending <- struct{}{}:
	case <-ctx.Done():
		return nil, &Error{Op: "dial", Target: e.Authority, Origin: history.Us, Queued: time.Since(begun), Err: context.Cause(ctx)}
	}
	j := &dial{ctx: ctx, d: d, e: e, queued: time.Since(begun)}
	d.crew.do(j)
	<-d.pending
	if j.err != nil {
		return nil, j.err // not j.conn, j.err: a nil *Error is no nil error
	}
	return j.conn, nil
}

// Deep runs f on a goroutine whose stack has grown already, and waits for it. A
// goroutine that is going to wait on a stream should do so with all that needs
// more than a few small frames, such as the making of its request, for a stack
// never shrinks back to its first 2 KiB. The sinks of [Conn.ReadAvailable] run
// like that anyway.
func (d *Dialer) Deep(f func()) { d.crew.do(fn(f)) }

// dial is one dial under way.
type dial struct {
	ctx    context.Context
	d      *Dialer
	e      Endpoint
	queued time.Duration
	conn   *Conn
	err    *Error
}

func (j *dial) work() {
	ctx, cancel := context.WithTimeout(j.ctx, j.d.conf.Timeout)
	defer cancel()
	if j.conn, j.err = j.connect(ctx); j.err != nil {
		j.err.Queued = j.queued
		return
	}
	j.conn.queued = j.queued
	j.d.crew.join()
}

func (j *dial) connect(ctx context.Context) (*Conn, *Error) {
	host, err := j.d.host(ctx, j.e.Host)
	if err != nil {
		return nil, j.fail(ctx, "resolve", j.e.Host, history.Network, err)
	}
	if j.d.conf.LoopbackOnly && !allLoopback(host.addrs) {
		return nil, j.fail(ctx, "dial", j.e.Host, history.Us, errors.New("not a loopback address, and no other is allowed"))
	}
	tcp, addr, err := j.tcp(ctx, host)
	if err != nil {
		return nil, j.fail(ctx, "dial", addr.String(), OriginOf(err), err)
	}
	c, err := newConn(tcp, &j.d.crew)
	if err != nil {
		tcp.Close()
		return nil, j.fail(ctx, "dial", addr.String(), history.Us, err)
	}
	if !j.e.Secure {
		return c, nil
	}
	if err := c.startTLS(ctx, host.tls); err != nil {
		tcp.Close()
		return nil, j.fail(ctx, "tls", addr.String(), history.Peer, err)
	}
	return c, nil
}

// fail builds the error of a dial. A caller that gave up is us, whatever the
// network said then; our own time-out is not.
func (j *dial) fail(ctx context.Context, op, target string, origin history.Origin, err error) *Error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return &Error{Op: op, Target: target, Origin: history.Us, Err: cause}
	}
	if isTimeout(err) {
		origin = history.Network
		err = fmt.Errorf("no answer within %v", j.d.conf.Timeout)
	}
	var outer *net.OpError
	if errors.As(err, &outer) {
		err = outer.Err // its text repeats the addresses
	}
	return &Error{Op: op, Target: target, Origin: origin, Err: err}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}

// tcp tries the addresses of a host in turn, beginning with the one that
// answered last, and shares the time that is left among them.
func (j *dial) tcp(ctx context.Context, host *hostEntry) (*net.TCPConn, netip.AddrPort, error) {
	var (
		first     error
		firstAddr netip.AddrPort
		n         = len(host.addrs)
		start     = int(host.good.Load()) % n
	)
	for i := range n {
		at := (start + i) % n
		addr := netip.AddrPortFrom(host.addrs[at], j.e.Port)
		part, cancel := share(ctx, n-i)
		tcp, err := j.d.tcpOne(part, addr)
		cancel()
		if err == nil {
			host.good.Store(int32(at))
			return tcp, addr, nil
		}
		if first == nil {
			first, firstAddr = err, addr
		}
	}
	return nil, firstAddr, first
}

// share bounds ctx to its n-th part of the time left.
func share(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok || n <= 1 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Until(deadline)/time.Duration(n))
}

func (d *Dialer) tcpOne(ctx context.Context, addr netip.AddrPort) (*net.TCPConn, error) {
	// Keep-alive probes would be answered by nobody once a connection has
	// vanished, and our own kernel would then reset it.
	nd := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: false}, KeepAlive: -1, FallbackDelay: -1}
	nd.SetMultipathTCP(false) // a subflow's filter is not the connection's
	from := nd
	from.Control = bindNoPort
	if d.conf.Local.IsValid() {
		return from.DialTCP(ctx, "tcp", netip.AddrPortFrom(d.conf.Local, 0), addr)
	}
	if src := d.source(addr.Addr()); src.IsValid() {
		c, err := from.DialTCP(ctx, "tcp", netip.AddrPortFrom(src, 0), addr)
		if !errors.Is(err, syscall.EADDRNOTAVAIL) {
			return c, err
		}
		// Some sandboxes have 127.0.0.1 only.
	}
	// Not DialTCP: it would bind even to no address, and a bound port is taken
	// for all targets. That is 28,232 connections a minute on one machine, of all
	// processes together, instead of as many to each target.
	c, err := nd.DialContext(ctx, "tcp", addr.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// source picks the loopback address a dial leaves from. The first perSource
// dials have the kernel's choice, which is what people expect to see.
func (d *Dialer) source(to netip.Addr) netip.Addr {
	if !loopbackIsNet || !to.Is4() || !to.IsLoopback() {
		return netip.Addr{}
	}
	turn := (d.dials.Add(1) - 1) / perSource % sources
	if turn == 0 {
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte{127, 77, byte(turn), 1})
}

// host resolves a name, or gives what was resolved a short while ago. If a
// later look-up fails the old addresses stay.
func (d *Dialer) host(ctx context.Context, name string) (*hostEntry, error) {
	d.mu.Lock()
	entry := d.hosts[name]
	d.mu.Unlock()
	if entry != nil && time.Since(entry.asked) < resolveEvery {
		return entry, nil
	}
	addrs, err := resolve(ctx, name)
	if err != nil {
		if entry != nil {
			return entry, nil
		}
		return nil, err
	}
	fresh := &hostEntry{addrs: addrs, asked: time.Now(), tls: d.tlsConfig(name)}
	d.mu.Lock()
	d.hosts[name] = fresh
	d.mu.Unlock()
	return fresh, nil
}

func (d *Dialer) tlsConfig(host string) *tls.Config {
	name := d.conf.ServerName
	if name == "" {
		name = host
	}
	return &tls.Config{
		ServerName:         name,
		RootCAs:            d.roots,
		InsecureSkipVerify: d.conf.Insecure,
		NextProtos:         []string{"http/1.1"},
		MinVersion:         tls.VersionTLS12,
	}
}
