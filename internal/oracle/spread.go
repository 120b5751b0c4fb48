package oracle

import (
	"math"
	"math/bits"
	"slices"
)

const (
	// exactSamples is up to where a spread keeps every sample.
	exactSamples = 4096
	// spreadBits is the precision of a spread beyond that: 1/128.
	spreadBits = 7
)

// spread keeps the distribution of a figure that is not negative in bounded
// memory: exactly at first, then in logarithmic buckets. It does not depend on
// the order of its samples.
type spread struct {
	n        int64
	min, max int64
	exact    []int64
	buckets  map[int]int64
}

func (s *spread) add(v int64) {
	v = max(v, 0)
	if s.n == 0 || v < s.min {
		s.min = v
	}
	s.max = max(s.max, v)
	s.n++
	if s.buckets == nil {
		s.exact = append(s.exact, v)
		if len(s.exact) <= exactSamples {
			return
		}
		s.buckets = make(map[int]int64)
		for _, x := range s.exact {
			s.buckets[bucket(x)]++
		}
		s.exact = nil
		return
	}
	s.buckets[bucket(v)]++
}

// quantile is the smallest sample that at least the share q of all samples do
// not exceed; 0 without samples.
func (s *spread) quantile(q float64) int64 {
	if s.n == 0 {
		return 0
	}
	rank := max(int64(math.Ceil(q*float64(s.n))), 1)
	if s.buckets == nil {
		slices.Sort(s.exact)
		return s.exact[min(rank, s.n)-1]
	}
	keys := make([]int, 0, len(s.buckets))
	for k := range s.buckets {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if rank -= s.buckets[k]; rank <= 0 {
			return min(max(bucketValue(k), s.min), s.max)
		}
	}
	return s.max
}

func (s *spread) median() int64 { return s.quantile(0.5) }

func bucket(v int64) int {
	shift := max(bits.Len64(uint64(v))-spreadBits-1, 0)
	return shift<<spreadBits + int(v>>shift)
}

// bucketValue is the middle of a bucket.
func bucketValue(k int) int64 {
	shift := max(k>>spreadBits-1, 0)
	low := int64(k-shift<<spreadBits) << shift
	return low + (int64(1)<<shift)/2
}
