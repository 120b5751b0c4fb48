package witness

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

const (
	// DefaultInterval is the time between two scrapes.
	DefaultInterval = time.Second
	// minInterval bounds it from below.
	minInterval = 10 * time.Millisecond
	// BaselineScrapes are made before Start returns, BaselineEvery apart or at
	// the interval if that is shorter: what an idle gauge shows.
	BaselineScrapes = 3
	BaselineEvery   = 100 * time.Millisecond
)

// MetricsConfig says which metrics page to scrape and what to read from it.
type MetricsConfig struct {
	Source int // from 1
	URL    string
	// Metrics are ROLE=NAME or ROLE=NAME{label="value",…}, with a role of work,
	// inflight, stopped, done, effects. Several of one role are summed up.
	Metrics  []string
	Interval time.Duration // 0: DefaultInterval
	Clock    history.Clock
	Nonce    history.Nonce
	TLS      *tls.Config // nil: the system's roots
	// Secrets are replaced by "***" in all text that is kept.
	Secrets []string
}

// Metrics is a page of Prometheus metrics as a witness. The times it gives are
// those of its scrapes, taken from the run's own clock: unlike those of a log,
// they need no offset.
type Metrics struct {
	name     string
	interval time.Duration
	out      *output
	scraper  *scraper

	mu     sync.Mutex // guards series and last
	series *series
	last   []sample // of the last scrape, for hints
	// Of the scrapes that succeeded:
	scraped time.Duration // when the last one began
	began   bool          // there was one since Start
	failure string        // of the last one that did not, since then

	life    sync.Mutex // Start and Stop
	started bool
	kill    context.CancelFunc
	once    sync.Once
	stop    chan struct{}
	done    chan struct{}
}

// NewMetrics makes the witness of one metrics page. Its error names everything
// that is wrong with the configuration.
func NewMetrics(cfg MetricsConfig) (*Metrics, error) {
	var bad []string
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		bad = append(bad, "--metrics: want a URL as http://HOST:PORT/metrics")
	}
	interval := cfg.Interval
	if interval == 0 {
		interval = DefaultInterval
	}
	if interval < minInterval {
		bad = append(bad, fmt.Sprintf("--metrics-interval %v: want at least %v", interval, minInterval))
	}
	var selectors []selector
	for _, text := range cfg.Metrics {
		s, err := parseSelector(text)
		if err != nil {
			bad = append(bad, err.Error())
			continue
		}
		selectors = append(selectors, s)
	}
	if len(cfg.Metrics) == 0 {
		bad = append(bad, "--metrics has no metric: say what to read with --metric work=NAME, inflight=NAME, stopped=NAME, done=NAME or effects=NAME")
	}
	if err := problems(bad); err != nil {
		return nil, err
	}
	return &Metrics{
		name: safeURL(u), interval: interval,
		out:     newOutput(cfg.Source, cfg.Clock, cfg.Secrets),
		scraper: newScraper(u, interval, cfg.TLS),
		series:  newSeries(cfg.Nonce, selectors),
		stop:    make(chan struct{}), done: make(chan struct{}),
	}, nil
}

