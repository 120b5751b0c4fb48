package latency

import (
	"math"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// The range of a recorder and its resolution.
const (
	Lowest  = time.Microsecond
	Highest = 24 * time.Hour
	digits  = 3
)

// Recorder holds the samples of one time. The zero value is ready for use. A
// Recorder is not safe for concurrent use and must not be copied after its
// first sample. Empty it takes some bytes, and then some for every distinct
// value, never more than about 200 KiB.
type Recorder struct {
	exact, censored tally
	outOfRange      int64
}

// tally is a histogram with the exact extremes and sum beside.
type tally struct {
	hist     *hdr.PackedHistogram
	n        int64
	min, max time.Duration
	sum      float64
}

// Record adds a sample.
func (r *Recorder) Record(d time.Duration) { r.exact.add(r.fit(d)) }

// Censor adds a sample of which is only known that it is at least d.
func (r *Recorder) Censor(d time.Duration) { r.censored.add(r.fit(d)) }

// fit moves a sample outside the range to its edge and counts it. Times below
// Lowest lie inside: they are merely below the resolution.
func (r *Recorder) fit(d time.Duration) time.Duration {
	if d < 0 || d > Highest {
		r.outOfRange++
		return min(max(d, 0), Highest)
	}
	return d
}

func newHistogram() *hdr.PackedHistogram { return hdr.NewPacked(int64(Lowest), int64(Highest), digits) }

func (t *tally) add(d time.Duration) {
	if t.hist == nil {
		t.hist = newHistogram()
	}
	if err := t.hist.RecordValue(int64(d)); err != nil {
		panic("latency: invariant: a fitted sample is inside the range: " + err.Error())
	}
	if t.n == 0 || d < t.min {
		t.min = d
	}
	t.max = max(t.max, d)
	t.sum += float64(d)
	t.n++
}

func (t *tally) merge(o *tally) {
	if o.n == 0 {
		return
	}
	if t.hist == nil {
		t.hist = newHistogram()
	}
	if dropped := t.hist.Merge(o.hist); dropped != 0 {
		panic("latency: invariant: all recorders have one range")
	}
	if t.n == 0 || o.min < t.min {
		t.min = o.min
	}
	t.max = max(t.max, o.max)
	t.sum += o.sum
	t.n += o.n
}

// Merge adds all samples of o, which stays as it is.
func (r *Recorder) Merge(o *Recorder) {
	r.exact.merge(&o.exact)
	r.censored.merge(&o.censored)
	r.outOfRange += o.outOfRange
}

// Count is the number of all samples, the censored ones among them.
func (r *Recorder) Count() int64 { return r.exact.n + r.censored.n }

// Censored is the number of censored samples.
func (r *Recorder) Censored() int64 { return r.censored.n }

// OutOfRange is how many samples were moved to the edge of the range.
func (r *Recorder) OutOfRange() int64 { return r.outOfRange }

// Value is a statistic of the samples.
type Value struct {
	Time time.Duration
	// AtLeast: a censored sample is touched, so the real value is Time or more,
	// and may be anything above.
	AtLeast bool
}

// Milliseconds is the value as thresholds see it: +Inf where a censored sample
// is touched.
func (v Value) Milliseconds() float64 {
	if v.AtLeast {
		return math.Inf(1)
	}
	return float64(v.Time) / float64(time.Millisecond)
}

// Percentile is the smallest sample that p percent of all samples do not
// exceed, p from 0 to 100, at the recorder's resolution; false without samples.
// In the order of samples a censored one stands above every other.
func (r *Recorder) Percentile(p float64) (Value, bool) {
	n := r.Count()
	if n == 0 {
		return Value{}, false
	}
	// The slack keeps p = 99.9 of 1,000 samples at rank 999: in binary the
	// product is a hair above.
	rank := max(1, min(n, int64(math.Ceil(p/100*float64(n)-1e-9))))
	if rank <= r.exact.n {
		return Value{Time: r.exact.at(rank)}, true
	}
	// Every sample counted at its lower bound gives a lower bound.
	all := r.all()
	return Value{Time: all.at(rank), AtLeast: true}, true
}

// Min is the smallest sample; false without samples.
func (r *Recorder) Min() (Value, bool) {
	all := r.all()
	return Value{all.min, r.exact.n == 0}, all.n > 0
}

// Max is the largest sample; false without samples.
func (r *Recorder) Max() (Value, bool) {
	all := r.all()
	return Value{all.max, r.censored.n > 0}, all.n > 0
}

// Mean is the mean of all samples; false without samples.
func (r *Recorder) Mean() (Value, bool) {
	n := r.Count()
	if n == 0 {
		return Value{}, false
	}
	return Value{time.Duration((r.exact.sum + r.censored.sum) / float64(n)), r.censored.n > 0}, true
}

// all is every sample, censored ones at their lower bound.
func (r *Recorder) all() *tally {
	switch {
	case r.censored.n == 0:
		return &r.exact
	case r.exact.n == 0:
		return &r.censored
	}
	var t tally
	t.merge(&r.exact)
	t.merge(&r.censored)
	return &t
}

// at is the sample at a rank from 1 to n.
func (t *tally) at(rank int64) time.Duration {
	// The histogram turns a percentile into the rank nearest to it, so this
	// percentile hits the rank; it answers with the upper edge of a bucket, which
	// for 0 lies just below Lowest.
	v := t.hist.ValueAtPercentile(100 * float64(rank) / float64(t.n))
	return min(max(time.Duration(v).Truncate(Lowest), t.min), t.max)
}
