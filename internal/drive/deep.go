package drive

import (
	"sync"
	"sync/atomic"
)

// maxIdle is how many workers may wait for work.
const maxIdle = 64

// deep runs work that needs a deep stack on a few goroutines of its own. A
// goroutine's stack that has grown stays grown while it waits; ten thousand
// calls wait on theirs, so they hand everything but the waiting to deep.
//
// do may be called from any goroutine.
type deep struct {
	jobs chan *job
	idle atomic.Int32
	end  <-chan struct{} // closed: idle workers go
}

type job struct {
	run  func()
	done chan struct{}
}

var jobs = sync.Pool{New: func() any { return &job{done: make(chan struct{}, 1)} }}

func newDeep(end <-chan struct{}) *deep { return &deep{jobs: make(chan *job), end: end} }

// do runs f and returns when it has returned.
func (d *deep) do(f func()) {
	j := jobs.Get().(*job)
	j.run = f
	select {
	case d.jobs <- j:
	default:
		go d.work(j)
	}
	<-j.done
	j.run = nil
	jobs.Put(j)
}

func (d *deep) work(j *job) {
	for {
		j.run()
		j.done <- struct{}{}
		if d.idle.Add(1) > maxIdle {
			d.idle.Add(-1)
			return
		}
		select {
		case j = <-d.jobs:
			d.idle.Add(-1)
		case <-d.end:
			return
		}
	}
}
