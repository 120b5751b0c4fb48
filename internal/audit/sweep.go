package audit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mcpflood/mcpflood/flood"
	"github.com/mcpflood/mcpflood/history"
)

// Sweep is the director of a sweep. The zero value is not usable: set Repeats.
type Sweep struct {
	Repeats int // attempts a cell

	server  server
	normal  time.Duration // first event of an uncut call
	skipped map[Key]string
	ended   []ended // the waves so far
}

// ended is a wave whose calls are cut.
type ended struct {
	phase history.Phase
	at    time.Duration
}

// MaxRepeats bounds the attempts a cell.
const MaxRepeats = 100

// gateSlack is how much slower than normal a first event may be at a gate: as
// much again, and this much beyond it.
const gateSlack = 2 * time.Second

// Direct makes the calls of a sweep. A server that fails a gate ends it; what
// was not done is skipped with the reason.
func (s *Sweep) Direct(ctx context.Context, st *flood.Stage) error {
	s.skipped = map[Key]string{}
	if err := s.meet(ctx, st); err != nil {
		return err
	}
	for i, phase := range phases {
		if err := s.gate(ctx, st); err != nil {
			if ctx.Err() == nil {
				s.skip(phases[i:], fmt.Sprintf("server down since %s", st.Now().Round(100*time.Millisecond)))
			}
			return fmt.Errorf("the sweep stops before the wave %s%s: %w", phase, s.suspects(st), err)
		}
		st.Notice("wave %d of %d: %s", i+1, len(phases), phase)
		if err := s.wave(ctx, st, phase); err != nil {
			return err
		}
		s.ended = append(s.ended, ended{phase, st.Now()})
	}
	return nil
}

// suspects names the waves whose watch holds this moment: one of their cuts may
// have done the damage.
func (s *Sweep) suspects(st *flood.Stage) string {
	var names []string
	for _, w := range s.ended {
		if w.at+st.Watch() >= st.Now() {
			names = append(names, w.phase.String())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", while the cuts of " + strings.Join(names, ", ") + " are watched"
}

// meet finds out how the server answers: one uncut call of each form.
func (s *Sweep) meet(ctx context.Context, st *flood.Stage) error {
	ends := map[string]<-chan history.End{}
	first := make(chan time.Duration, 1)
	begun := st.Now()
	for _, form := range forms {
		act := flood.Act{Variant: variant(form)}
		if form == FormSSE {
			act.First = func(at time.Duration) { first <- at - begun }
		}
		ends[form] = st.Start(st.Ref(), act)
	}
	s.isolation(ctx, st)
	forms := map[string]history.End{}
	for form, end := range ends {
		select {
		case forms[form] = <-end:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.server = server{streams: forms[FormSSE].Form == "sse", json: forms[FormJSON].Form == "json", events: forms[FormSSE].Events}
	select {
	case s.normal = <-first:
		return nil
	default:
		return fmt.Errorf("an uncut call was not answered: %s", forms[FormSSE].Error)
	}
}

// isolation lets another client cancel an uncut call of ours by its id, once the
// call has begun to answer, or a good part of a clean call later. The oracle
// judges by the record what came of it.
func (s *Sweep) isolation(ctx context.Context, st *flood.Stage) {
	begun := make(chan time.Duration, 1)
	ref := st.Ref()
	end := st.Start(ref, flood.Act{Probe: history.ProbeCancelAny, First: func(at time.Duration) { begun <- at }})
	timer := time.NewTimer(st.Clean().Median / 3)
	defer timer.Stop()
	select {
	case <-begun:
	case <-timer.C:
	case <-end:
		return // it ended by itself
	case <-ctx.Done():
		return
	}
	if err := st.CancelByOther(ctx, ref); err != nil {
		st.Notice("the isolation probe could not be made: %v", err)
	}
}

// gate holds a wave back until the server is well: its cheapest answer comes,
// and an uncut call begins to answer about as fast as before.
func (s *Sweep) gate(ctx context.Context, st *flood.Stage) error {
	if err := st.Probe(ctx); err != nil {
		return fmt.Errorf("it answers nothing any more: %w", err)
	}
	first := make(chan time.Duration, 1)
	end := st.Start(st.Ref(), flood.Act{First: func(at time.Duration) { first <- at }})
	limit := time.NewTimer(2*s.normal + gateSlack)
	defer limit.Stop()
	select {
	case <-first:
		return nil
	case e := <-end:
		select {
		case <-first:
			return nil
		default:
			return fmt.Errorf("an uncut call fails: %s", e.Error)
		}
	case <-limit.C:
		return fmt.Errorf("an uncut call has no first event after %s, where %s was normal", 2*s.normal+gateSlack, s.normal.Round(time.Millisecond))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wave breaks calls at one phase, in all styles, forms and repeats at once. It
// returns when all are cut; calls that go on after an open cut are left to it.
func (s *Sweep) wave(ctx context.Context, st *flood.Stage, phase history.Phase) error {
	var waiting []<-chan history.End
	for _, form := range forms {
		for _, style := range styles {
			k := Key{form, phase, style}
			if why := s.server.cannot(k); why != "" {
				s.skipped[k] = why
				continue
			}
			for range s.Repeats {
				ref := st.Ref()
				cut, err := k.cut(st.Seed(), ref, st.Clean())
				if err != nil {
					return err
				}
				end := st.Start(ref, flood.Act{Cut: &cut, Variant: variant(form)})
				if style.Class() != history.ClassOpen {
					waiting = append(waiting, end)
				}
			}
		}
	}
	limit := time.NewTimer(2*st.Clean().Median + gateSlack)
	defer limit.Stop()
	for _, end := range waiting {
		select {
		case <-end:
		case <-limit.C:
			return nil // the gate of the next wave tells
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (s *Sweep) skip(rest []history.Phase, why string) {
	for _, phase := range rest {
		for _, form := range forms {
			for _, style := range styles {
				k := Key{form, phase, style}
				if own := s.server.cannot(k); own != "" {
					s.skipped[k] = own
					continue
				}
				s.skipped[k] = why
			}
		}
	}
}
