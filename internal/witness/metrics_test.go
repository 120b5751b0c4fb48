package witness

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// page is a metrics page that tests write.
type page struct {
	mu     sync.Mutex
	status int
	text   string
}

func (p *page) set(status int, lines ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status, p.text = status, strings.Join(lines, "\n")+"\n"
}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	w.WriteHeader(p.status)
	io.WriteString(w, p.text)
}

func metricsConfig(url string, metrics ...string) MetricsConfig {
	return MetricsConfig{Source: 2, URL: url, Metrics: metrics, Interval: 20 * time.Millisecond, Clock: history.NewClock(), Nonce: ours}
}

func serve(t *testing.T, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL + "/metrics"
}

func startMetrics(t *testing.T, cfg MetricsConfig) (*Metrics, *memory) {
	t.Helper()
	m, err := NewMetrics(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	mem := &memory{}
	if err := m.Start(t.Context(), mem); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Stop(context.Background()) })
	return m, mem
}

func (m *memory) samples() []history.Sample {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []history.Sample
	for _, r := range m.recs {
		if r.Sample != nil {
			out = append(out, *r.Sample)
		}
	}
	return out
}

func TestMetricsAggregate(t *testing.T) {
	p := &page{}
	p.set(200, `steps_total{tool="a"} 5`)
	m, mem := startMetrics(t, metricsConfig(serve(t, p), "work=steps", "inflight=busy"))
	if s := mem.samples(); len(s) < BaselineScrapes || s[0].Values["work"] != 5 || s[0].Values["inflight"] != 0 || s[0].Source != 2 {
		t.Fatalf("baseline %+v", s)
	}
	if m.Stats().Seen(history.Work) {
		t.Error("work is seen before there was any")
	}
	if a := m.Absent(); len(a) != 1 || a[0].Name != "--metric inflight=busy" || !strings.Contains(a[0].Hint, "steps_total") {
		t.Errorf("absent %v, want the gauge", a)
	}
	p.set(200, `steps_total{tool="a"} 6`, `busy{tool="a"} 2`)
	until(t, "the new values", func() bool {
		s := mem.samples()
		return s[len(s)-1].Values["inflight"] == 2
	})
	if a := m.Absent(); len(a) != 0 {
		t.Errorf("absent %v, want nothing", a)
	}
	if w := m.Declare(); w.Grade != history.GradeD || !w.Gauge || w.ByAttempt || w.Poll != 20*time.Millisecond || len(w.Shows) != 1 {
		t.Errorf("declared %+v", w)
	}
	p.set(200, `steps_total{tool="a"} 77`, `busy{tool="a"} 0`)
	m.Stop(t.Context())
	all := mem.samples()
	if last := all[len(all)-1]; last.Values["work"] != 77 {
		t.Errorf("the last scrape has %v, want what was there at the stop", last.Values)
	}
	for i, s := range all {
		if s.T1 < s.T0 || i > 0 && s.T0 < all[i-1].T1 {
			t.Errorf("scrape %d spans [%v, %v] after [%v, %v]", i, s.T0, s.T1, all[max(i, 1)-1].T0, all[max(i, 1)-1].T1)
		}
	}
	if !m.Stats().Seen(history.Work) {
		t.Errorf("stats %+v: work was seen", m.Stats())
	}
}

func TestMetricsByAttempt(t *testing.T) {
	p := &page{}
	p.set(200, "steps_total 0")
	m, mem := startMetrics(t, metricsConfig(serve(t, p), "work=steps"))
	p.set(200, `steps_total{id="`+ours.ID(ref)+`"} 4`)
	until(t, "evidence", func() bool { return len(mem.evidence()) > 0 })
	m.Stop(t.Context())
	if e := mem.evidence()[0]; e.Ref != ref || e.By != "id" || e.Units != 4 || !e.Timed || e.Lo >= e.Hi || e.Source != 2 {
		t.Errorf("evidence %+v", e)
	}
	if w := m.Declare(); w.Grade != history.GradeC || !w.ByAttempt || w.Gauge {
		t.Errorf("declared %+v", w)
	}
}

func TestMetricsReset(t *testing.T) {
	p := &page{}
	p.set(200, "steps_total 9")
	m, mem := startMetrics(t, metricsConfig(serve(t, p), "work=steps"))
	p.set(200, "steps_total 1")
	until(t, "the gap", func() bool { return len(mem.gaps()) > 0 })
	m.Stop(t.Context())
	if g := mem.gaps()[0]; !strings.Contains(g.Reason, "counter reset") || g.From >= g.To || g.Source != 2 {
		t.Errorf("gap %+v", g)
	}
}

