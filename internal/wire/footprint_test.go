package wire

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// holder is a server process that holds connections; see hold.
type holder struct {
	e    Endpoint
	in   io.WriteCloser
	out  *bufio.Scanner
	wait func() error
}

func startHolder(tb testing.TB) *holder {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holderEnv+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	h := &holder{in: in, out: bufio.NewScanner(out), wait: cmd.Wait}
	tb.Cleanup(func() {
		h.in.Close()
		h.wait()
	})
	if !h.out.Scan() {
		tb.Fatal("the holder did not start")
	}
	addr, err := netip.ParseAddrPort(h.out.Text())
	if err != nil {
		tb.Fatal(err)
	}
	h.e = Endpoint{Host: addr.Addr().String(), Port: addr.Port(), Authority: addr.String(), Target: "/"}
	return h
}

// tick has the holder write an event to each of n connections.
func (h *holder) tick(tb testing.TB, n int) {
	tb.Helper()
	fmt.Fprintln(h.in, n)
	if !h.out.Scan() {
		tb.Fatal("the holder is gone")
	}
}

// crowd is many streams, each with its goroutine, parser and connection, as
// the shell of an attempt has them.
type crowd struct {
	streams []*waiting
	events  atomic.Int64
	wg      sync.WaitGroup
}

var request = []byte("POST / HTTP/1.1\r\nHost: holder\r\nContent-Length: 0\r\n\r\n")

type waiting struct {
	conn *Conn
	resp Response
	of   *crowd
}

func (w *waiting) run() {
	defer w.of.wg.Done()
	sink := w.sink
	w.conn.Write(request, time.Now().Add(patience))
	for w.conn.ReadAvailable(time.Time{}, sink) == nil {
	}
	w.conn.Close()
}

func (w *waiting) sink(p []byte) {
	for {
		part, n, err := w.resp.Next(p)
		p = p[n:]
		if err != nil || part.Kind == PartNone {
			return
		}
		if part.Kind == PartBody {
			w.of.events.Add(1)
		}
	}
}

// grow opens streams until there are n.
func (c *crowd) grow(tb testing.TB, d *Dialer, e Endpoint, n int) {
	tb.Helper()
	var dials sync.WaitGroup
	slots := make(chan struct{}, 64)
	var mu sync.Mutex
	for range n - len(c.streams) {
		slots <- struct{}{}
		dials.Go(func() {
			defer func() { <-slots }()
			conn, err := d.Dial(tb.Context(), e)
			if err != nil {
				tb.Error(err)
				return
			}
			w := &waiting{conn: conn, of: c}
			mu.Lock()
			c.streams = append(c.streams, w)
			mu.Unlock()
			c.wg.Add(1)
			go w.run()
		})
	}
	dials.Wait()
}

// settle has every stream receive events and takes the garbage away.
func (c *crowd) settle(tb testing.TB, h *holder) {
	tb.Helper()
	for range 3 {
		before := c.events.Load()
		h.tick(tb, len(c.streams))
		deadline := time.Now().Add(patience)
		for c.events.Load() < before+int64(len(c.streams)) {
			if time.Now().After(deadline) {
				tb.Fatalf("%d of %d events came", c.events.Load()-before, len(c.streams))
			}
			time.Sleep(time.Millisecond)
		}
		debug.FreeOSMemory()
	}
}

func (c *crowd) close() {
	for _, w := range c.streams {
		w.conn.Lock()
		w.conn.Reset(now)
		w.conn.Unlock()
	}
	c.wg.Wait()
}

// inUse is heap plus stacks.
func inUse() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// BenchmarkIdleStream gives the user-space bytes of a stream: what the resident
// set grows by from 2,000 to 10,000 of them.
func BenchmarkIdleStream(b *testing.B) {
	const low, high = 2000, 10_000
	for range b.N {
		h := startHolder(b)
		d, err := NewDialer(DialConfig{})
		if err != nil {
			b.Fatal(err)
		}
		var c crowd
		c.grow(b, d, h.e, low)
		c.settle(b, h)
		rss, use := resident(b), inUse()
		begun := time.Now()
		c.grow(b, d, h.e, high)
		opened := time.Since(begun)
		c.settle(b, h)
		b.ReportMetric(float64(resident(b)-rss)/(high-low), "RSS-B/stream")
		b.ReportMetric(float64(inUse()-use)/(high-low), "inuse-B/stream")
		b.ReportMetric((high-low)/opened.Seconds(), "dials/s")
		c.close()
	}
}

// resident is the process's resident set in bytes.
func resident(b *testing.B) int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip(err)
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		b.Fatal(fmt.Errorf("statm reads %q", text))
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
