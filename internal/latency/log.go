package latency

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Bounds of a Log.
const (
	// MaxIntervals is how many intervals a run is divided into at most.
	MaxIntervals = 64
	// FirstInterval is the length of an interval of a short run. A longer run's
	// are twice, four times, … as long.
	FirstInterval = time.Second
)

// CensoredSuffix marks the tag under which a Log keeps the lower bounds of a
// time's censored samples: the format has no place for them.
const CensoredSuffix = ".censored"

// Log holds times by name and by the interval of the run they belong to. The
// order of samples plays no part, and memory does not grow with the length of
// the run. The zero value is ready for use, not concurrently.
type Log struct {
	width time.Duration // of an interval, 0: none recorded yet
	names map[string][]Recorder
	end   time.Duration
}

// Record adds a sample that was complete at run time at.
func (l *Log) Record(name string, at, d time.Duration) { l.cell(name, at).Record(d) }

// Censor adds a censored sample.
func (l *Log) Censor(name string, at, d time.Duration) { l.cell(name, at).Censor(d) }

func (l *Log) cell(name string, at time.Duration) *Recorder {
	at = max(at, 0)
	if l.names == nil {
		l.names, l.width = map[string][]Recorder{}, FirstInterval
	}
	for at >= l.width*MaxIntervals {
		l.widen()
	}
	l.end = max(l.end, at)
	if l.names[name] == nil {
		l.names[name] = make([]Recorder, MaxIntervals)
	}
	return &l.names[name][at/l.width]
}

// widen doubles the intervals: two neighbours become one.
func (l *Log) widen() {
	l.width *= 2
	for name, old := range l.names {
		merged := make([]Recorder, MaxIntervals)
		for i := range old {
			merged[i/2].Merge(&old[i])
		}
		l.names[name] = merged
	}
}

// Write writes the log in version 1.3 of the HdrHistogram log format: values in
// nanoseconds, the largest of an interval in milliseconds, one line an interval
// and name, in the order of time, then name. started is the wall time of the
// run's start.
func (l *Log) Write(w io.Writer, started time.Time) error {
	buf := bufio.NewWriter(w)
	lw := hdr.NewHistogramLogWriter(buf)
	header := []func() error{
		func() error {
			return lw.OutputComment("[values in nanoseconds, stamps in seconds since the start of the run]")
		},
		lw.OutputLogFormatVersion,
		func() error { return lw.OutputStartTime(started.UnixMilli()) },
		lw.OutputLegend,
	}
	for _, f := range header {
		if err := f(); err != nil {
			return fmt.Errorf("latency: writing the interval log: %w", err)
		}
	}
	names := slices.Sorted(maps.Keys(l.names))
	for i := range MaxIntervals {
		for _, name := range names {
			r := &l.names[name][i]
			if err := l.line(lw, i, name, &r.exact); err != nil {
				return err
			}
			if err := l.line(lw, i, name+CensoredSuffix, &r.censored); err != nil {
				return err
			}
		}
	}
	if err := buf.Flush(); err != nil {
		return fmt.Errorf("latency: writing the interval log: %w", err)
	}
	return nil
}

func (l *Log) line(lw *hdr.HistogramLogWriter, i int, name string, t *tally) error {
	if t.n == 0 {
		return nil
	}
	from := l.width * time.Duration(i)
	t.hist.SetTag(tagText(name))
	t.hist.SetStartTimeMs(from.Milliseconds())
	t.hist.SetEndTimeMs(min(from+l.width, max(l.end, from)+time.Millisecond).Milliseconds())
	if err := lw.OutputIntervalPackedHistogram(t.hist); err != nil {
		return fmt.Errorf("latency: writing the interval log: %s: %w", name, err)
	}
	return nil
}

// tagText takes out what the format uses between fields.
func tagText(name string) string {
	return strings.Map(func(r rune) rune {
		if r == ',' || r <= ' ' {
			return '_'
		}
		return r
	}, name)
}