func TestMetricsAway(t *testing.T) {
	p := &page{}
	p.set(200, "steps_total 9")
	m, mem := startMetrics(t, metricsConfig(serve(t, p), "work=steps"))
	p.set(503, "busy")
	until(t, "failures", func() bool { return m.Stats().Failed > 5 })
	p.set(200, "steps_total 9")
	until(t, "the gap", func() bool { return len(mem.gaps()) > 0 })
	if g := mem.gaps()[0]; !strings.Contains(g.Reason, "HTTP 503") || g.To-g.From < 50*time.Millisecond {
		t.Errorf("gap %+v", g)
	}
	p.set(503, "busy")
	n := m.Stats().Failed
	until(t, "failures", func() bool { return m.Stats().Failed > n+5 })
	m.Stop(t.Context())
	g := mem.gaps()
	if last := g[len(g)-1]; last.To != 0 {
		t.Errorf("gaps %+v, want one to the end", g)
	}
}

// A page that is never there to its end must not hold the stop.
func TestMetricsHangs(t *testing.T) {
	var hang atomic.Bool
	release := make(chan struct{})
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "steps_total 1\n")
		if hang.Load() {
			w.(http.Flusher).Flush()
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
	}))
	defer close(release)
	m, _ := startMetrics(t, metricsConfig(url, "work=steps"))
	hang.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	m.Stop(ctx)
	m.Stop(ctx)
}

func TestMetricsChecks(t *testing.T) {
	answer := func(status int, contentType, body string) string {
		return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Location", "http://bob:pw@127.0.0.1:1/elsewhere?k=v")
			w.WriteHeader(status)
			io.WriteString(w, body)
		}))
	}
	endless := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for {
			if _, err := fmt.Fprintf(w, "# %s\n", strings.Repeat("x", 60_000)); err != nil {
				return
			}
		}
	}))
	oneLine := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for {
			if _, err := io.WriteString(w, strings.Repeat("x", 1<<16)); err != nil {
				return
			}
		}
	}))
	crowd := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Repeat("a 1\n", maxItems+1))
	}))
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, tc := range map[string]struct{ url, want string }{
		"unauthorized": {answer(401, "text/plain", ""), "wants credentials"},
		"forbidden":    {answer(403, "text/plain", ""), "wants credentials"},
		"not found":    {answer(404, "text/plain", ""), "/metrics"},
		"broken":       {answer(500, "text/plain", ""), "HTTP 500"},
		"redirect":     {answer(302, "text/plain", ""), "redirects to http://%2A%2A%2A@127.0.0.1:1/elsewhere?***"},
		"a web page":   {answer(200, "text/html", "<!doctype html><p>hello\x1b[31m"), "no Prometheus text"},
		"endless":      {endless, "longer than 8 MiB"},
		"one line":     {oneLine, "line longer than 64 KiB"},
		"a crowd":      {crowd, "lines and labels"},
		"nobody":       {gone.URL, "refused"},
	} {
		m, err := NewMetrics(metricsConfig(strings.Replace(tc.url, "http://", "http://bob:secret@", 1)+"?k=secret", "work=steps"))
		if err != nil {
			t.Fatal(err)
		}
		err = m.Check(t.Context())
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: check = %v, want %q", name, err, tc.want)
		}
		if name == "broken" {
			if err := m.Start(t.Context(), &memory{}); err == nil {
				t.Errorf("%s: start is no error", name)
			}
		}
		m.Stop(t.Context())
	}
}

func TestMetricsUnmatched(t *testing.T) {
	p := &page{}
	p.set(200, "app_stepps_total{x=\"\x1b[31m\"} 1", "go_threads 5", "steps 1")
	m, err := NewMetrics(metricsConfig(serve(t, p), "work=steps", "stopped=app_stops"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Stop(t.Context())
	if err := m.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := `app_stepps_total{x="\x1b[31m"}`
	if u := m.Unmatched(); len(u) != 2 || u[0] != want {
		t.Errorf("unmatched %q, want %s first", u, want)
	}
	if a := m.Absent(); len(a) != 1 || a[0].Kind != history.Stop {
		t.Errorf("absent %v", a)
	}
}

func TestMetricsConfig(t *testing.T) {
	_, err := NewMetrics(MetricsConfig{URL: "localhost:9090", Metrics: []string{"wrok=x"}, Interval: time.Millisecond})
	for _, want := range []string{"http://HOST:PORT/metrics", `did you mean "work"`, "at least 10ms"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
	if _, err := NewMetrics(MetricsConfig{URL: "http://localhost/metrics"}); err == nil || !strings.Contains(err.Error(), "--metric work=NAME") {
		t.Errorf("without a metric: %v", err)
	}
}

func TestWire(t *testing.T) {
	if w := Wire(); w.Source != 0 || w.What != "wire" || !w.ByAttempt {
		t.Errorf("wire declares %+v", w)
	}
}
