package latency

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const ms = time.Millisecond

func TestEmpty(t *testing.T) {
	var r Recorder
	if _, ok := r.Percentile(50); ok || r.Count() != 0 {
		t.Error("an empty recorder has a median")
	}
	for name, f := range map[string]func() (Value, bool){"Min": r.Min, "Max": r.Max, "Mean": r.Mean} {
		if v, ok := f(); ok {
			t.Errorf("%s of an empty recorder = %v", name, v)
		}
	}
}

func TestStatistics(t *testing.T) {
	var r Recorder
	for i := 1; i <= 1000; i++ {
		r.Record(time.Duration(i) * ms)
	}
	for p, want := range map[float64]time.Duration{0: ms, 50: 500 * ms, 90: 900 * ms, 99: 990 * ms, 99.9: 999 * ms, 100: 1000 * ms} {
		got, ok := r.Percentile(p)
		if !ok || got.AtLeast || math.Abs(float64(got.Time-want)) > 0.001*float64(want) {
			t.Errorf("Percentile(%v) = %v, %v, want %v", p, got, ok, want)
		}
	}
	mean, _ := r.Mean()
	low, _ := r.Min()
	high, _ := r.Max()
	if mean.Time != 500500*time.Microsecond || low.Time != ms || high.Time != time.Second {
		t.Errorf("mean, min, max = %v, %v, %v", mean, low, high)
	}
	if got := high.Milliseconds(); got != 1000 {
		t.Errorf("Milliseconds of 1s = %v", got)
	}
}

func TestSmallAndOutOfRange(t *testing.T) {
	var r Recorder
	for _, d := range []time.Duration{0, 300, Lowest, -time.Second, Highest, Highest + 1, math.MaxInt64} {
		r.Record(d)
	}
	r.Censor(-1)
	if r.Count() != 8 || r.OutOfRange() != 4 {
		t.Errorf("count, out of range = %d, %d, want 8, 4", r.Count(), r.OutOfRange())
	}
	if v, _ := r.Percentile(0); v.Time < 0 || v.Time > Lowest {
		t.Errorf("Percentile(0) = %v", v)
	}
	if v, _ := r.Percentile(85); v.Time != Highest {
		t.Errorf("Percentile(85) = %v, want %v", v, Highest)
	}
}

func TestCensored(t *testing.T) {
	var r Recorder
	for i := 1; i <= 90; i++ {
		r.Record(time.Duration(i) * ms)
	}
	for range 10 {
		r.Censor(50 * ms)
	}
	if r.Count() != 100 || r.Censored() != 10 {
		t.Errorf("count, censored = %d, %d, want 100, 10", r.Count(), r.Censored())
	}
	// Rank 90 is the largest exact sample; 91 is a censored one, of which is
	// known that it is at least the 91st of all lower bounds.
	for p, want := range map[float64]Value{90: {90 * ms, false}, 91: {81 * ms, true}, 99: {89 * ms, true}} {
		got, _ := r.Percentile(p)
		if got.AtLeast != want.AtLeast || math.Abs(float64(got.Time-want.Time)) > 0.001*float64(want.Time) {
			t.Errorf("Percentile(%v) = %v, want %v", p, got, want)
		}
		if math.IsInf(got.Milliseconds(), 1) != want.AtLeast {
			t.Errorf("Percentile(%v).Milliseconds() = %v", p, got.Milliseconds())
		}
	}
	low, _ := r.Min()
	high, _ := r.Max()
	mean, _ := r.Mean()
	if low.AtLeast || !high.AtLeast || !mean.AtLeast || high.Time != 90*ms {
		t.Errorf("min, max, mean = %v, %v, %v", low, high, mean)
	}
}

