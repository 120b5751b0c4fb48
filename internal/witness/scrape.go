package witness

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const (
	// maxScrape bounds the text of one scrape, decompressed, and maxItems its
	// lines and labels together: each becomes some hundred bytes when parsed.
	maxScrape = 8 << 20
	maxItems  = 200_000
	// scrapeTimeout bounds a scrape whose interval is shorter.
	scrapeTimeout = 5 * time.Second
	// maxHead bounds the answer's head.
	maxHead = 64 << 10
	// maxValue bounds a value: sums of them stay finite.
	maxValue = 1e15
)

// scraper fetches and parses one metrics page.
type scraper struct {
	url     *url.URL
	timeout time.Duration
	client  *http.Client
}

// newScraper makes a client of its own: no proxy stands between us and the
// evidence, and nobody else's connection limits apply.
func newScraper(u *url.URL, interval time.Duration, t *tls.Config) *scraper {
	return &scraper{url: u, timeout: max(interval, scrapeTimeout), client: &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil,
			DialContext:            (&net.Dialer{Timeout: scrapeTimeout}).DialContext,
			TLSClientConfig:        t,
			TLSHandshakeTimeout:    scrapeTimeout,
			MaxIdleConns:           1,
			MaxConnsPerHost:        1,
			MaxResponseHeaderBytes: maxHead,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (s *scraper) close() { s.client.CloseIdleConnections() }

// fetch scrapes once. Its errors carry no secret of the URL.
func (s *scraper) fetch(ctx context.Context) (all []sample, malformed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url.String(), nil)
	if err != nil {
		return nil, 0, errors.New("bad URL")
	}
	// OpenMetrics is not asked for: its counters carry the same values.
	req.Header.Set("Accept", "text/plain;version=0.0.4, */*;q=0.1")
	req.Header.Set("User-Agent", "mcpflood")
	resp, err := s.client.Do(req)
	if err != nil {
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err // the rest of it is the URL
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %v", s.timeout)
		}
		return nil, 0, err
	}
	defer resp.Body.Close()
	if err := checkStatus(resp); err != nil {
		return nil, 0, err
	}
	body := &bounded{r: resp.Body}
	all, malformed, err = parse(body)
	switch {
	case body.over != nil:
		return nil, 0, body.over
	case errors.Is(err, context.DeadlineExceeded):
		return nil, 0, fmt.Errorf("the answer did not end within %v", s.timeout)
	case err != nil:
		return nil, 0, fmt.Errorf("the answer (%s) is no Prometheus text: %s",
			printable(clip(resp.Header.Get("Content-Type"), maxName)), printable(clip(err.Error(), maxShown)))
	}
	return all, malformed, nil
}

// bounded reads a page up to our limits.
type bounded struct {
	r            io.Reader
	bytes, items int
	line         int   // bytes since the last line end
	over         error // the limit that was met
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.over != nil {
		return 0, b.over
	}
	n, err := b.r.Read(p)
	b.bytes += n
	b.items += bytes.Count(p[:n], []byte{'\n'}) + bytes.Count(p[:n], []byte{','})
	if i := bytes.LastIndexByte(p[:n], '\n'); i >= 0 {
		b.line = n - i - 1
	} else {
		b.line += n
	}
	switch {
	case b.line > MaxLine:
		b.over = fmt.Errorf("the answer has a line longer than %d KiB", MaxLine>>10)
	case b.bytes > maxScrape:
		b.over = fmt.Errorf("the answer is longer than %d MiB", maxScrape>>20)
	case b.items > maxItems:
		b.over = fmt.Errorf("the answer has more than %d lines and labels", maxItems)
	}
	return n, err
}

func checkStatus(resp *http.Response) error {
	switch {
	case resp.StatusCode == http.StatusOK:
		return nil
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		return fmt.Errorf("HTTP %d: it wants credentials: put them in the URL, as in http://USER:PASSWORD@HOST/metrics", resp.StatusCode)
	case resp.StatusCode == http.StatusNotFound:
		return errors.New("HTTP 404: is the path right? most servers have /metrics")
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		to := "elsewhere"
		if u, err := resp.Location(); err == nil {
			to = "to " + printable(clip(safeURL(u), maxShown))
		}
		return fmt.Errorf("HTTP %d: it redirects %s: give that URL", resp.StatusCode, to)
	}
	return fmt.Errorf("HTTP %d", resp.StatusCode)
}

// parse reads Prometheus text into series, sorted by name and labels. Values
// that are no number are left out and counted.
func parse(r io.Reader) (all []sample, malformed int, err error) {
	defer func() {
		// The parser is not ours, its input is not anybody's we trust.
		if p := recover(); p != nil {
			all, err = nil, fmt.Errorf("parser failed: %v", p)
		}
	}()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(r)
	if err != nil {
		return nil, 0, err
	}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			var labels []label
			for _, l := range m.GetLabel() {
				labels = append(labels, label{l.GetName(), l.GetValue()})
			}
			for _, v := range values(m) {
				if math.IsNaN(v.value) || math.Abs(v.value) > maxValue {
					malformed++
					continue
				}
				all = append(all, sample{name + v.suffix, labels, v.value})
			}
		}
	}
	slices.SortFunc(all, func(a, b sample) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return slices.CompareFunc(a.labels, b.labels, func(x, y label) int {
			if c := strings.Compare(x.name, y.name); c != 0 {
				return c
			}
			return strings.Compare(x.value, y.value)
		})
	})
	return all, malformed, nil
}

type suffixed struct {
	suffix string
	value  float64
}

// values gives what a metric counts; of histograms and summaries the count and
// the sum.
func values(m *dto.Metric) []suffixed {
	switch {
	case m.Counter != nil:
		return []suffixed{{"", m.Counter.GetValue()}}
	case m.Gauge != nil:
		return []suffixed{{"", m.Gauge.GetValue()}}
	case m.Untyped != nil:
		return []suffixed{{"", m.Untyped.GetValue()}}
	case m.Summary != nil:
		return []suffixed{{"_count", float64(m.Summary.GetSampleCount())}, {"_sum", m.Summary.GetSampleSum()}}
	case m.Histogram != nil:
		n := m.Histogram.GetSampleCountFloat()
		if n == 0 {
			n = float64(m.Histogram.GetSampleCount())
		}
		return []suffixed{{"_count", n}, {"_sum", m.Histogram.GetSampleSum()}}
	}
	return nil
}