// Declare describes the page. Whether its series name attempts is known once
// some were seen.
func (m *Metrics) Declare() history.Witness {
	w := history.Witness{
		Source: m.out.source, What: "metrics", Name: m.name, Grade: history.GradeD,
		Timed: true, Poll: m.interval,
	}
	if w.ByAttempt, w.ByCall, _ = m.out.names(); w.ByAttempt || w.ByCall {
		w.Grade = history.GradeC
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.series.selectors {
		if !slices.Contains(w.Shows, s.kind) {
			w.Shows = append(w.Shows, s.kind)
		}
		w.Gauge = w.Gauge || s.role == roleInflight && !m.series.named[s.role]
	}
	return w
}

// Check scrapes once. A metric that is not there yet is no error: it may appear
// during the clean calls; see [Metrics.Absent].
func (m *Metrics) Check(ctx context.Context) error {
	all, _, err := m.scraper.fetch(ctx)
	if err != nil {
		return m.wrap(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = few(all)
	for i, s := range m.series.selectors {
		m.series.met[i] = len(s.pick(all)) > 0
	}
	return nil
}

func (m *Metrics) wrap(err error) error { return fmt.Errorf("--metrics %s: %v", m.name, err) }

// Start makes the scrapes of the baseline, then scrapes on in the background.
func (m *Metrics) Start(ctx context.Context, to history.Appender) error {
	m.life.Lock()
	defer m.life.Unlock()
	if m.started {
		return m.wrap(errors.New("started twice"))
	}
	m.out.start(to)
	for i := range BaselineScrapes {
		if i > 0 {
			if err := sleep(ctx, min(BaselineEvery, m.interval)); err != nil {
				return m.wrap(err)
			}
		}
		if err := m.scrape(ctx); err != nil {
			return m.wrap(err)
		}
	}
	m.started = true
	ctx, m.kill = context.WithCancel(ctx)
	go m.run(ctx)
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop scrapes a last time and ends the witness.
func (m *Metrics) Stop(ctx context.Context) {
	m.life.Lock()
	defer m.life.Unlock()
	m.once.Do(func() { close(m.stop) })
	if m.started {
		ctx, cancel := context.WithTimeout(ctx, drainLimit)
		defer cancel()
		stopped(ctx, m.done, m.kill)
	}
	m.scraper.close()
}

func (m *Metrics) run(ctx context.Context) {
	defer close(m.done)
	tick := time.NewTicker(m.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			m.end()
			return
		case <-m.stop:
			_ = m.scrape(ctx) // counted there
			m.end()
			return
		case <-tick.C:
			_ = m.scrape(ctx) // counted there
		}
	}
}

// end writes the gap of a page that was away at the end.
func (m *Metrics) end() {
	m.mu.Lock()
	from, why := m.scraped, m.failure
	m.mu.Unlock()
	if why != "" && m.away(from, m.out.clock.Now()) {
		m.out.gap(from, 0, "scrapes failed: "+why)
	}
}

// away reports whether two scrapes lie so far apart that the page was not seen
// between them: more than two intervals, and a half for jitter.
func (m *Metrics) away(from, to time.Duration) bool { return to-from > m.interval*5/2 }

// scrape scrapes once and appends what it found. Only one goroutine at a time
// calls it.
func (m *Metrics) scrape(ctx context.Context) error {
	t0 := m.out.clock.Now()
	all, malformed, err := m.scraper.fetch(ctx)
	t1 := m.out.clock.Now()
	if err != nil {
		why := m.out.secrets.Replace(err.Error())
		m.mu.Lock()
		m.failure = why
		m.mu.Unlock()
		m.out.count(func(s *Stats) { s.Failed++; s.Trouble = printable(clip(why, maxReason)) })
		return err
	}
	m.mu.Lock()
	before, began, failure := m.scraped, m.began, m.failure
	from := m.series.before
	r := m.series.read(all, t0, t1)
	m.last, m.scraped, m.began, m.failure = few(all), t0, true, ""
	m.mu.Unlock()

	if began && m.away(before, t0) {
		if failure == "" {
			failure = "scrapes were late"
		} else {
			failure = "scrapes failed: " + failure
		}
		m.out.gap(before, t0, failure)
	}
	for _, why := range r.gaps {
		m.out.gap(from, t1, why)
	}
	m.out.count(func(s *Stats) {
		s.Read++
		s.Malformed += int64(malformed)
		for k := range r.moved {
			c := s.Kinds[k]
			c.Unattributed++
			s.Kinds[k] = c
			s.Last = t1
		}
	})
	for _, e := range r.evidence {
		m.out.evidence(e)
	}
	if len(r.values) > 0 {
		m.out.sample(history.Sample{T0: t0, T1: t1, Values: r.values})
	}
	return nil
}

// few keeps a hostile page from being held in memory between scrapes.
func few(all []sample) []sample {
	if len(all) > maxCandidates {
		return slices.Clone(all[:maxCandidates])
	}
	return all
}

// Absent lists the metrics that have not appeared yet.
func (m *Metrics) Absent() []Absent {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Absent
	for i, s := range m.series.selectors {
		if !m.series.met[i] {
			out = append(out, Absent{Kind: s.kind, Name: "--metric " + s.text, Hint: s.hint(m.last)})
		}
	}
	return out
}

// Unmatched gives up to three series that no metric picked, those most like the
// first metric wanted.
func (m *Metrics) Unmatched() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var other []string
	for _, s := range m.last {
		if !slices.ContainsFunc(m.series.selectors, func(sel selector) bool {
			names := sel.names()
			return slices.Contains(names[:], s.name) && sel.fits(s)
		}) {
			other = append(other, s.String())
		}
	}
	near := nearest(m.series.selectors[0].name, other)
	for i, n := range near {
		near[i] = printable(m.out.secrets.Replace(clip(strings.ToValidUTF8(n, "?"), maxShown)))
	}
	return near
}

// Stats is a copy of the live counters.
func (m *Metrics) Stats() Stats { return m.out.snapshot() }
