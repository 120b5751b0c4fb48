package oracle

import (
	"container/heap"

	"github.com/mcpflood/mcpflood/history"
)

// order hands judged calls on sorted by number, as soon as it is sure that no
// lower number can come: calls begin nearly in order, and pass 1 measured how
// nearly.
type order struct {
	disorder uint64
	highest  uint64
	out      func([]verdictOf)
	open     map[uint64]bool // begun and not judged
	ready    map[uint64][]verdictOf
	numbers  numberHeap // of all calls in open and ready
}

func newOrder(disorder uint64, out func([]verdictOf)) *order {
	return &order{disorder: disorder, out: out, open: map[uint64]bool{}, ready: map[uint64][]verdictOf{}}
}

// begin notes an attempt's start.
func (o *order) begin(ref history.Ref) {
	if o.open[ref.Call] || o.ready[ref.Call] != nil {
		return
	}
	o.open[ref.Call] = true
	heap.Push(&o.numbers, ref.Call)
	o.highest = max(o.highest, ref.Call)
}

// done takes a call's verdicts.
func (o *order) done(number uint64, v []verdictOf) {
	if !o.open[number] { // its start was lost
		heap.Push(&o.numbers, number)
	}
	delete(o.open, number)
	o.ready[number] = v
	for len(o.numbers) > 0 && o.numbers[0]+o.disorder <= o.highest {
		if !o.pop() {
			return
		}
	}
}

// pop hands on the lowest call if it is judged.
func (o *order) pop() bool {
	n := o.numbers[0]
	v, ok := o.ready[n]
	if !ok {
		return false
	}
	heap.Pop(&o.numbers)
	delete(o.ready, n)
	o.out(v)
	return true
}

// flush hands on all that is left at the end of the history.
func (o *order) flush() {
	for len(o.numbers) > 0 {
		if !o.pop() {
			heap.Pop(&o.numbers)
		}
	}
}

type numberHeap []uint64

func (h numberHeap) Len() int           { return len(h) }
func (h numberHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h numberHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *numberHeap) Push(x any)        { *h = append(*h, x.(uint64)) }
func (h *numberHeap) Pop() any {
	old := *h
	n := old[len(old)-1]
	*h = old[:len(old)-1]
	return n
}
