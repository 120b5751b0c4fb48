package target

import "sync"

// live knows the calls whose clients are still there. Only faults that make
// one call meddle with another need it.
type live struct {
	mu   sync.Mutex
	jobs []*job
}

func (l *live) add(j *job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j.place = len(l.jobs)
	l.jobs = append(l.jobs, j)
}

// remove may be called more than once.
func (l *live) remove(j *job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if j.place < 0 {
		return
	}
	last := len(l.jobs) - 1
	l.jobs[j.place] = l.jobs[last]
	l.jobs[j.place].place = j.place
	l.jobs[last] = nil
	l.jobs = l.jobs[:last]
	j.place = -1
}

// other picks a live call that is not j and that fits; nil if there is none.
// n decides where the search begins. use runs under the lock, so that the call
// cannot leave meanwhile.
func (l *live) other(j *job, n uint64, fits func(*job) bool, use func(*job)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.jobs {
		k := l.jobs[(n+uint64(i))%uint64(len(l.jobs))]
		if k != j && fits(k) {
			use(k)
			return
		}
	}
}
