package flood

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/oracle"
	"github.com/mcpflood/mcpflood/results"
)

const (
	// evidenceWait is how long the evidence of the clean calls may take.
	evidenceWait = 5 * time.Second
	// cleanTimeout bounds a clean call where the user set no --timeout: nothing
	// is known yet of how long the tool takes.
	cleanTimeout = 30 * time.Minute
)

// calibrate makes the clean calls and fixes the budget from the record of them.
func (r *run) calibrate(ctx context.Context) error {
	r.baseline(ctx)
	r.stage("clean")
	timeout := r.cfg.Timeout
	if timeout == 0 {
		timeout = cleanTimeout
	}
	caller := r.caller(history.Clean, timeout)
	r.progress.follow(caller)
	ends := r.cleanCalls(ctx, history.Clean, r.cfg.Clean, caller)
	if ctx.Err() != nil {
		return &kindError{ErrInterrupted, "interrupted during the clean calls; nothing was judged"}
	}
	r.awaitEvidence(ctx, evidenceWait, func() bool { return r.blind() == "" })
	if err := r.history.Flush(); err != nil {
		return err
	}
	cal, err := oracle.Calibrate(r.source())
	if err != nil {
		return err
	}
	if err := r.cleanWorked(ends); err != nil {
		return err
	}
	if why := r.blind(); why != "" {
		return &kindError{ErrNoEvidence, why + "\nfix the patterns above, or leave them out"}
	}
	r.declare()
	r.budget = cal.Budget
	if r.cfg.StopWithin > 0 {
		r.budget.StopWithin, r.budget.Given = r.cfg.StopWithin, true
	}
	r.history.Append(history.Record{Budget: &r.budget})
	r.manifest.Budget = &r.budget
	return results.WriteManifest(r.cfg.Dir, r.manifest)
}

func (r *run) source() oracle.Source {
	path := results.HistoryPath(r.cfg.Dir)
	return oracle.From(func() (*history.Reader, error) { return history.Open(path) })
}

// cleanWorked turns clean calls that did not work into the server's words.
func (r *run) cleanWorked(ends []history.End) error {
	bad, isError := 0, 0
	var first *history.End
	for i := range ends {
		e := &ends[i]
		switch {
		case e.Outcome != history.Delivered:
			bad++
		case e.IsError:
			isError++
		default:
			continue
		}
		if first == nil || first.Outcome == history.Delivered && e.Outcome != history.Delivered {
			first = e
		}
	}
	switch {
	case bad == 0 && (isError == 0 || isError < len(ends)):
		return nil
	case first.Status == 401 || first.Status == 403:
		return fmt.Errorf("the server refuses the call (status %d): give its token with --bearer TOKEN", first.Status)
	case bad > 0:
		return fmt.Errorf("%d of %d clean calls of %s failed, so nothing can be measured: %s", bad, len(ends), r.tool.Name, results.Visible(first.Error))
	}
	return fmt.Errorf("every clean call of %s ended in a tool error (isError): %s", r.tool.Name, results.Visible(first.Error))
}
