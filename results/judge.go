package results

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/metric"
	"github.com/mcpflood/mcpflood/internal/oracle"
)

// Options say how a history is judged. What is left nil comes from the manifest
// of the run.
type Options struct {
	Thresholds []string
	Prices     *Prices
	Strict     *bool
	// Attempts gets every judged load attempt as a line of JSON ([Attempt]),
	// sorted by call and attempt; nil: nobody asks.
	Attempts io.Writer
}

// Judge judges the history of a run directory and writes summary.json,
// report.txt and times.hlog. The same history, manifest and options give the
// same bytes. Memory does not grow with the length of the run.
//
// A directory without a manifest, as kill -9 may leave it, is judged by its
// history alone.
func Judge(dir string, o Options) (*Summary, error) {
	m, err := ReadManifest(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if o.Thresholds == nil {
		o.Thresholds = m.Thresholds
	}
	if o.Prices == nil {
		o.Prices = &m.Prices
	}
	if o.Strict == nil {
		o.Strict = &m.Strict
	}
	open := func() (*history.Reader, error) { return history.Open(HistoryPath(dir)) }
	j, err := judge(oracle.From(open), m, o)
	if err != nil {
		return nil, err
	}
	return j.summary, j.write(dir)
}

// judged is what one judgement gives.
type judged struct {
	summary *Summary
	feed    *feeder
	run     history.Run
}

func (j *judged) write(dir string) error {
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{TimesFile, func(w io.Writer) error { return j.feed.log.Write(w, j.run.Started) }},
		{ReportFile, func(w io.Writer) error { _, err := io.WriteString(w, j.summary.Text()); return err }},
		{SummaryFile, j.summary.WriteJSON},
	} {
		if err := WriteFile(filepath.Join(dir, f.name), f.write); err != nil {
			return err
		}
	}
	return nil
}

// judge is Judge without a directory.
func judge(open oracle.Source, m Manifest, o Options) (*judged, error) {
	thresholds, err := parseThresholds(o.Thresholds)
	if err != nil {
		return nil, err
	}
	if err := o.Prices.Validate(); err != nil {
		return nil, err
	}
	run, err := firstRecord(open)
	if err != nil {
		return nil, err
	}
	feed, whole := newFeeder(run, *o.Prices, thresholds), newLedger(*o.Prices)
	var attempts *attemptWriter
	if o.Attempts != nil {
		attempts = newAttemptWriter(o.Attempts)
	}
	report, err := oracle.Judge(open, func(j oracle.Judged) {
		feed.attempt(&j)
		whole.tally.Add(&j)
		if attempts != nil {
			attempts.write(describe(run, &j))
		}
	})
	if err != nil {
		return nil, err
	}
	if attempts != nil {
		if err := attempts.flush(); err != nil {
			return nil, err
		}
	}
	feed.finish(report)
	for unit, n := range report.Unattributed {
		whole.tally.Unattributed(unit, n)
	}
	a := assembly{report: report, feed: feed, whole: whole, manifest: m, strict: *o.Strict}
	return &judged{a.summary(thresholds), feed, report.Run}, nil
}

func parseThresholds(texts []string) ([]metric.Threshold, error) {
	var out []metric.Threshold
	var errs []error
	for _, s := range texts {
		t, err := metric.ParseThreshold(s)
		out, errs = append(out, t), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// firstRecord reads what the run was.
func firstRecord(open oracle.Source) (history.Run, error) {
	c, err := open()
	if err != nil {
		return history.Run{}, err
	}
	if closer, ok := c.(io.Closer); ok {
		defer closer.Close()
	}
	rec, err := c.Next()
	switch {
	case errors.Is(err, io.EOF):
		return history.Run{}, errors.New("the history is empty: the run was ended before its first second")
	case err != nil:
		return history.Run{}, err
	case rec.Run == nil:
		return history.Run{}, fmt.Errorf("the history does not begin with its run")
	}
	return *rec.Run, nil
}
