package oracle

import (
	"slices"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// misfits is evidence of a call that belongs to no attempt of it.
type misfits struct {
	ambiguous []item // names the call only, and several attempts could be meant
	unplaced  []item // names an attempt that never was
}

// distribute hands the call's evidence to its attempts, by id and trace, then
// by marker.
func (p *params) distribute(c *call, m *misfits) {
	if len(c.attempts) == 1 {
		if a := c.attempts[0]; !slices.ContainsFunc(c.items, func(it item) bool { return it.attempt != 0 && it.attempt != a.ref().Attempt }) {
			a.items = c.items
			return
		}
	}
	for _, it := range c.items {
		a := c.find(it.attempt)
		switch {
		case it.attempt != 0 && a != nil:
			a.items = append(a.items, it)
		case it.attempt != 0:
			if m != nil {
				m.unplaced = append(m.unplaced, it)
			}
		default:
			if a = p.marked(c, &it); a != nil {
				a.items = append(a.items, it)
			} else if m != nil {
				m.ambiguous = append(m.ambiguous, it)
			}
		}
	}
}

// marked is the attempt that evidence with only a marker belongs to: the one
// attempt of its call that could be at work at its time. Several, or none: nil.
func (p *params) marked(c *call, it *item) *attempt {
	if len(c.attempts) == 1 {
		return c.attempts[0]
	}
	v := p.sources.get(it.source).span(it)
	v.Lo -= p.widen
	v.Hi += p.widen
	var found *attempt
	for _, a := range c.attempts {
		if a.start.Begun > v.Hi || p.latestWork(a) < v.Lo {
			continue
		}
		if found != nil {
			return nil
		}
		found = a
	}
	return found
}

// latestWork is until when an attempt may be at work, for all we know of the
// client's side.
func (p *params) latestWork(a *attempt) time.Duration {
	if a.end == nil {
		return 1<<63 - 1
	}
	if c := a.cut(); c != nil && a.end.Outcome != history.Delivered {
		return c.C1 + p.run.Watch
	}
	switch a.end.Outcome {
	case history.Delivered, history.Refused, history.MoreInput, history.TaskHandle:
		return a.end.Ended
	case history.Failed:
		if a.end.Sent == 0 {
			return a.end.Ended
		}
	}
	return a.end.Ended + p.run.Watch
}
