//go:build !race

package wire

import (
	"testing"
	"time"
)

// Waiting costs nothing but the wait.
func TestReadAllocations(t *testing.T) {
	p := connect(t, ways[0])
	event := []byte("data: x\n\n")
	total := 0
	sink := func(b []byte) { total += len(b) }
	deadline := time.Now().Add(patience)
	n := testing.AllocsPerRun(200, func() {
		p.peer.Write(event)
		for want := total + len(event); total < want; {
			if err := p.ReadAvailable(deadline, sink); err != nil {
				t.Fatal(err)
			}
		}
	})
	if n > 0.5 {
		t.Errorf("an event costs %v allocations, want none", n)
	}
}

// A waiting stream costs a small goroutine and a few small objects. The bound
// is loose; the benchmark below gives the figure.
func TestIdleStreamIsCheap(t *testing.T) {
	h := startHolder(t)
	d, err := NewDialer(DialConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var c crowd
	defer c.close()
	const first, more = 100, 400
	c.grow(t, d, h.e, first)
	c.settle(t, h)
	before := inUse()
	c.grow(t, d, h.e, first+more)
	c.settle(t, h)
	if each := (inUse() - before) / more; each > 5<<10 {
		t.Errorf("a waiting stream uses %d bytes, want at most 5 KiB", each)
	}
}
