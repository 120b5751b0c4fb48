package oracle

import (
	"fmt"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// Limits of judging section 6, driver.limited.
const (
	lateLimit = 50 * time.Millisecond
	busyCPU   = 0.9
	busyFor   = 5 // records of the driver's state, one a second
	busyLate  = 20 * time.Millisecond
)

// driverWatch watches our own state.
type driverWatch struct {
	total    Driver
	pacing   spread
	cutting  spread
	busy     int
	wasBusy  bool
	troubles string
}

func (d *driverWatch) state(r *history.Driver) {
	s := &d.total
	s.CPUMax = max(s.CPUMax, r.CPU)
	s.OpenFiles = max(s.OpenFiles, r.OpenFiles)
	s.Streams = max(s.Streams, r.Streams)
	if r.CPU > busyCPU {
		d.busy++
	} else {
		d.busy = 0
	}
	d.wasBusy = d.wasBusy || d.busy >= busyFor
	if d.troubles == "" {
		d.troubles = r.Trouble
	}
}

func (d *driverWatch) start(s *history.Start) { d.pacing.add(int64(s.Begun - s.Intended)) }

func (d *driverWatch) cut(c *history.CutDone) { d.cutting.add(int64(c.C0 - c.Due)) }

func (d *driverWatch) sum(stopWithin time.Duration, lost int64) Driver {
	s := d.total
	pacing, cutting := time.Duration(d.pacing.quantile(0.99)), time.Duration(d.cutting.quantile(0.99))
	s.LatenessP99 = max(pacing, cutting)
	limit := max(lateLimit, stopWithin/4)
	switch {
	case d.troubles != "":
		s.Why = d.troubles
	case lost > 0:
		s.Why = fmt.Sprintf("%d records could not be written to the history", lost)
	case pacing > limit:
		s.Why = fmt.Sprintf("1 %% of the attempts began more than %s late", text(pacing))
	case cutting > limit:
		s.Why = fmt.Sprintf("1 %% of the cuts were made more than %s late", text(cutting))
	case d.wasBusy && s.LatenessP99 > busyLate:
		s.Why = fmt.Sprintf("mcpflood used over 90 %% of its CPUs for %d s and was up to %s late", busyFor, text(s.LatenessP99))
	}
	s.Limited = s.Why != ""
	return s
}
