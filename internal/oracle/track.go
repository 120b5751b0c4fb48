package oracle

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

const (
	// maxItems bounds the evidence held for one call; beyond it neighbouring
	// records of work are folded together, and if that does not help the call's
	// cut attempts are unknown.
	maxItems = 1 << 13
	// maxOrphans bounds the evidence kept that came after its call was settled.
	maxOrphans = 1 << 16
)

// attempt is one attempt with what a pass knows of it.
type attempt struct {
	start history.Start
	end   *history.End // nil while it is open
	items []item       // its evidence, once its call is settled, in order of arrival
}

func (a *attempt) ref() history.Ref { return a.start.Ref }

// cut is the cut that was carried out, nil if there was none.
func (a *attempt) cut() *history.CutDone {
	if a.end == nil {
		return nil
	}
	return a.end.Cut
}

// delivered reports whether nobody cut the attempt and its result was read.
func (a *attempt) delivered() bool {
	return a.end != nil && a.end.Outcome == history.Delivered && a.end.Cut == nil
}

// clean reports whether the attempt shows how the tool works undisturbed. A
// result with isError is no such attempt: it says nothing of units and times.
func (a *attempt) clean() bool {
	return a.delivered() && !a.end.IsError && a.ref().Role != history.Probe
}

// call is one call with its attempts and all evidence that names it.
type call struct {
	ref      history.Ref
	attempts []*attempt // by number
	items    []item
	over     bool // its Call record was read
	outcome  string
	overflow bool // evidence was lost
	queued   bool
	settled  bool
	due      time.Duration
}

func (c *call) begun() time.Duration { return c.attempts[0].start.Begun }

func (c *call) find(number uint32) *attempt {
	i, ok := slices.BinarySearchFunc(c.attempts, number, func(a *attempt, n uint32) int {
		return cmp.Compare(a.ref().Attempt, n)
	})
	if !ok {
		return nil
	}
	return c.attempts[i]
}

// ended reports whether nothing more can start or end in the call. Clean and
// closing calls and probes are issued once, so their end is the call's.
func (c *call) ended() bool {
	if c.ref.Role == history.Load && !c.over {
		return false
	}
	return !slices.ContainsFunc(c.attempts, func(a *attempt) bool { return a.end == nil })
}

// orphans is evidence that came after its call was settled and forgotten. The
// pass that meets it keeps it for the next one, which gives it to its call at
// the start.
type orphans struct {
	byCall map[history.Ref][]item
	seqs   map[int64]bool
	full   bool
}

func (o *orphans) add(ref history.Ref, it item) {
	if len(o.seqs) >= maxOrphans {
		o.full = true
		return
	}
	o.byCall[ref] = append(o.byCall[ref], it)
	o.seqs[it.seq] = true
}

func newOrphans() *orphans {
	return &orphans{byCall: map[history.Ref][]item{}, seqs: map[int64]bool{}}
}

// tracker follows calls through a history until they are settled. What it holds
// is the open calls, and the settled ones for as long as hold says.
type tracker struct {
	// hold is until when evidence for an ended attempt is waited for.
	hold func(*attempt) time.Duration
	// settle takes each call once, its evidence in order of arrival. Calls come
	// in no particular order.
	settle func(*call)
	// stray takes evidence whose call is not held; nil ref: it names none.
	stray func(ref history.Ref, it item)

	units *units
	texts bool
	known *orphans // from an earlier pass
	// claimed are the calls of known that began.
	claimed map[history.Ref]bool

	calls map[history.Ref]*call
	queue dueQueue
	order []*call // by start, settled ones at the front dropped
}

func newTracker(u *units, known *orphans) *tracker {
	return &tracker{units: u, known: known, claimed: map[history.Ref]bool{}, calls: map[history.Ref]*call{}}
}

// record takes every record of a history in order.
func (t *tracker) record(seq int64, rec *history.Record) {
	switch {
	case rec.Start != nil:
		t.begin(rec.Start)
	case rec.End != nil:
		t.end(rec.End)
	case rec.Call != nil:
		if c := t.calls[rec.Call.Ref.Whole()]; c != nil {
			c.over, c.outcome = true, rec.Call.Outcome
			t.enqueue(c)
		}
	case rec.Evidence != nil && !rec.Evidence.Foreign:
		t.evidence(seq, rec.T, rec.Evidence)
	}
	t.release(rec.T)
}

