package flood

import (
	"sync"
	"time"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/drive"
)

// Snapshot is a run as it stands, for a live view. It is provisional: what the
// server did is judged at the end, from the record.
type Snapshot struct {
	Stage     string // clean, load, drain, settle, closing
	Elapsed   time.Duration
	InStage   time.Duration
	Duration  time.Duration // planned; 0: by calls
	Calls     int64
	Planned   int // calls; 0: by duration
	Open      int64
	Held      int64
	Attempts  int64
	Delivered int64
	Failed    int64
	Cuts      int64
	Reissues  int64
	Dropped   int64
	Work      int64 // records of the witnesses, by kind
	Stops     int64
	Effects   int64
	Trouble   string // what is wrong with a witness
}

// progress collects snapshots and hands them out once a second.
type progress struct {
	r *run

	mu     sync.Mutex
	caller *drive.Caller
	name   string
	since  time.Duration

	end  chan struct{}
	done sync.WaitGroup
}

func (r *run) newProgress() *progress {
	p := &progress{r: r, end: make(chan struct{})}
	if r.hooks.Progress == nil {
		return p
	}
	p.done.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.hooks.Progress(p.snapshot())
			case <-p.end:
				return
			}
		}
	})
	return p
}

func (p *progress) stop() {
	close(p.end)
	p.done.Wait()
}

func (p *progress) stage(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.name, p.since = name, p.r.clock.Now()
}

func (p *progress) follow(c *drive.Caller) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.caller = c
}

func (p *progress) streams() (open, held int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.caller == nil {
		return 0, 0
	}
	live := p.caller.Live()
	return int(live.Open.Load()), int(live.Held.Load())
}

func (p *progress) snapshot() Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.r.clock.Now()
	s := Snapshot{Stage: p.name, Elapsed: now, InStage: now - p.since, Duration: p.r.cfg.Duration, Planned: p.r.cfg.Calls, Dropped: p.r.droppedTotal()}
	if p.caller != nil {
		live := p.caller.Live()
		s.Calls, s.Open, s.Held, s.Attempts = live.Calls.Load(), live.Open.Load(), live.Held.Load(), live.Attempts.Load()
		s.Delivered, s.Failed, s.Cuts, s.Reissues = live.Delivered.Load(), live.Failed.Load(), live.Cuts.Load(), live.Reissues.Load()
	}
	for _, e := range p.r.eyes {
		stats := e.Stats()
		count := func(k history.Kind) int64 { c := stats.Kinds[k]; return c.Attributed + c.Unattributed }
		s.Work += count(history.Work)
		s.Stops += count(history.Stop)
		s.Effects += count(history.Effect)
		if stats.Trouble != "" {
			s.Trouble = e.declared.Name + ": " + stats.Trouble
		}
	}
	return s
}
