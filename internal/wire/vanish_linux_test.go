package wire

import (
	"bytes"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestVanish(t *testing.T) {
	everyWay(t, func(t *testing.T, p pair) {
		if err := p.Write([]byte("a request"), time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		p.peer.Write([]byte("before"))
		p.arrived(t)
		eventually(t, "the request is acknowledged", func() bool {
			n, err := p.Unacked()
			return err == nil && n == 0
		})
		var got bytes.Buffer
		locked(t, p.Conn, func() (Cut, error) {
			return p.Vanish(now, func(b []byte) bool { got.Write(b); return false })
		})
		if got.String() != "before" {
			t.Errorf("Vanish drained %q, want %q", &got, "before")
		}
		p.control(t, func(fd int) {
			if info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err != nil || info.Unacked != 0 {
				t.Errorf("after Vanish the server waits for %d acknowledgements (%v), want none", info.Unacked, err)
			}
		})

		p.peer.Write(make([]byte, 1000))
		p.peer.Write(make([]byte, 1000))
		if how, _ := p.end(150 * time.Millisecond); how != "nothing" {
			t.Errorf("the server saw %q of a vanished client, want nothing", how)
		}
		if n := p.backlog(t); n < 2000 {
			t.Errorf("%d bytes wait at the server, want at least 2000: nothing was acknowledged", n)
		}
		if n, err := p.Drops(); err != nil || n < 2 {
			t.Errorf("Drops() = %d, %v, want at least the 2 segments sent", n, err)
		}
		if err := p.ReadAvailable(time.Time{}, func([]byte) {}); err != ErrCut {
			t.Errorf("ReadAvailable after Vanish = %v, want ErrCut", err)
		}

		p.Close()
		if how, _ := p.end(patience); how != "rst" {
			t.Errorf("the server saw %q at the end, want rst", how)
		}
	})
}

func TestVanishStops(t *testing.T) {
	p := connect(t, ways[0])
	p.peer.Write([]byte("the result"))
	p.arrived(t)
	cut := locked(t, p.Conn, func() (Cut, error) {
		return p.Vanish(now, func([]byte) bool { return true })
	})
	if !cut.Stopped {
		t.Errorf("Vanish went on although its sink stopped it: %+v", cut)
	}
	p.peer.Write([]byte("x"))
	if got, err := p.receive(1); got != "x" || err != nil {
		t.Errorf("then read %q, %v, want the connection as before", got, err)
	}
}

// While our own bytes are under way the kernel would repeat them, so the server
// would still hear of us.
func TestVanishWaitsForAcknowledgement(t *testing.T) {
	p := connect(t, ways[0])
	p.control(t, func(fd int) {
		if err := deafen(fd); err != nil {
			t.Fatal(err)
		}
	})
	if err := p.Write([]byte("a request"), time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	p.Lock()
	_, err := p.Vanish(now, func([]byte) bool { t.Error("drained too early"); return false })
	p.Unlock()
	if err != ErrUnacked {
		t.Errorf("Vanish with bytes under way = %v, want ErrUnacked", err)
	}
	p.control(t, func(fd int) { unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0) })
	eventually(t, "the repeated request is acknowledged", func() bool {
		n, err := p.Unacked()
		return err == nil && n == 0
	})
	locked(t, p.Conn, func() (Cut, error) { return p.Vanish(now, ignore) })
}

// Nothing of ours may end a held connection by itself.
func TestSocketOptions(t *testing.T) {
	everyWay(t, func(t *testing.T, p pair) {
		options := []struct {
			name         string
			level, name2 int
			want         int
		}{
			{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 0},
			{"TCP_USER_TIMEOUT", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 0},
			{"TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		}
		for _, o := range options {
			err := p.raw.Control(func(fd uintptr) {
				got, err := unix.GetsockoptInt(int(fd), o.level, o.name2)
				if err != nil || (got != 0) != (o.want != 0) {
					t.Errorf("%s = %d, %v, want %d", o.name, got, err, o.want)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}