func (t *tracker) begin(s *history.Start) *attempt {
	whole := s.Ref.Whole()
	c := t.calls[whole]
	if c == nil {
		c = &call{ref: whole}
		if t.known != nil {
			if late := t.known.byCall[whole]; len(late) > 0 {
				c.items = slices.Clone(late)
				t.claimed[whole] = true
			}
		}
		t.calls[whole] = c
		t.order = append(t.order, c)
	}
	if a := c.find(s.Ref.Attempt); a != nil {
		return a
	}
	a := &attempt{start: *s}
	c.attempts = append(c.attempts, a)
	slices.SortFunc(c.attempts, func(a, b *attempt) int { return cmp.Compare(a.ref().Attempt, b.ref().Attempt) })
	return a
}

func (t *tracker) end(e *history.End) {
	c := t.calls[e.Ref.Whole()]
	var a *attempt
	if c != nil {
		a = c.find(e.Ref.Attempt)
	}
	if a == nil { // its start was lost
		a = t.begin(&history.Start{Ref: e.Ref, Intended: e.Begun, Begun: e.Begun, Planned: e.Planned})
		c = t.calls[e.Ref.Whole()]
	}
	if a.end == nil {
		a.end = e
	}
	t.enqueue(c)
}

func (t *tracker) evidence(seq int64, at time.Duration, e *history.Evidence) {
	it := newItem(seq, at, e, t.units, t.texts)
	if e.Ref.IsZero() {
		t.stray(history.Ref{}, it)
		return
	}
	if t.known != nil && t.known.seqs[seq] {
		return // its call has it since its start
	}
	c := t.calls[e.Ref.Whole()]
	if c == nil {
		it.text = clip(e.Text)
		t.stray(e.Ref.Whole(), it)
		return
	}
	if len(c.items) >= maxItems {
		if c.items = fold(c.items); len(c.items) > maxItems*3/4 {
			c.overflow = true
			c.items = c.items[:maxItems/2]
		}
	}
	c.items = append(c.items, it)
}

func (t *tracker) enqueue(c *call) {
	if c.queued || !c.ended() {
		return
	}
	c.queued, c.due = true, t.dueOf(c)
	heap.Push(&t.queue, c)
}

func (t *tracker) dueOf(c *call) time.Duration {
	due := time.Duration(0)
	for _, a := range c.attempts {
		due = max(due, t.hold(a))
	}
	return due
}

// release settles the calls that are due before now.
func (t *tracker) release(now time.Duration) {
	for len(t.queue) > 0 && t.queue[0].due < now {
		c := heap.Pop(&t.queue).(*call)
		c.queued = false
		switch due := t.dueOf(c); {
		case !c.ended(): // another attempt began
		case due >= now:
			c.queued, c.due = true, due
			heap.Push(&t.queue, c)
		default:
			t.done(c)
		}
	}
}

func (t *tracker) done(c *call) {
	delete(t.calls, c.ref)
	c.settled = true
	if t.known != nil && len(t.known.byCall[c.ref]) > 0 {
		slices.SortStableFunc(c.items, func(a, b item) int { return cmp.Compare(a.seq, b.seq) })
	}
	t.settle(c)
	c.items = nil
	for len(t.order) > 0 && t.order[0].settled {
		t.order[0] = nil
		t.order = t.order[1:]
	}
}

// finish settles what is left at the end of the history.
func (t *tracker) finish() {
	left := make([]*call, 0, len(t.calls))
	for _, c := range t.calls {
		left = append(left, c)
	}
	slices.SortFunc(left, func(a, b *call) int { return a.ref.Compare(b.ref) })
	for _, c := range left {
		t.done(c)
	}
}

// oldest is the begin of the first call that is not settled yet.
func (t *tracker) oldest() (time.Duration, bool) {
	if len(t.order) == 0 {
		return 0, false
	}
	return t.order[0].begun(), true
}

// dueQueue is a heap of calls, the one due first on top.
type dueQueue []*call

func (q dueQueue) Len() int { return len(q) }
func (q dueQueue) Less(i, j int) bool {
	if q[i].due != q[j].due {
		return q[i].due < q[j].due
	}
	return q[i].ref.Compare(q[j].ref) < 0
}
func (q dueQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *dueQueue) Push(x any)   { *q = append(*q, x.(*call)) }
func (q *dueQueue) Pop() any {
	old := *q
	c := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return c
}
