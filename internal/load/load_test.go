package load

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcpflood/mcpflood/history"
)

func TestOpenAt(t *testing.T) {
	type at struct {
		i    int
		want time.Duration
		ok   bool
	}
	for name, c := range map[string]struct {
		open Open
		at   []at
	}{
		"constant": {Open{Rate: 50, Duration: 2 * time.Second}, []at{
			{-1, 0, false}, {0, 0, true}, {1, 20 * time.Millisecond, true}, {50, time.Second, true}, {99, 1980 * time.Millisecond, true}, {100, 0, false}}},
		"a day later, no drift": {Open{Rate: 3}, []at{
			{3 * 86400, 24 * time.Hour, true}, {3*86400 + 1, 24*time.Hour + 333333333, true}}},
		"count first": {Open{Rate: 1, Count: 3, Duration: time.Hour}, []at{{2, 2 * time.Second, true}, {3, 0, false}}},
		// 100/s over 10 s of ramp are 500 arrivals; the 125th comes at half the ramp.
		"ramp": {Open{Rate: 100, Ramp: 10 * time.Second}, []at{
			{0, 0, true}, {125, 5 * time.Second, true}, {500, 10 * time.Second, true}, {600, 11 * time.Second, true}}},
		"ramp over the whole load": {Open{Rate: 100, Ramp: 10 * time.Second, Duration: 10 * time.Second}, []at{
			{499, 9989994995, true}, {500, 0, false}}},
		"slow": {Open{Rate: 1e-6}, []at{{1, 1e6 * time.Second, true}, {10_000, 0, false}}},
	} {
		for _, a := range c.at {
			if got, ok := c.open.At(a.i); ok != a.ok || (got-a.want).Abs() > time.Nanosecond {
				t.Errorf("%s: At(%d) = %v, %v, want %v, %v", name, a.i, got, ok, a.want, a.ok)
			}
		}
	}
}

// At is the inverse of the cumulative rate and never goes back.
func TestOpenAtInverts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Open{
			Rate: rapid.Float64Range(0.01, 1e5).Draw(t, "rate"),
			Ramp: time.Duration(rapid.Int64Range(0, int64(10*time.Minute)).Draw(t, "ramp")),
		}
		i := rapid.IntRange(0, 1_000_000).Draw(t, "i")
		a, okA := o.At(i)
		b, okB := o.At(i + 1)
		if !okA || !okB || b < a {
			t.Fatalf("At(%d), At(%d) = %v %v, %v %v", i, i+1, a, okA, b, okB)
		}
		s, ramp := a.Seconds(), o.Ramp.Seconds()
		n := o.Rate * (s - ramp/2)
		if s < ramp {
			n = o.Rate * s * s / (2 * ramp)
		}
		// A nanosecond of rounding is worth Rate·1e-9 arrivals.
		if math.Abs(n-float64(i)) > 1e-6*float64(i)+o.Rate*2e-9+1e-9 {
			t.Fatalf("%+v: At(%d) = %v, by when %v have arrived", o, i, a, n)
		}
	})
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		v    interface{ Validate() error }
		want int
	}{
		{Open{Rate: 50}, 0},
		{Open{}, 1},
		{Open{Rate: math.NaN(), Ramp: -1, Duration: -1, Count: -1}, 4},
		{Open{Rate: math.Inf(1)}, 1},
		{Closed{Streams: 5}, 0},
		{Closed{Ramp: -1}, 2},
	} {
		got := 0
		if err := c.v.Validate(); err != nil {
			got = 1 + strings.Count(err.Error(), "\n")
		}
		if got != c.want {
			t.Errorf("%+v: Validate() found %d problems, want %d", c.v, got, c.want)
		}
	}
}

func TestOpenRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := history.NewClock()
		time.Sleep(time.Second) // a load does not begin with its run
		var got, late []time.Duration
		started, dropped := Open{Rate: 4, Duration: time.Second}.Run(t.Context(), clock, func(i int, intended time.Duration) bool {
			got = append(got, intended)
			late = append(late, clock.Now()-intended)
			return i != 2
		})
		want := []time.Duration{1000 * time.Millisecond, 1250 * time.Millisecond, 1500 * time.Millisecond, 1750 * time.Millisecond}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("intended starts (-want +got):\n%s", d)
		}
		if started != 3 || dropped != 1 {
			t.Errorf("started, dropped = %d, %d, want 3, 1", started, dropped)
		}
		if slices.Max(late) != 0 {
			t.Errorf("late by %v in virtual time, want 0", late)
		}
	})
}

