package wire

import (
	"sync"
	"testing"
)

// Hands stay while a connection is open and go with the last one; TestMain looks
// for those that do not.
func TestCrew(t *testing.T) {
	var c crew
	idle := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.idle)
	}
	done := 0
	c.do(fn(func() { done++ }))
	if n := idle(); n != 0 {
		t.Errorf("%d idle hands without a member, want none", n)
	}
	c.join()
	c.join()
	for range 3 {
		c.do(fn(func() { done++ }))
	}
	if n := idle(); n != 1 {
		t.Errorf("%d idle hands after one job at a time, want 1", n)
	}
	var all, started sync.WaitGroup
	started.Add(maxIdle + 10)
	for range maxIdle + 10 {
		all.Go(func() {
			c.do(fn(func() {
				started.Done()
				started.Wait() // so all run at the same time
			}))
		})
	}
	all.Wait()
	if n := idle(); n != maxIdle {
		t.Errorf("%d idle hands after a rush, want %d", n, maxIdle)
	}
	c.leave()
	if n := idle(); n != maxIdle {
		t.Errorf("%d idle hands with a member left, want %d", n, maxIdle)
	}
	c.leave()
	if n := idle(); n != 0 || done != 4 {
		t.Errorf("%d idle hands and %d jobs done, want 0 and 4", n, done)
	}
}

func TestDeep(t *testing.T) {
	var d Dialer
	ran := false
	d.Deep(func() { ran = true })
	if !ran {
		t.Error("Deep returned before its function had run")
	}
}

func BenchmarkCrew(b *testing.B) {
	var c crew
	c.join()
	defer c.leave()
	job := fn(func() {})
	for b.Loop() {
		c.do(job)
	}
}