// Every percentile is what the sorted samples say, at the resolution.
func TestPercentileIsTheRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type sample struct {
			d        time.Duration
			censored bool
		}
		samples := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sample {
			return sample{time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "d")), rapid.IntRange(0, 3).Draw(t, "c") == 0}
		}), 1, 60).Draw(t, "samples")
		var a, b Recorder
		for i, s := range samples {
			r := &a
			if i%2 == 1 {
				r = &b
			}
			if s.censored {
				r.Censor(s.d)
			} else {
				r.Record(s.d)
			}
		}
		a.Merge(&b)
		p := float64(rapid.IntRange(0, 100).Draw(t, "p"))
		got, _ := a.Percentile(p)
		rank := max(1, int(math.Ceil(p/100*float64(len(samples))-1e-9)))
		byInfinity := slices.SortedFunc(slices.Values(samples), func(x, y sample) int {
			if x.censored != y.censored {
				if x.censored {
					return 1
				}
				return -1
			}
			return cmp.Compare(x.d, y.d)
		})
		want := byInfinity[rank-1]
		if want.censored {
			slices.SortFunc(samples, func(x, y sample) int { return cmp.Compare(x.d, y.d) })
			want.d = samples[rank-1].d
		}
		if got.AtLeast != want.censored || math.Abs(float64(got.Time-want.d)) > 0.001*float64(want.d)+float64(Lowest) {
			t.Fatalf("Percentile(%v) = %v, want %v of %v", p, got, want, byInfinity)
		}
	})
}

// The log is read back by HdrHistogram's own reader, interval by interval.
func TestLogIsReadByItsTools(t *testing.T) {
	var l Log
	l.Record("mcp_call_duration", 500*ms, 120*ms)
	l.Record("mcp_call_duration", 700*ms, 130*ms)
	l.Record("mcp_call_duration", 2500*ms, 140*ms)
	l.Record("a name, bad", 2500*ms, 7*ms)
	l.Censor("mcp_time_to_stop", 2600*ms, 15*time.Second)
	started := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	var buf bytes.Buffer
	if err := l.Write(&buf, started); err != nil {
		t.Fatal(err)
	}
	type line struct {
		Tag        string
		Start, End int64
		Count      int64
		Max        time.Duration
	}
	var got []line
	reader := hdr.NewHistogramLogReader(&buf)
	for {
		h, err := reader.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			break
		}
		got = append(got, line{h.Tag(), h.StartTimeMs() - started.UnixMilli(), h.EndTimeMs() - started.UnixMilli(), h.TotalCount(), time.Duration(h.Max()).Round(ms)})
	}
	want := []line{
		{"mcp_call_duration", 0, 1000, 2, 130 * ms},
		{"a_name__bad", 2000, 2601, 1, 7 * ms},
		{"mcp_call_duration", 2000, 2601, 1, 140 * ms},
		{"mcp_time_to_stop.censored", 2000, 2601, 1, 15 * time.Second},
	}
	near := gocmp.Comparer(func(x, y time.Duration) bool { return math.Abs(float64(x-y)) <= 0.001*float64(y) })
	if d := gocmp.Diff(want, got, near); d != "" {
		t.Errorf("log read back (-want +got):\n%s", d)
	}
}

// A long run keeps every sample in a bounded number of intervals, whatever the
// order in which they come.
func TestLogWidens(t *testing.T) {
	samples := make([]time.Duration, 5000)
	for i := range samples {
		samples[i] = time.Duration(i) * 1700 * ms
	}
	write := func() string {
		var l Log
		for _, at := range samples {
			l.Record("x", at, ms)
		}
		var buf bytes.Buffer
		if err := l.Write(&buf, time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		return buf.String()
	}
	forward := write()
	slices.Reverse(samples)
	if backward := write(); backward != forward {
		t.Error("the order of samples changes the log")
	}
	if n := strings.Count(forward, "Tag="); n > MaxIntervals || n < MaxIntervals/2 {
		t.Errorf("%d intervals, want %d to %d", n, MaxIntervals/2, MaxIntervals)
	}
	total := int64(0)
	reader := hdr.NewHistogramLogReader(strings.NewReader(forward))
	for {
		h, err := reader.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			break
		}
		total += h.TotalCount()
	}
	if total != 5000 {
		t.Errorf("%d samples read back, want 5000", total)
	}
}

func BenchmarkRecord(b *testing.B) {
	var r Recorder
	d := time.Duration(0)
	for b.Loop() {
		d = (d + 7919*time.Microsecond) % time.Second
		r.Record(d)
	}
}