// Falling behind delays nothing that comes later, and nothing is left out.
func TestOpenRunCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := history.NewClock()
		var actual []time.Duration
		Open{Rate: 10, Count: 5}.Run(t.Context(), clock, func(i int, _ time.Duration) bool {
			actual = append(actual, clock.Now())
			if i == 0 {
				time.Sleep(250 * time.Millisecond)
			}
			return true
		})
		ms := time.Millisecond
		if d := cmp.Diff([]time.Duration{0, 250 * ms, 250 * ms, 300 * ms, 400 * ms}, actual); d != "" {
			t.Errorf("actual starts (-want +got):\n%s", d)
		}
	})
}

func TestRunsEndWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := history.NewClock()
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		started, _ := Open{Rate: 1}.Run(ctx, clock, func(int, time.Duration) bool { return true })
		if started != 2 || clock.Now() != 1500*time.Millisecond {
			t.Errorf("open: started %d until %v, want 2 until 1.5s", started, clock.Now())
		}
		n := Closed{Streams: 3}.Run(ctx, clock, func(context.Context, int, time.Duration) { t.Error("a call started") })
		if n != 0 {
			t.Errorf("closed: %d calls, want 0", n)
		}
	})
}

func TestClosedRun(t *testing.T) {
	type call struct {
		I        int
		Intended time.Duration
	}
	for name, c := range map[string]struct {
		closed Closed
		want   []call
		end    time.Duration
	}{
		"ramp and duration": {
			Closed{Streams: 2, Ramp: 2 * time.Second, Duration: 4 * time.Second},
			[]call{{0, 0}, {1, time.Second}, {2, 1500 * time.Millisecond}, {3, 2500 * time.Millisecond}, {4, 3 * time.Second}},
			4500 * time.Millisecond,
		},
		"count": {
			Closed{Streams: 2, Ramp: 2 * time.Second, Count: 3},
			[]call{{0, 0}, {1, time.Second}, {2, 1500 * time.Millisecond}},
			3 * time.Second,
		},
		"more streams than calls": {
			Closed{Streams: 500, Count: 1},
			[]call{{0, 0}},
			1500 * time.Millisecond,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			clock := history.NewClock()
			var mu sync.Mutex
			var got []call
			n := c.closed.Run(t.Context(), clock, func(_ context.Context, i int, intended time.Duration) {
				mu.Lock()
				got = append(got, call{i, intended})
				mu.Unlock()
				time.Sleep(1500 * time.Millisecond)
			})
			if d := cmp.Diff(c.want, got); d != "" || n != len(c.want) || clock.Now() != c.end {
				t.Errorf("%s: %d calls until %v, want %d until %v (-want +got):\n%s", name, n, clock.Now(), len(c.want), c.end, d)
			}
		})
	}
}

// The waiter is not much later than the machine makes it: the bound is far
// above a quiet machine's 0.1 ms, since tests share their cores.
func TestWaitUntilRealTime(t *testing.T) {
	clock := history.NewClock()
	var late []time.Duration
	for range 20 {
		due := clock.Now() + 3*time.Millisecond
		if !waitUntil(t.Context(), clock, due) {
			t.Fatal("waitUntil = false")
		}
		if l := clock.Now() - due; l < 0 {
			t.Fatalf("woke %v too early", -l)
		} else {
			late = append(late, l)
		}
	}
	slices.Sort(late)
	t.Logf("lateness: median %v, most %v", late[len(late)/2], late[len(late)-1])
	if late[0] > 50*time.Millisecond {
		t.Errorf("never woke within 50ms of the moment: %v", late)
	}
}

func BenchmarkOpenAt(b *testing.B) {
	o := Open{Rate: 1234.5, Ramp: time.Minute}
	i := 0
	for b.Loop() {
		o.At(i)
		i++
	}
}
