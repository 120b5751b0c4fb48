package oracle

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// Calibration is what the calls before the load tell (judging section 1).
type Calibration struct {
	// Budget has the derived S; a caller whose user set one overwrites
	// StopWithin and sets Given.
	Budget history.Budget
	// Of the clean calls: how many ended, were delivered, were delivered with
	// isError.
	Calls, Delivered, ToolErrors int
	Sources                      []Shown
}

// Shown is what one witness showed of the clean calls.
type Shown struct {
	history.Witness
	// Records counts evidence that names a clean call, by kind; for a source
	// without identities, all evidence.
	Records map[history.Kind]int
	// Missing are the declared kinds that a clean call should have shown and
	// did not: work, completion, effect. A stop cannot show on clean calls.
	Missing []history.Kind
	// Silence holds when it showed work in enough clean calls for its silence
	// to count as evidence.
	Silence bool
	// Problem says why a gauge has no baseline; empty if it has, or for others.
	Problem string
}

// Calibrate reads a history that ends with the clean calls and fixes what the
// plan and the verdicts need of them.
func Calibrate(open Source) (Calibration, error) {
	p, s, err := survey(open, true)
	if err != nil {
		return Calibration{}, err
	}
	k := &s.cleanSeen
	c := Calibration{Calls: k.calls, Delivered: k.delivered, ToolErrors: k.errors}
	gap := s.workGap()
	c.Budget = history.Budget{
		StopWithin:  stopWithin(gap),
		CleanMedian: time.Duration(k.duration.median()),
		Gap:         gap,
		TailGap:     time.Duration(k.tailGap.median()),
		Events:      int(k.events.median()),
		Units:       float64(k.units.median()) / 1000,
	}
	for _, src := range p.sources.sorted() {
		if src.Source != wire {
			c.Sources = append(c.Sources, s.shown(src))
		}
	}
	for _, g := range p.gauges {
		if g.why == "" {
			if c.Budget.Baselines == nil {
				c.Budget.Baselines = map[string]float64{}
			}
			c.Budget.Baselines[baselineKey(g.source)] = g.base
		}
	}
	return c, nil
}

// baselineKey names a gauge in Budget.Baselines: "2/inflight" for source 2.
func baselineKey(source int) string { return strconv.Itoa(source) + "/" + roleInflight }

// stopWithin derives S from the median gap between two records of work.
func stopWithin(gap time.Duration) time.Duration {
	if gap == 0 {
		return defaultStop
	}
	return min(max(gap*3/2, minStop), maxStop)
}

// workGap is the median time between two successive records of work of a clean
// call, by the best source that shows any; 0: none does.
func (s *surveyor) workGap() time.Duration {
	var best *source
	for _, src := range s.p.sources.sorted() {
		if g := s.cleanGaps[src.Source]; g != nil && (best == nil || src.Grade < best.Grade) {
			best = src
		}
	}
	if best == nil {
		return 0
	}
	return max(time.Duration(s.cleanGaps[best.Source].median()), 1)
}

func (s *surveyor) shown(src *source) Shown {
	out := Shown{Witness: src.Witness, Records: src.shown, Silence: src.worked >= workedClean}
	for _, w := range s.p.wholes {
		if w.source != src.Source {
			continue
		}
		for _, b := range w.bins {
			if b.step == 0 {
				out.Records[b.kind] += len(b.clean)
			}
		}
	}
	for _, kind := range []history.Kind{history.Work, history.Completion, history.Effect} {
		if slices.Contains(src.Shows, kind) && out.Records[kind] == 0 {
			out.Missing = append(out.Missing, kind)
		}
	}
	for _, g := range s.p.gauges {
		if g.source == src.Source && g.why != "" {
			out.Problem = fmt.Sprintf("%s: the in-flight gauge tells nothing: %s", src.Name, g.why)
		}
	}
	return out
}
