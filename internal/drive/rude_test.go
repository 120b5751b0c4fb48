package drive

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// rude serves raw answers, one a connection; answer closes by returning.
func rude(t *testing.T, answer func(c *net.TCPConn, id string)) (addr string, stop func()) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				req, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				var body struct{ ID string }
				if json.NewDecoder(req.Body).Decode(&body) == nil {
					answer(c.(*net.TCPConn), body.ID)
				}
			})
		}
	})
	return ln.Addr().String(), func() { ln.Close(); wg.Wait() }
}

// TestCutsMeetTheServersEnd lets the server end the connection in every way at
// the moment at which a cut in every style falls due: each attempt ends once
// and soon, whoever was first.
func TestCutsMeetTheServersEnd(t *testing.T) {
	const rounds = 40
	endings := map[string]func(c *net.TCPConn){
		"fin":   func(c *net.TCPConn) {},
		"reset": func(c *net.TCPConn) { _ = c.SetLinger(0) },
		"stays": func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) },
	}
	for name, end := range endings {
		for _, style := range []string{"fin", "reset", "half-close", "stall", "vanish"} {
			for _, moment := range []string{"done", "event(1)", "after(2ms)"} {
				t.Run(name+"/"+style+"@"+moment, func(t *testing.T) {
					addr, stop := rude(t, func(c *net.TCPConn, id string) {
						answer := fmt.Sprintf("data: {}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":%q,\"result\":{\"content\":[]}}\n\n", id)
						fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n%s", answer)
						end(c)
					})
					s := stageAt(t, addr, style+"@"+moment, 0, stop)
					s.cfg.Stream.Hold = 20 * time.Millisecond
					begun := time.Now()
					var calls sync.WaitGroup
					for i := range rounds {
						calls.Go(func() { s.call(uint64(i + 1)) })
					}
					calls.Wait()
					s.WaitHeld()
					if took := time.Since(begun); took > 10*time.Second {
						t.Errorf("it took %s", took)
					}
					s.checkEnds(t, rounds)
				})
			}
		}
	}
}

func (s *stage) checkEnds(t *testing.T, n int) {
	t.Helper()
	s.mem.mu.Lock()
	defer s.mem.mu.Unlock()
	seen := map[history.Ref]int{}
	for _, r := range s.mem.recs {
		e := r.End
		if e == nil {
			continue
		}
		seen[e.Ref]++
		ok := e.Outcome == history.Delivered || e.Outcome == history.Cut && e.Cut != nil || e.Outcome == history.Broken && e.Origin == history.Peer
		if !ok || e.Missed != (e.Cut == nil) {
			t.Errorf("attempt %s: %s by %s, %q, cut %+v, missed %v", e.Ref, e.Outcome, e.Origin, e.Error, e.Cut, e.Missed)
		}
	}
	for ref, k := range seen {
		if k != 1 {
			t.Errorf("attempt %s ended %d times", ref, k)
		}
	}
	if len(seen) != n {
		t.Errorf("%d attempts ended, want %d", len(seen), n)
	}
}
