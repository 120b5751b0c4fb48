// Package stats is the statistics of a run: survival curves of work that may
// still have been going on when nobody watched any more. It is pure.
package stats

import (
	"cmp"
	"slices"
	"time"
)

// MaxPoints bounds a curve.
const MaxPoints = 200

// Survival estimates how long run-on work lasts, from times of which some are
// only known to be at least so long. The zero value is empty.
type Survival struct{ samples []sample }

type sample struct {
	t        time.Duration
	censored bool
}

// Add adds one attempt: its work ended t after the cut or, censored, was still
// going on then.
func (s *Survival) Add(t time.Duration, censored bool) {
	s.samples = append(s.samples, sample{max(t, 0), censored})
}

// Len is how many were added.
func (s *Survival) Len() int { return len(s.samples) }

// Point is a step of the curve: from T on, Share of the attempts are still
// working.
type Point struct {
	T     time.Duration
	Share float64
}

// Curve is the Kaplan–Meier estimate: a step at each time at which work ended,
// beginning with everybody at 0. A censored attempt counts among those at risk
// until its time. Beyond [MaxPoints] steps only every so many are kept, the
// last always.
func (s *Survival) Curve() []Point {
	if len(s.samples) == 0 {
		return nil
	}
	sorted := slices.SortedFunc(slices.Values(s.samples), func(a, b sample) int { return cmp.Compare(a.t, b.t) })
	points := []Point{{0, 1}}
	share := 1.0
	for i := 0; i < len(sorted); {
		t, ended, j := sorted[i].t, 0, i
		for ; j < len(sorted) && sorted[j].t == t; j++ {
			if !sorted[j].censored {
				ended++
			}
		}
		if ended > 0 {
			share *= 1 - float64(ended)/float64(len(sorted)-i)
			points = append(points, Point{t, share})
		}
		i = j
	}
	return thin(points)
}

func thin(points []Point) []Point {
	if len(points) <= MaxPoints {
		return points
	}
	out := make([]Point, 0, MaxPoints)
	for i := range MaxPoints {
		out = append(out, points[i*(len(points)-1)/(MaxPoints-1)])
	}
	return out
}
