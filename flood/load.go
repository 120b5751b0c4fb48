package flood

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/drive"
	"github.com/mcpflood/mcpflood/internal/load"
)

// cleanCalls makes n uncut calls at once and returns how they ended.
func (r *run) cleanCalls(ctx context.Context, role history.Role, n int, caller *drive.Caller) []history.End {
	out := make([]history.End, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if _, end := caller.Call(history.Ref{Role: role, Call: uint64(i + 1)}, r.clock.Now()); end != nil { // nil: the run was ended first
				out[i] = *end
			}
		})
	}
	stop := context.AfterFunc(ctx, caller.Drop)
	defer stop()
	wg.Wait()
	return out
}

// load runs the load itself and everything after it, and returns why it ended.
func (r *run) load(ctx, inner context.Context) string {
	caller := r.caller(history.Load, r.timeout())
	r.progress.follow(caller)
	r.stage("load")
	var calls sync.WaitGroup
	reason := ""
	if r.direct != nil {
		reason = r.runDirector(ctx, caller, &calls)
	} else {
		over := r.startLoad(ctx, caller, &calls)
		reason = r.awaitLoad(ctx, over)
	}

	r.stage("drain")
	caller.NoReissues()
	drained := make(chan struct{})
	go func() { calls.Wait(); close(drained) }()
	drain := time.NewTimer(r.drain())
	defer drain.Stop()
	select {
	case <-drained:
	case <-drain.C:
	case <-ctx.Done():
		reason = reasonInterrupted
	}
	caller.Drop()
	<-drained

	r.stage("settle")
	if last := caller.LastCut(); last > 0 {
		sleep(inner, last+r.cfg.Watch+r.lag()-r.clock.Now())
	}
	caller.WaitHeld()
	if reason != reasonInterrupted && ctx.Err() == nil {
		r.closing(ctx)
	}
	return reason
}

// awaitLoad returns when no call will start any more.
func (r *run) awaitLoad(ctx context.Context, over <-chan string) string {
	select {
	case reason := <-over:
		return reason
	case <-ctx.Done():
		return reasonInterrupted
	}
}

// closing makes clean calls after the last watch window: they show that a
// source is still read, so that silence before them counts.
func (r *run) closing(ctx context.Context) {
	if r.cfg.Clean == 0 || len(r.eyes) == 0 {
		return
	}
	r.stage("closing")
	caller := r.caller(history.Closing, r.timeout())
	r.cleanCalls(ctx, history.Closing, r.cfg.Clean, caller)
	r.awaitEvidence(ctx, r.lag()+2*time.Second, func() bool { return true })
}

// startLoad starts the executor. The channel tells once why no call starts any
// more; calls counts those that run.
func (r *run) startLoad(ctx context.Context, caller *drive.Caller, calls *sync.WaitGroup) <-chan string {
	over := make(chan string, 3)
	why := "calls"
	if r.cfg.Duration > 0 {
		why = "duration"
		time.AfterFunc(r.cfg.Duration, func() { over <- "duration" })
	}
	call := func(i int, intended time.Duration) (failed bool) {
		done, _ := caller.Call(history.Ref{Call: uint64(i + 1)}, intended)
		return done.Outcome == "failed"
	}
	if r.cfg.Rate == "" {
		model := load.Closed{Streams: r.cfg.Streams, Ramp: r.cfg.Ramp, Duration: r.cfg.Duration, Count: r.cfg.Calls}
		calls.Go(func() {
			model.Run(ctx, r.clock, func(ctx context.Context, i int, intended time.Duration) {
				if r.cfg.Calls > 0 && i == r.cfg.Calls-1 {
					over <- "calls"
				}
				if call(i, intended) {
					sleep(ctx, failurePause)
				}
			})
		})
		return over
	}
	rate, _ := ParseRate(r.cfg.Rate) // validated
	model := load.Open{Rate: rate, Ramp: r.cfg.Ramp, Duration: r.cfg.Duration, Count: r.cfg.Calls}
	calls.Go(func() {
		r.runOpen(ctx, model, calls, call)
		over <- why
	})
	return over
}

// failurePause keeps a slot whose calls fail at once from becoming a storm.
const failurePause = 100 * time.Millisecond

func (r *run) runOpen(ctx context.Context, model load.Open, calls *sync.WaitGroup, call func(int, time.Duration) bool) {
	var open atomic.Int64
	model.Run(ctx, r.clock, func(i int, intended time.Duration) bool {
		if open.Load() >= int64(r.cfg.MaxStreams) {
			r.dropped.Add(1)
			return false
		}
		open.Add(1)
		calls.Go(func() {
			defer open.Add(-1)
			call(i, intended)
		})
		return true
	})
}

// timeout is the longest life of an attempt under load.
func (r *run) timeout() time.Duration {
	if r.cfg.Timeout > 0 {
		return r.cfg.Timeout
	}
	return max(30*time.Second, 10*r.budget.CleanMedian)
}

func (r *run) drain() time.Duration {
	if r.cfg.Drain > 0 {
		return r.cfg.Drain
	}
	return min(2*r.budget.CleanMedian, r.cfg.Watch)
}

// spareFiles are descriptors that are not streams: files, witnesses, canary.
const spareFiles = 200

// checkFit refuses a plan that cannot be held by this process, and warns of
// what will not work as it looks.
func (r *run) checkFit() error {
	for _, w := range r.plan.Warnings(r.clean()) {
		r.notice("warning: %s", w)
	}
	limit := openFileLimit() - spareFiles
	if r.cfg.Rate != "" && r.cfg.MaxStreams == 0 {
		r.cfg.MaxStreams = max(1, min(defaultMaxStreams, limit-int(r.heldAtOnce())))
	}
	streams := r.cfg.Streams
	if r.cfg.Rate != "" {
		streams = r.cfg.MaxStreams
	}
	held := int(r.heldAtOnce())
	if streams+held <= limit {
		return nil
	}
	text := fmt.Sprintf("this plan needs up to %d sockets (%d streams, and about %d that silent cuts hold for --watch %s), but the process may open %d files", streams+held, streams, held, r.cfg.Watch, limit+spareFiles)
	if held > 0 {
		return errors.New(text + ": use a shorter --watch, a smaller share of vanish and stall, or fewer streams")
	}
	return errors.New(text + ": use fewer streams, or raise the limit with ulimit -n")
}

// planSamples is how many decisions of the plan are looked at to foresee a run.
const planSamples = 2000

// heldAtOnce estimates how many sockets silent cuts hold at the same time.
func (r *run) heldAtOnce() float64 {
	clean := r.clean()
	var silent, life float64
	for i := range planSamples {
		cut, ok := r.plan.Cut(history.Ref{Call: uint64(i + 1), Attempt: 1}, clean)
		if !ok {
			life += clean.Median.Seconds()
			continue
		}
		life += min(clean.Median, cut.Trigger.Expected(clean)).Seconds()
		if cut.Style.Class() == history.ClassSilent {
			silent++
		}
	}
	if silent == 0 {
		return 0
	}
	rate := float64(r.cfg.Streams) / max(life/planSamples, 0.005)
	if r.cfg.Rate != "" {
		rate, _ = ParseRate(r.cfg.Rate)
	}
	holds := rate * silent / planSamples
	window := (r.cfg.Watch + r.lag()).Seconds()
	if r.cfg.Duration > 0 {
		window = min(window, r.cfg.Duration.Seconds())
	}
	total := holds * window
	if r.cfg.Calls > 0 {
		total = min(total, float64(r.cfg.Calls*(1+r.cfg.Reissue))*silent/planSamples)
	}
	return total
}
