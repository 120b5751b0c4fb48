// Package stats is the statistics of a run: survival curves of work that may
// still have been going on when nobody watched any more. It is pure.
package stats

import (
	"maps"
	"slices"
	"time"
)

// MaxPoints bounds a curve.
const MaxPoints = 200

// Survival estimates how long run-on work lasts, from times of which some are
// only known to be at least so long. Times are kept to three digits, so that
// memory does not grow with their number. The zero value is empty.
type Survival struct {
	at map[time.Duration]*counts
	n  int
}

type counts struct{ ended, censored int }

// Add adds one attempt: its work ended t after the cut or, censored, was still
// going on then.
func (s *Survival) Add(t time.Duration, censored bool) {
	if s.at == nil {
		s.at = map[time.Duration]*counts{}
	}
	t = coarse(t)
	c := s.at[t]
	if c == nil {
		c = &counts{}
		s.at[t] = c
	}
	if censored {
		c.censored++
	} else {
		c.ended++
	}
	s.n++
}

// coarse rounds to three digits, and to 10 µs below a millisecond.
func coarse(t time.Duration) time.Duration {
	unit := 10 * time.Microsecond
	for t/unit >= 1000 {
		unit *= 10
	}
	return max(t, 0).Round(unit)
}

// Len is how many were added.
func (s *Survival) Len() int { return s.n }

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
	if s.n == 0 {
		return nil
	}
	points := []Point{{0, 1}}
	share, risk := 1.0, s.n
	for _, t := range slices.Sorted(maps.Keys(s.at)) {
		c := s.at[t]
		if c.ended > 0 {
			share *= 1 - float64(c.ended)/float64(risk)
			points = append(points, Point{t, share})
		}
		risk -= c.ended + c.censored
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
