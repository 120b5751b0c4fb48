package wire

import "sync"

// maxIdle is how many idle hands are kept: more than run at the same time,
// unless sinks wait for something.
const maxIdle = 64

// crew lends out goroutines whose stacks have grown already.
//
// A stack that has once needed more than 2 KiB stays at 4 KiB or more for as
// long as its goroutine waits, and ten thousands wait. So what needs a stack,
// from a TLS handshake to the decoding of an event, runs on a hand, and the
// goroutine that waits on a stream stays small. The hand-over costs two
// goroutine switches, well under a microsecond.
//
// Hands are kept while there are members, the open connections; so nothing is
// left running after the last Close. The zero value is ready.
type crew struct {
	mu      sync.Mutex
	members int
	idle    []*hand
}

// job is what a hand can do.
type job interface{ work() }

// hand is one goroutine of a crew.
type hand struct {
	jobs chan job
	done chan struct{}
}

func (h *hand) run() {
	for j := range h.jobs {
		j.work()
		h.done <- struct{}{}
	}
}

// do has a hand do the job and waits for it.
func (c *crew) do(j job) {
	h := c.take()
	h.jobs <- j
	<-h.done
	c.put(h)
}

func (c *crew) take() *hand {
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		h := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		return h
	}
	c.mu.Unlock()
	h := &hand{jobs: make(chan job), done: make(chan struct{}, 1)}
	go h.run()
	return h
}

func (c *crew) put(h *hand) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members == 0 || len(c.idle) >= maxIdle {
		close(h.jobs)
		return
	}
	c.idle = append(c.idle, h)
}

// join adds a member.
func (c *crew) join() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members++
}

// leave takes a member away, and the idle hands with the last one.
func (c *crew) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members--; c.members > 0 {
		return
	}
	for _, h := range c.idle {
		close(h.jobs)
	}
	c.idle = nil
}

// fn is a plain function as a job.
type fn func()

func (f fn) work() { f() }
