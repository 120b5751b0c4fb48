package stats

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestCurve(t *testing.T) {
	// Six attempts: 1s, 2s, 2s censored, 3s, 4s censored, 5s. By hand:
	// S(1)=5/6, S(2)=5/6·4/5=4/6, S(3)=4/6·2/3, S(5)=0.
	var s Survival
	for _, x := range []struct {
		t        time.Duration
		censored bool
	}{{5, false}, {1, false}, {2, true}, {2, false}, {4, true}, {3, false}} {
		s.Add(x.t*time.Second, x.censored)
	}
	want := []Point{{0, 1}, {time.Second, 5.0 / 6}, {2 * time.Second, 4.0 / 6}, {3 * time.Second, 4.0 / 9}, {5 * time.Second, 0}}
	close := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-12 && b-a < 1e-12 })
	if d := cmp.Diff(want, s.Curve(), close); d != "" {
		t.Errorf("curve (-want +got):\n%s", d)
	}
	var empty Survival
	if got := empty.Curve(); got != nil {
		t.Errorf("curve of nothing = %v", got)
	}
}

func TestCurveFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Survival
		anyEnd := false
		last := time.Duration(0)
		for range rapid.IntRange(1, 2000).Draw(t, "n") {
			d := time.Duration(rapid.IntRange(0, 1000).Draw(t, "d")) * time.Millisecond
			c := rapid.Bool().Draw(t, "censored")
			anyEnd = anyEnd || !c
			last = max(last, d)
			s.Add(d, c)
		}
		curve := s.Curve()
		if len(curve) > MaxPoints || curve[0] != (Point{0, 1}) {
			t.Fatalf("a curve of %d points that begins with %v", len(curve), curve[0])
		}
		for i := 1; i < len(curve); i++ {
			if curve[i].Share > curve[i-1].Share || curve[i].T < curve[i-1].T || curve[i].T > last {
				t.Fatalf("point %d, %v, follows %v", i, curve[i], curve[i-1])
			}
		}
	})
}
