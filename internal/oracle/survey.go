package oracle

import (
	"slices"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

const (
	// defaultStop is S where no clean call shows two records of work.
	defaultStop = time.Second
	minStop     = 100 * time.Millisecond
	maxStop     = 2 * time.Second
	// slack is what clocks, schedulers and scrapes are allowed: e of judging
	// section 4.
	slack = 100 * time.Millisecond
	// lookBack is how long evidence of an attempt is waited for at least; what
	// comes later costs another pass 1.
	lookBack = 5 * time.Second
)

// params is what pass 1 finds and pass 2 judges by.
type params struct {
	run     history.Run
	budget  history.Budget
	sources sources
	units   units
	median  time.Duration // clean median, from the request's last byte to the result; 0: none
	done    []spread      // by unit: thousandths of units of a clean attempt
	// cleanServer is the p99 of what the server took to answer the clean calls.
	cleanServer time.Duration
	effects     int64 // median effects of a clean attempt, at least 1

	orphans  *orphans
	last     time.Duration // of the last record
	closed   string
	cutShort bool
	lost     int64
	firstCut time.Duration // 0: none
	// disorder is by how much call numbers of load calls begin out of order.
	disorder uint64
	widen    time.Duration // added to unsure evidence: our own lateness
	driver   Driver
	gauges   []*gaugeWatch
	wholes   []*wholeWatch
}

// stopWithin is S.
func (p *params) stopWithin() time.Duration {
	if p.budget.StopWithin > 0 {
		return p.budget.StopWithin
	}
	return defaultStop
}

// unitMedian is the median of what a clean attempt does of a unit.
func (p *params) unitMedian(unit uint16) float64 { return p.unitQuantile(unit, 0.5) }

func (p *params) unitQuantile(unit uint16, q float64) float64 {
	if int(unit) >= len(p.done) {
		return 0
	}
	return float64(p.done[unit].quantile(q)) / 1000
}

// elapsed is how long an attempt had been with the server at a time.
func elapsed(e *history.End, at time.Duration) time.Duration {
	if e.Sent == 0 || at < e.Sent {
		return 0
	}
	return at - e.Sent
}

// surveyor is pass 1.
type surveyor struct {
	p       *params
	track   *tracker
	early   bool // the history ends with the clean calls: nothing confirms them
	median  spread
	effects spread
	lost    *orphans

	begun     bool   // a clean or load call began
	maxCall   uint64 // highest load call begun
	driver    driverWatch
	cleanGaps map[int]*spread // by source, from clean calls: between records of work
	cleanSeen cleanCalls
	stages    stages
}

// cleanCalls is what the calls before the load gave.
type cleanCalls struct {
	calls, delivered, errors int
	duration, tailGap        spread
	events                   spread
	units                    spread
	server                   spread
}

// survey runs pass 1, and again if evidence came so late that its attempt was
// forgotten: the second time its attempts are known from the start.
func survey(open Source, early bool) (*params, *surveyor, error) {
	var known *orphans
	for {
		s := newSurveyor(known, early)
		if err := walk(open, s.record); err != nil {
			return nil, nil, err
		}
		s.finish()
		if known != nil || len(s.lost.seqs) == 0 {
			if known == nil {
				known = s.lost
			}
			known.full = known.full || s.lost.full
			s.p.orphans = known
			return s.p, s, nil
		}
		known = s.lost
	}
}

func newSurveyor(known *orphans, early bool) *surveyor {
	s := &surveyor{p: &params{sources: sources{}}, early: early, lost: newOrphans(), cleanGaps: map[int]*spread{}}
	s.p.cutShort = true
	s.p.sources.get(wire)
	s.track = newTracker(&s.p.units, known)
	s.track.hold = s.p.hold
	s.track.settle = s.settle
	s.track.stray = s.stray
	return s
}

// hold is until when evidence of an ended attempt is waited for: as far as
// evidence and scrapes usually reach. It grows with the longest delay seen so
// far, so pass 2 holds at least as long as pass 1; see orphans for what comes
// later still.
func (p *params) hold(a *attempt) time.Duration {
	reach := max(lookBack, 2*p.sources.settling())
	switch cut := a.cut(); {
	case cut != nil && cut.Style.Class() != history.ClassSignal:
		return max(cut.C1+p.run.Watch, a.end.Ended+p.stopWithin()+slack) + reach
	case cut != nil:
		return cut.C1 + p.run.Watch + reach
	case a.end.Outcome == history.Delivered:
		return a.end.Ended + reach
	}
	return a.end.Ended + p.run.Watch + reach
}

func (s *surveyor) record(seq int64, rec *history.Record) {
	p := s.p
	p.last = max(p.last, rec.T)
	switch {
	case rec.Run != nil:
		p.run = *rec.Run
	case rec.Budget != nil:
		p.budget = *rec.Budget
	case rec.Witness != nil:
		p.sources.declare(rec.Witness)
	case rec.Gap != nil:
		p.sources.get(rec.Gap.Source).addGap(*rec.Gap)
	case rec.Start != nil:
		s.start(rec.Start)
	case rec.End != nil:
		s.end(rec.End)
	case rec.Evidence != nil:
		s.evidence(rec)
	case rec.Sample != nil:
		s.sample(rec.Sample)
	case rec.Canary != nil:
		s.canary(rec.Canary)
	case rec.Driver != nil:
		s.driver.state(rec.Driver)
	case rec.Close != nil:
		p.closed, p.cutShort, p.lost = rec.Close.Reason, false, rec.Close.Lost
	}
	s.track.record(seq, rec)
	s.advanceGauges(rec.T)
}

func (s *surveyor) start(r *history.Start) {
	if r.Ref.Role == history.Probe {
		return
	}
	if !s.begun {
		s.begun = true
		s.firstCall()
	}
	s.stageOf(r)
	if r.Ref.Role != history.Load {
		return
	}
	if r.Ref.Attempt == 1 && r.Ref.Call < s.maxCall {
		s.p.disorder = max(s.p.disorder, s.maxCall-r.Ref.Call)
	}
	s.maxCall = max(s.maxCall, r.Ref.Call)
	s.driver.start(r)
}

func (s *surveyor) end(e *history.End) {
	s.stageEnd(e)
	if c := e.Cut; c != nil {
		if s.p.firstCut == 0 || c.C0 < s.p.firstCut {
			s.p.firstCut = c.C0
		}
		s.driver.cut(c)
	}
}

// evidence notes what needs no attempt.
func (s *surveyor) evidence(rec *history.Record) {
	e := rec.Evidence
	src := s.p.sources.get(e.Source)
	src.events++
	if e.Timed {
		src.timed = true
		if !src.ownSeen || e.Lo > src.ownLatest {
			src.ownSeen, src.ownLatest = true, e.Lo
		}
	}
	if e.Foreign {
		return
	}
	if e.Ref.IsZero() {
		s.wholeEvidence(rec.T, e)
	}
}

func (s *surveyor) stray(ref history.Ref, it item) {
	if !ref.IsZero() {
		s.lost.add(ref, it)
	}
}

// settle learns from a call that is over.
func (s *surveyor) settle(c *call) {
	s.p.distribute(c, nil)
	for _, a := range c.attempts {
		s.learn(a)
		s.countWhole(a)
		s.fillGauges(a)
	}
}

func (s *surveyor) learn(a *attempt) {
	for i := range a.items {
		src := s.p.sources.get(a.items[i].source)
		sent := a.start.Begun
		if a.end != nil && a.end.Sent != 0 {
			sent = a.end.Sent
		}
		src.sentLatest = max(src.sentLatest, sent)
	}
	if a.ref().Role == history.Clean && a.end != nil {
		s.learnCall(a)
	}
	if !a.delivered() {
		return
	}
	for i := range a.items {
		it := &a.items[i]
		if it.source == wire {
			continue
		}
		src := s.p.sources.get(it.source)
		src.lateness = max(src.lateness, it.at-a.end.Result)
		if it.timed {
			// Sent is stamped after the write, late on a busy machine: what is
			// sure is that the server had nothing before the connection stood.
			src.place(it, a.end.Connected, a.end.Result)
		}
	}
	if a.clean() {
		s.learnClean(a)
	}
}

// learnCall learns from a call before the load.
func (s *surveyor) learnCall(a *attempt) {
	k := &s.cleanSeen
	k.calls++
	if a.end.Outcome != history.Delivered {
		return
	}
	k.delivered++
	if a.end.IsError {
		k.errors++
		return
	}
	if a.end.FirstEvent != 0 {
		k.server.add(int64(a.end.FirstEvent - a.end.Sent))
	}
	k.duration.add(int64(a.end.Result - a.end.Sent))
	if a.end.LastEvent != 0 {
		k.tailGap.add(int64(a.end.Result - a.end.LastEvent))
	}
	k.events.add(int64(a.end.Events))
	for _, src := range s.p.sources.sorted() {
		prev := (*item)(nil)
		for i := range a.items {
			it := &a.items[i]
			if it.source != src.Source {
				continue
			}
			src.shown[it.kind]++
			if it.kind != history.Work {
				continue
			}
			if prev != nil {
				g := s.cleanGaps[src.Source]
				if g == nil {
					g = &spread{}
					s.cleanGaps[src.Source] = g
				}
				g.add(int64(it.lo - prev.lo))
			}
			prev = it
		}
	}
	if total := s.p.unitsOf(a.items); len(total) > 0 {
		k.units.add(int64(total[0].units*1000 + 0.5))
	}
}

// learnClean learns how the tool works undisturbed, from each source as soon as
// it has surely delivered all it saw.
func (s *surveyor) learnClean(a *attempt) {
	s.median.add(int64(a.end.Result - a.end.Sent))
	k := &undisturbed{attempt: a}
	for _, src := range s.p.sources.sorted() {
		if src.Source == wire || !slices.ContainsFunc(a.items, func(it item) bool { return it.source == src.Source && proves(it.kind) }) {
			continue
		}
		if len(src.waiting) >= maxWaiting {
			src.waiting = slices.Delete(src.waiting, 0, maxWaiting/2)
		}
		src.waiting = append(src.waiting, k)
	}
	s.learnWaiting()
}

// undisturbed is a clean attempt that some source may not have told all of yet.
type undisturbed struct {
	*attempt
	counted, effects bool
}

func (s *surveyor) learnWaiting() {
	for _, src := range s.p.sources.sorted() {
		n := 0
		for n < len(src.waiting) && (s.early || src.confirmed() > src.waiting[n].end.Result) {
			if k := src.waiting[n]; !src.blind(k.start.Begun, k.end.Result+src.lag()) {
				effects := s.learnSource(src, k.attempt)
				s.learnUnits(k, effects)
			}
			n++
		}
		src.waiting = slices.Delete(src.waiting, 0, n)
	}
}

// learnUnits takes how much a clean attempt did, once.
func (s *surveyor) learnUnits(k *undisturbed, effects int) {
	if effects > 0 && !k.effects {
		k.effects = true
		s.effects.add(int64(effects))
	}
	if k.counted {
		return
	}
	k.counted = true
	for _, t := range s.p.unitsOf(k.items) {
		for int(t.unit) >= len(s.p.done) {
			s.p.done = append(s.p.done, spread{})
		}
		s.p.done[t.unit].add(int64(t.units*1000 + 0.5))
	}
}

// learnSource takes one source's records of a clean attempt; it returns how
// many effects they show.
func (s *surveyor) learnSource(src *source, a *attempt) (effects int) {
	var own, arrival []Interval
	sums := map[uint16]float64{}
	worked := false
	units, ahead := 0.0, -1.0
	for i := range a.items {
		it := &a.items[i]
		if it.source != src.Source || !proves(it.kind) {
			continue
		}
		src.untimed = src.untimed || !it.timed
		if it.timed {
			own = append(own, Interval{it.lo, it.hi})
			arrival = append(arrival, Interval{it.at, it.at})
		} else {
			arrival = append(arrival, Interval{it.lo, it.hi})
		}
		switch it.kind {
		case history.Work:
			worked = true
			sums[it.unit] += it.units
			units += it.units
		case history.Effect:
			effects++
			if ahead < 0 {
				ahead = units
			}
		}
	}
	if ahead >= 0 && (!src.aheadKnown || ahead < src.ahead) {
		src.ahead, src.aheadKnown = ahead, true
	}
	if !worked {
		return effects
	}
	src.worked++
	src.cadence.own.add(a.end.Sent, a.end.Result, own)
	src.cadence.arrival.add(a.end.Sent, a.end.Result, arrival)
	for unit, sum := range sums {
		if old, ok := src.unitsMin[unit]; sum > 0 && (!ok || sum < old) {
			src.unitsMin[unit] = sum
		}
	}
	return effects
}

func (s *surveyor) finish() {
	s.track.finish()
	s.learnWaiting()
	p := s.p
	p.median = time.Duration(s.median.median())
	p.effects = max(s.effects.median(), 1)
	p.cleanServer = time.Duration(s.cleanSeen.server.quantile(0.99))
	p.driver = s.driver.sum(p.stopWithin(), p.lost)
	if p.driver.Limited {
		p.widen = p.driver.LatenessP99
	}
	s.finishGauges()
	s.finishWholes()
	for _, src := range p.sources.sorted() {
		src.broken = src.trouble()
	}
}

// trouble says why a source's times or silence cannot be used.
func (s *source) trouble() string {
	switch {
	case s.clockBroken():
		return "its times contradict each other: no one clock offset puts its records between the sends and results of delivered calls"
	case s.events == 0 && s.Source != wire && !s.Gauge:
		return "it showed nothing in the whole run"
	case s.gapCount > 0:
		return s.gaps[0].Reason
	}
	return ""
}

// total is how much of one unit.
type total struct {
	unit  uint16
	units float64
}

// unitsOf sums the work of items by unit. Sources tell of the same work, so of
// each unit the source that shows most counts.
func (p *params) unitsOf(items []item) []total {
	type key struct {
		source int
		unit   uint16
	}
	sums := map[key]float64{}
	for i := range items {
		if it := &items[i]; it.kind == history.Work {
			sums[key{it.source, it.unit}] += it.units
		}
	}
	best := map[uint16]float64{}
	for k, v := range sums {
		best[k.unit] = max(best[k.unit], v)
	}
	out := make([]total, 0, len(best))
	for u, v := range best {
		out = append(out, total{u, v})
	}
	slices.SortFunc(out, func(a, b total) int { return int(a.unit) - int(b.unit) })
	return out
}
