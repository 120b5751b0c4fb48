package oracle

import (
	"slices"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

const (
	// roleInflight is the value of a scrape that is an in-flight gauge.
	roleInflight = "inflight"
	// baselineScrapes is how many scrapes before the first call give the
	// baseline; they must agree.
	baselineScrapes = 3
	// maxScrape is the longest scrape that is compared: a longer one spans too
	// much to tell anything.
	maxScrape = 2 * time.Second
	// maxPending bounds the scrapes that wait for the attempts they overlap.
	maxPending = 1 << 16
	// startSlack is how much earlier than its record an attempt may have begun.
	startSlack = time.Second
)

// scrape is one sample of the gauge with the attempts that it may and must
// count.
type scrape struct {
	t0, t1 time.Duration
	value  float64
	hi, lo int // bounds of the attempts at work
	alive  int // upper bound of those that nobody cut
}

// gaugeWatch compares an aggregate in-flight gauge with what it should show
// (judging section 4, grade D).
type gaugeWatch struct {
	source   int
	before   []float64 // last scrapes before the first call
	started  bool
	base     float64
	why      string // why it tells nothing
	pending  []scrape
	samples  int
	outside  int
	below    int // scrapes in a row under lo
	over     int // the last scrape's excess over hi
	zombies  int
	lastT    time.Duration
	seconds  [2]float64
	strays   bool // under lo twice: it does not follow this tool
	worst    scrape
	overflow bool
	probe    Interval // of the last canary
}

// lifetime is the times in which an attempt is within the bounds.
type lifetime struct {
	begun         time.Duration
	hiUntil       time.Duration
	loFrom, loEnd time.Duration // loFrom < 0: never surely at work
	aliveUntil    time.Duration
}

func (s *surveyor) sample(r *history.Sample) {
	src := s.p.sources.get(r.Source)
	src.events++
	// A scrape is a record made at its time: what it does not show by then is
	// silence.
	src.sentLatest = max(src.sentLatest, r.T0)
	s.wholeSample(r)
	v, ok := r.Values[roleInflight]
	if !ok {
		return
	}
	g := s.gauge(r.Source)
	if !g.started {
		g.before = append(g.before, v)
		if len(g.before) > baselineScrapes {
			g.before = g.before[1:]
		}
		return
	}
	if g.why != "" || r.T1-r.T0 > maxScrape {
		return
	}
	if len(g.pending) >= maxPending {
		g.overflow = true
		g.pending = slices.Delete(g.pending, 0, len(g.pending)/2)
	}
	x := scrape{t0: r.T0, t1: r.T1, value: v}
	if g.probe.Lo < r.T1 && r.T0 < g.probe.Hi {
		x.hi, x.alive = 1, 1
	}
	g.pending = append(g.pending, x)
}

func (s *surveyor) gauge(source int) *gaugeWatch {
	for _, g := range s.p.gauges {
		if g.source == source {
			return g
		}
	}
	g := &gaugeWatch{source: source}
	s.p.gauges = append(s.p.gauges, g)
	if s.begun {
		g.start()
	}
	return g
}

// start fixes the baseline.
func (g *gaugeWatch) start() {
	g.started = true
	switch {
	case len(g.before) < baselineScrapes:
		g.why = "it was scraped fewer than 3 times before the first call, so it has no baseline"
	case slices.Min(g.before) != slices.Max(g.before):
		g.why = "it moved before the first call, so others use this server and it has no baseline"
	default:
		g.base = g.before[0]
	}
}

// firstCall runs at the begin of the first clean or load call.
func (s *surveyor) firstCall() {
	for _, g := range s.p.gauges {
		g.start()
	}
	for _, w := range s.p.wholes {
		w.start()
	}
}

// canary lets a probe that may be counted widen the upper bound.
func (s *surveyor) canary(r *history.Canary) {
	for _, g := range s.p.gauges {
		g.probe = Interval{r.At, r.At + r.Latency + slack}
		g.each(g.probe.Lo, g.probe.Hi, func(x *scrape) { x.hi++; x.alive++ })
	}
}

// each visits the waiting scrapes that overlap [from, to].
func (g *gaugeWatch) each(from, to time.Duration, f func(*scrape)) {
	i, _ := slices.BinarySearchFunc(g.pending, from, func(s scrape, t time.Duration) int {
		if s.t1 < t {
			return -1
		}
		return 1
	})
	for ; i < len(g.pending) && g.pending[i].t0 <= to; i++ {
		f(&g.pending[i])
	}
}

// fillGauges counts a settled attempt in the scrapes of its lifetime.
func (s *surveyor) fillGauges(a *attempt) {
	if len(s.p.gauges) == 0 {
		return
	}
	l := s.p.lifetime(a)
	for _, g := range s.p.gauges {
		g.each(l.begun, l.hiUntil, func(x *scrape) {
			if l.begun < x.t1 && x.t0 <= l.hiUntil {
				x.hi++
				if x.t0 <= l.aliveUntil {
					x.alive++
				}
			}
			if l.loFrom >= 0 && l.loFrom <= x.t0 && l.loEnd > x.t1 {
				x.lo++
			}
		})
	}
}

// lifetime bounds the time in which an attempt is at work at the server, as far
// as it is entitled to be.
func (p *params) lifetime(a *attempt) lifetime {
	l := lifetime{begun: a.start.Begun, loFrom: -1}
	e := a.end
	if e == nil {
		l.hiUntil = 1<<63 - 1
		l.aliveUntil = l.hiUntil
		return l
	}
	over := e.Ended
	if c := e.Cut; c != nil {
		over = c.C0
	}
	switch {
	case e.Outcome == history.Refused, e.Outcome == history.Failed:
	case e.FirstByte != 0:
		l.loFrom = e.FirstByte
		if e.Sent != 0 {
			l.loFrom = min(l.loFrom, e.Sent+slack)
		}
	case e.Sent != 0:
		l.loFrom = e.Sent + slack
	}
	// The answer may be on its way to us when the gauge is read.
	l.loEnd = over - slack
	l.hiUntil, l.aliveUntil = e.Ended+slack, over+slack
	c := e.Cut
	switch {
	case c == nil && e.Outcome == history.Drained:
		l.hiUntil = e.Ended + p.run.Watch + slack
	case c == nil || e.Outcome == history.Delivered:
	case c.Style.Class() == history.ClassSignal && !p.showsWork(a):
		l.hiUntil = c.C1 + p.stopWithin() + slack
	default:
		l.hiUntil = p.entitled(a) + slack
		if c.Style.Class() != history.ClassSignal {
			l.aliveUntil = l.hiUntil
		}
	}
	return l
}

// showsWork reports whether an attempt's own evidence proves work past S.
func (p *params) showsWork(a *attempt) bool {
	limit := a.end.Cut.C1 + p.stopWithin()
	for i := range a.items {
		it := &a.items[i]
		if it.source != wire && proves(it.kind) && p.sources.get(it.source).span(it).Lo > limit {
			return true
		}
	}
	return false
}

// entitled is until when a cut attempt that cannot know better, or that its own
// evidence convicts, explains the gauge: its completion, its stop, or the end
// of its watch (or of its socket, which is what tells the server).
func (p *params) entitled(a *attempt) time.Duration {
	c := a.end.Cut
	until := c.C1 + p.run.Watch
	if c.Style.Class() != history.ClassSignal {
		until = max(until, a.end.Ended+p.stopWithin())
	}
	for i := range a.items {
		it := &a.items[i]
		if it.kind != history.Completion && it.kind != history.Stop {
			continue
		}
		hi := p.sources.get(it.source).span(it).Hi
		if it.kind == history.Stop && p.worksAfter(a, hi) {
			continue // it stopped in words only
		}
		until = min(until, max(hi, c.C1+p.stopWithin()))
	}
	return until
}

func (p *params) worksAfter(a *attempt, t time.Duration) bool {
	for i := range a.items {
		it := &a.items[i]
		if proves(it.kind) && p.sources.get(it.source).span(it).Lo > t {
			return true
		}
	}
	return false
}

// advanceGauges finishes the scrapes that no open attempt can touch any more.
func (s *surveyor) advanceGauges(now time.Duration) {
	if len(s.p.gauges) == 0 {
		return
	}
	until := now - lookBack
	if t, ok := s.track.oldest(); ok {
		until = min(until, t-startSlack)
	}
	for _, g := range s.p.gauges {
		n := 0
		for n < len(g.pending) && g.pending[n].t1 < until {
			g.judge(&g.pending[n])
			n++
		}
		g.pending = g.pending[n:]
	}
}

func (s *surveyor) finishGauges() {
	for _, g := range s.p.gauges {
		if !g.started {
			g.why = "there was no call to compare it with"
		}
		for i := range g.pending {
			g.judge(&g.pending[i])
		}
		g.pending = nil
	}
}

// judge compares one scrape whose bounds are complete.
func (g *gaugeWatch) judge(x *scrape) {
	v := x.value - g.base
	over := int(v) - x.hi
	g.samples++
	if v > float64(x.hi) || v < float64(x.lo) {
		g.outside++
	}
	if z := min(over, g.over); z > g.zombies {
		g.zombies, g.worst = z, *x
	}
	g.over = max(over, 0)
	if v < float64(x.lo) {
		if g.below++; g.below >= 2 {
			g.strays = true
		}
	} else {
		g.below = 0
	}
	if g.lastT != 0 && x.t0 > g.lastT {
		dt := (x.t0 - g.lastT).Seconds()
		g.seconds[0] += max(v-float64(x.alive), 0) * dt
		g.seconds[1] += max(v-float64(x.lo), 0) * dt
	}
	g.lastT = x.t0
}

// tells reports whether the gauge can be believed.
func (g *gaugeWatch) tells() bool { return g.why == "" && !g.strays && g.samples > 0 }

// inside reports whether every scrape lay between its bounds.
func (g *gaugeWatch) inside() bool { return g.tells() && g.outside == 0 && !g.overflow }

// summary is what the report says of the gauge.
func (g *gaugeWatch) summary(signalCuts int) *Gauge {
	out := &Gauge{Baseline: g.base, Samples: g.samples, Inside: g.inside(), Zombies: g.zombies, Why: g.why}
	switch {
	case g.why != "":
	case g.strays:
		out.Why = "it stayed below the calls that were surely at work, so it does not follow this tool"
		out.Zombies = 0
	case g.samples == 0:
		out.Why = "it was never scraped during the load"
	}
	if out.Why == "" {
		out.ZombieSeconds = g.seconds
		if signalCuts > 0 {
			out.MeanToStop = time.Duration(g.seconds[0] / float64(signalCuts) * float64(time.Second))
		}
	}
	return out
}
