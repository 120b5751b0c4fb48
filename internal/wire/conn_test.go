package wire

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

func TestWriteAndRead(t *testing.T) {
	everyWay(t, func(t *testing.T, p pair) {
		request := strings.Repeat("request ", 20_000)
		var wg sync.WaitGroup
		wg.Go(func() {
			var got []byte
			buf := make([]byte, 4096)
			for len(got) < len(request) {
				n, err := p.peer.Read(buf)
				if got = append(got, buf[:n]...); err != nil {
					break
				}
			}
			p.peer.Write(got)
			p.peer.Close()
		})
		if err := p.Write([]byte(request), time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		got, err := p.receive(len(request))
		if got != request || err != nil {
			t.Errorf("%d bytes came back, %v, want the %d that were sent", len(got), err, len(request))
		}
		if _, err = p.receive(1); How(err) != "eof" {
			t.Errorf("then ReadAvailable = %v, want eof", err)
		}
		wg.Wait()
	})
}

// Records that come a byte at a time must not upset the TLS layer, which never
// waits for their rest.
func TestSecureReadInPieces(t *testing.T) {
	p := connect(t, way{name: "sliced", addr: "127.0.0.1:0", secure: true, sliced: true})
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, word := range []string{"one ", "two ", "three"} {
			p.peer.Write([]byte(word))
		}
		p.peer.Close()
	})
	got, err := p.receive(1000)
	if got != "one two three" || How(err) != "eof" {
		t.Errorf("read %q, %v, want all three words and eof", got, err)
	}
	wg.Wait()
}

func TestReadDeadline(t *testing.T) {
	everyWay(t, func(t *testing.T, p pair) {
		deadline := time.Now().Add(20 * time.Millisecond)
		for range 2 {
			err := p.ReadAvailable(deadline, func([]byte) { t.Error("bytes from nowhere") })
			if !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().Before(deadline) {
				t.Errorf("ReadAvailable = %v, want os.ErrDeadlineExceeded, not early", err)
			}
		}
		p.peer.Write([]byte("x"))
		if got, err := p.receive(1); got != "x" || err != nil {
			t.Errorf("after a deadline read %q, %v, want the connection as before", got, err)
		}
	})
}

func TestWriteDeadline(t *testing.T) {
	p := connect(t, ways[0])
	err := p.Write(make([]byte, 64<<20), time.Now().Add(50*time.Millisecond))
	var e *Error
	if !errors.As(err, &e) || e.Op != "write" || e.Origin != history.Us || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Write to a server that does not read = %v, want our time-out", err)
	}
}

func TestWriteToClosedPeer(t *testing.T) {
	p := connect(t, ways[0])
	p.tcp.SetLinger(0)
	p.tcp.Close()
	var err error
	for range 1000 {
		if err = p.Write([]byte("x"), time.Now().Add(patience)); err != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if OriginOf(err) != history.Peer || How(err) != "reset" {
		t.Errorf("Write to a closed peer = %v, origin %v, want the peer", err, OriginOf(err))
	}
}

func TestWake(t *testing.T) {
	everyWay(t, func(t *testing.T, p pair) {
		p.Wake()
		if err := p.ReadAvailable(time.Time{}, func([]byte) {}); err != ErrWoken {
			t.Errorf("ReadAvailable after Wake = %v, want ErrWoken", err)
		}
		// One may come late; then the connection waits again.
		if err := p.ReadAvailable(time.Now().Add(10*time.Millisecond), func([]byte) {}); err != ErrWoken && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the next ReadAvailable = %v, want the deadline or one more ErrWoken", err)
		}
		p.peer.Write([]byte("x"))
		if got, err := p.receive(1); got != "x" || err != nil {
			t.Errorf("after Wake read %q, %v, want x", got, err)
		}
	})
}

// No wake may be lost, wherever it falls.
func TestWakeIsNeverLost(t *testing.T) {
	p := connect(t, ways[0])
	seen := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(seen)
		for range 2000 {
			// Changing deadlines are where a wake could be overwritten.
			err := p.ReadAvailable(time.Now().Add(patience), func([]byte) { t.Error("bytes from nowhere") })
			if err != ErrWoken {
				t.Errorf("ReadAvailable = %v, want ErrWoken", err)
				return
			}
			seen <- struct{}{}
		}
	})
	for {
		p.Wake()
		if _, ok := <-seen; !ok {
			break
		}
	}
	wg.Wait()
}

func TestDrain(t *testing.T) {
	everyWay(t, func(t *testing.T, p pair) {
		p.Lock()
		defer p.Unlock()
		if err := p.Drain(func([]byte) bool { t.Error("bytes from nowhere"); return false }); err != nil {
			t.Errorf("Drain of nothing = %v, want nil", err)
		}
		want := strings.Repeat("0123456789", 5000)
		p.peer.Write([]byte(want))
		p.arrived(t)
		var got bytes.Buffer
		if err := p.Drain(func(b []byte) bool { got.Write(b); return false }); err != nil || got.String() != want {
			t.Errorf("Drain gave %d bytes, %v, want %d", got.Len(), err, len(want))
		}
		p.tcp.CloseWrite()
		eventually(t, "the end arrives", func() bool { return How(p.Drain(ignore)) == "eof" })
	})
}
