package flood

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mcpflood/mcpflood/chaos"
	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/drive"
	"github.com/mcpflood/mcpflood/internal/mcp"
	"github.com/mcpflood/mcpflood/internal/probe"
)

// Director makes the calls of a directed run, one by one, and returns when it
// will make no more; calls that still run are drained. An error ends the run
// with that reason in its record; what was done is judged all the same.
type Director func(ctx context.Context, s *Stage) error

// Act is one call of a directed run.
type Act = drive.Act

// Stage is where a director makes its calls. Its methods may be called from any
// goroutine until the director has returned.
type Stage struct {
	r      *run
	caller *drive.Caller
	calls  *sync.WaitGroup

	mu   sync.Mutex
	next uint64
}

// Clean is what the clean calls gave.
func (s *Stage) Clean() chaos.Clean { return s.r.clean() }

// Budget is what the clean calls fixed.
func (s *Stage) Budget() history.Budget { return s.r.budget }

// Watch is how long each cut attempt is watched.
func (s *Stage) Watch() time.Duration { return s.r.cfg.Watch }

// Seed is the run's seed.
func (s *Stage) Seed() uint64 { return s.r.seed }

// Now is the run's time.
func (s *Stage) Now() time.Duration { return s.r.clock.Now() }

// Notice prints a line for people.
func (s *Stage) Notice(format string, args ...any) { s.r.notice(format, args...) }

// Ref reserves the name of the next call: its first attempt.
func (s *Stage) Ref() history.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	return history.Ref{Call: s.next, Attempt: 1}
}

// Start makes a call on a goroutine of its own. The channel gives how its last
// attempt ended, as the client saw it then.
func (s *Stage) Start(ref history.Ref, act Act) <-chan history.End {
	done := make(chan history.End, 1)
	s.calls.Go(func() {
		_, end := s.caller.Act(ref, s.r.clock.Now(), act)
		done <- *end
	})
	return done
}

// Probe asks the server for its cheapest answer on a fresh connection.
func (s *Stage) Probe(ctx context.Context) error {
	call := mcp.Call{ID: mcp.StringID(s.r.nonce.ID(history.Ref{Role: history.Probe, Call: uint64(s.r.clock.Now()) % (1 << 39), Attempt: 1})), Method: s.r.server.Cheapest}
	a, err := s.r.client.AskWithin(ctx, probe.CanaryTimeout, call)
	switch {
	case err != nil:
		return err
	case a.Err != nil:
		return fmt.Errorf("status %d: %w", a.Status, a.Err)
	}
	return nil
}

// CancelByOther posts notifications/cancelled for an attempt's id as another
// client would: on a connection of its own and without our credentials.
func (s *Stage) CancelByOther(ctx context.Context, victim history.Ref) error {
	client := *s.r.client
	client.Headers = nil
	return client.Tell(ctx, probe.CanaryTimeout, mcp.MethodCancelled, map[string]any{"requestId": s.r.nonce.ID(victim), "reason": "another client"})
}

func (r *run) runDirector(ctx context.Context, caller *drive.Caller, calls *sync.WaitGroup) string {
	if err := r.direct(ctx, &Stage{r: r, caller: caller, calls: calls}); err != nil {
		if ctx.Err() != nil {
			return reasonInterrupted
		}
		r.notice("%v", err)
		return "stopped: " + err.Error()
	}
	return "calls"
}
