package target

import (
	"fmt"
	"io"
	"sync/atomic"
)

// counters are what /metrics shows of one tool.
type counters struct {
	inFlight  atomic.Int64
	steps     atomic.Int64
	cancelled atomic.Int64
	finished  atomic.Int64
	effects   atomic.Int64
}

// metricsType is the content type of the Prometheus text format.
const metricsType = "text/plain; version=0.0.4; charset=utf-8"

// write prints the counters in the Prometheus text format. Every series is
// there from the start, so that a scraper can check for it before the load.
func (c *counters) write(w io.Writer, tool string) error {
	for _, m := range []struct {
		name, kind, help string
		value            int64
	}{
		{"target_in_flight", "gauge", "Tool calls taken on and not yet ended, whether or not their client is still there.", c.inFlight.Load()},
		{"target_steps_total", "counter", "Steps of work done.", c.steps.Load()},
		{"target_cancelled_total", "counter", "Calls whose work stopped because their stream was closed.", c.cancelled.Load()},
		{"target_finished_total", "counter", "Calls that ran to their end.", c.finished.Load()},
		{"target_effects_total", "counter", "E-mails sent to the team.", c.effects.Load()},
	} {
		if _, err := fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s{tool=%q} %d\n",
			m.name, m.help, m.name, m.kind, m.name, tool, m.value); err != nil {
			return err
		}
	}
	return nil
}
