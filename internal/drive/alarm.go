package drive

import (
	"container/heap"
	"sync"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// Waker is what an Alarm wakes: a connection whose reader waits.
type Waker interface{ Wake() }

// Alarm wakes connections at exact moments. One thread of its own sleeps with
// the kernel's finest timer: Go's own timers run a millisecond late on an idle
// machine, because its poller sleeps in whole milliseconds, and later on a busy
// one.
//
// Set may be called from any goroutine.
type Alarm struct {
	clock history.Clock

	mu      sync.Mutex
	due     alarms
	sleeper sleeper
	closed  bool
	done    chan struct{}
}

type alarm struct {
	at time.Duration
	w  Waker
}

type alarms []alarm

func (h alarms) Len() int           { return len(h) }
func (h alarms) Less(i, j int) bool { return h[i].at < h[j].at }
func (h alarms) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *alarms) Push(x any)        { *h = append(*h, x.(alarm)) }
func (h *alarms) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = alarm{}
	*h = old[:len(old)-1]
	return last
}

// NewAlarm starts the thread; Close ends it.
func NewAlarm(clock history.Clock) (*Alarm, error) {
	s, err := newSleeper()
	if err != nil {
		return nil, err
	}
	a := &Alarm{clock: clock, sleeper: s, done: make(chan struct{})}
	go a.loop()
	return a, nil
}

// Set wakes w at the time at, or at once if that is past. It cannot be taken
// back: waking a connection that needs no waking does nothing.
func (a *Alarm) Set(at time.Duration, w Waker) {
	a.mu.Lock()
	first := len(a.due) == 0 || at < a.due[0].at
	heap.Push(&a.due, alarm{at, w})
	a.mu.Unlock()
	if first {
		a.sleeper.interrupt()
	}
}

// Close ends the thread; alarms still set are dropped.
func (a *Alarm) Close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.sleeper.interrupt()
	<-a.done
	a.sleeper.close()
}

// idleSleep is how long the thread sleeps when nothing is set.
const idleSleep = time.Second

func (a *Alarm) loop() {
	defer close(a.done)
	a.sleeper.begin()
	for {
		wait, ok := a.fire()
		if !ok {
			return
		}
		a.sleeper.sleep(wait)
	}
}

// fire wakes everything due and tells how long until the next.
func (a *Alarm) fire() (time.Duration, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for !a.closed && len(a.due) > 0 {
		wait := a.due[0].at - a.clock.Now()
		if wait > 0 {
			return wait, true
		}
		heap.Pop(&a.due).(alarm).w.Wake()
	}
	return idleSleep, !a.closed
}
