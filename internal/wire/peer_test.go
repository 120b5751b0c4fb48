package wire

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience bounds every wait of a test that should not last.
const patience = 10 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(holderEnv) != "" {
		hold()
		return
	}
	goleak.VerifyTestMain(m)
}

// now is a run's clock.
var now = func() Clock {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}()

// way is one of the ways a connection can be made.
type way struct {
	name   string
	addr   string // to listen on
	secure bool
	sliced bool // the server's bytes come one in a segment
}

var ways = []way{
	{"v4", "127.0.0.1:0", false, false},
	{"v6", "[::1]:0", false, false},
	{"v4 tls", "127.0.0.1:0", true, false},
	{"v6 tls", "[::1]:0", true, false},
}

// pair is both ends of one connection; peer is the server's, in the clear, and
// tcp what is below it.
type pair struct {
	*Conn
	peer net.Conn
	tcp  *net.TCPConn
}

// connect makes a pair. Both ends are closed when the test ends.
func connect(t *testing.T, w way) pair {
	t.Helper()
	ln := listen(t, w.addr)
	accepted := make(chan net.Conn, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		c, err := ln.Accept()
		if err != nil {
			close(accepted)
			return
		}
		if w.sliced {
			c = slicer{c.(*net.TCPConn)}
		}
		if w.secure {
			s := tlsServer(t, c)
			if s.Handshake() != nil {
				c.Close()
				close(accepted)
				return
			}
			c = s
		}
		accepted <- c
	})
	conf := DialConfig{Timeout: patience}
	if w.secure {
		conf.CAFile = identity(t).caFile(t)
	}
	c := dialTo(t, conf, w.secure, ln.Addr())
	wg.Wait()
	peer, ok := <-accepted
	if !ok {
		t.Fatal("the test's server did not accept")
	}
	p := pair{Conn: c, peer: peer}
	if s, ok := peer.(*tls.Conn); ok {
		peer = s.NetConn()
	}
	if s, ok := peer.(slicer); ok {
		peer = s.TCPConn
	}
	p.tcp = peer.(*net.TCPConn)
	t.Cleanup(func() {
		c.Close()
		p.tcp.Close()
	})
	p.tcp.SetDeadline(time.Now().Add(patience))
	return p
}

// slicer writes byte by byte.
type slicer struct{ *net.TCPConn }

func (s slicer) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := s.TCPConn.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Skipf("no %s here: %v", addr, err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

func endpoint(t *testing.T, secure bool, addr net.Addr) Endpoint {
	t.Helper()
	scheme := "http"
	if secure {
		scheme = "https"
	}
	e, err := ParseEndpoint(scheme + "://" + addr.String() + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func dialTo(t *testing.T, conf DialConfig, secure bool, addr net.Addr) *Conn {
	t.Helper()
	d, err := NewDialer(conf)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Dial(context.Background(), endpoint(t, secure, addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// credentials are a certificate for the loopback addresses that signs itself.
type credentials struct {
	server *tls.Config
	pem    []byte
}

var makeIdentity = sync.OnceValues(func() (credentials, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return credentials{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		DNSNames:     []string{"server.test"},
		IsCA:         true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return credentials{}, err
	}
	return credentials{
		server: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		pem:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}, nil
})

func (c credentials) caFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, c.pem, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func identity(t *testing.T) credentials {
	t.Helper()
	c, err := makeIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tlsServer(t *testing.T, c net.Conn) *tls.Conn { return tls.Server(c, identity(t).server) }

// end reads at the server until something ends it, and names that.
func (p pair) end(within time.Duration) (how string, bytes int) {
	p.tcp.SetReadDeadline(time.Now().Add(within))
	buf := make([]byte, 4096)
	for {
		n, err := p.peer.Read(buf)
		bytes += n
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return "fin", bytes
		case errors.Is(err, syscall.ECONNRESET):
			return "rst", bytes
		case errors.Is(err, os.ErrDeadlineExceeded):
			return "nothing", bytes
		default:
			return err.Error(), bytes
		}
	}
}

// receive reads at the client until it has n bytes or an error comes.
func (p pair) receive(n int) (string, error) {
	var got []byte
	deadline := time.Now().Add(patience)
	for len(got) < n {
		if err := p.ReadAvailable(deadline, func(b []byte) { got = append(got, b...) }); err != nil {
			return string(got), err
		}
	}
	return string(got), nil
}

// arrived waits until the server's kernel knows that all it sent is in the
// client's.
func (p pair) arrived(t *testing.T) {
	t.Helper()
	eventually(t, "the server's bytes arrive", func() bool { return p.backlog(t) == 0 })
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came about that %s", what)
		}
	}
}

// control runs f on the descriptor of the server's end.
func (p pair) control(t *testing.T, f func(fd int)) {
	t.Helper()
	raw, err := p.tcp.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
	if err != nil {
		t.Fatal(err)
	}
}

// backlog is what the server's kernel has sent and nobody has acknowledged.
func (p pair) backlog(t *testing.T) (n int) {
	t.Helper()
	p.control(t, func(fd int) { n, _ = unacked(fd) })
	return n
}

// holderEnv makes this test binary a server that holds connections, in a
// process of its own so that its memory is not counted.
const holderEnv = "WIRE_TEST_HOLDER"

// hold accepts connections and answers each with the head of an event stream.
// For each number on stdin it waits until it holds that many, writes an event
// to all of them, and says so.
func hold() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(ln.Addr())
	accepted := make(chan net.Conn, 20_000)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
			accepted <- c
		}
	}()
	var conns []net.Conn
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		n, _ := strconv.Atoi(lines.Text())
		for len(conns) < n {
			conns = append(conns, <-accepted)
		}
		for _, c := range conns {
			io.WriteString(c, "16\r\ndata: {\"progress\":1}\n\n\r\n")
		}
		fmt.Println("done")
	}
}
