package flood

import (
	"context"
	"sync"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// sampler records mcpflood's own state once a second.
type sampler struct {
	end  context.CancelFunc
	done sync.WaitGroup
}

// startSampler calls giveUp when the record cannot be written any more.
func (r *run) startSampler(giveUp func()) *sampler {
	ctx, cancel := context.WithCancel(context.Background())
	s := &sampler{end: cancel}
	s.done.Go(func() {
		use := startUsage()
		for sleep(ctx, time.Second) {
			r.sample(use)
			if r.history.Err() != nil {
				giveUp()
			}
		}
		r.sample(use)
	})
	return s
}

func (s *sampler) stop() {
	s.end()
	s.done.Wait()
}

func (r *run) sample(use *usage) {
	if n := r.dropped.Swap(0); n > 0 {
		r.droppedKept.Add(n)
		r.history.Append(history.Record{Dropped: &history.Dropped{Count: int(n), Reason: "max-streams"}})
	}
	open, held := r.progress.streams()
	cpu, rss := use.read()
	rec := history.Driver{CPU: cpu, RSS: rss, Streams: open, OpenFiles: use.files + open + held}
	r.history.Append(history.Record{Driver: &rec})
}

// startCanary probes beside the load; the function ends it.
func (r *run) startCanary(ctx context.Context) func() {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { r.client.Canary(ctx, r.server.Cheapest, r.clock, r.history) })
	return func() { cancel(); done.Wait() }
}
