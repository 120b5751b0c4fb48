package oracle

import (
	"io"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcpflood/mcpflood/history"
)

// drawRun makes a history of a few calls with random cuts and behaviour.
func drawRun(t *rapid.T) []history.Record {
	s := newSim()
	s.timed = rapid.Bool().Draw(t, "timed")
	s.effects = rapid.Bool().Draw(t, "effects")
	s.noStops = rapid.Bool().Draw(t, "no stops")
	s.watch = time.Duration(rapid.IntRange(500, 5000).Draw(t, "watch")) * ms
	s.lag = time.Duration(rapid.IntRange(0, 300).Draw(t, "lag")) * ms
	n := rapid.IntRange(1, 8).Draw(t, "calls")
	for i := range n {
		at := load + time.Duration(rapid.IntRange(0, 20).Draw(t, "begun"))*50*ms
		r := ref(uint64(i+1), 1)
		if rapid.IntRange(0, 3).Draw(t, "cut") == 0 {
			s.uncut(r, at)
			continue
		}
		after := time.Duration(rapid.IntRange(0, 26).Draw(t, "after")) * 50 * ms
		c := cut{
			after: after,
			style: rapid.SampledFrom([]history.Style{history.Fin, history.Fin, history.Reset, history.Vanish, history.HalfClose}).Draw(t, "style"),
			does:  drawBehaviour(t, after), again: rapid.Bool().Draw(t, "again"),
		}
		s.cut(r, at, c)
		if c.again {
			s.uncut(r.Next(), at+after+time.Duration(rapid.IntRange(0, 10).Draw(t, "backoff"))*50*ms)
		}
	}
	return s.build()
}

func drawBehaviour(t *rapid.T, after time.Duration) does {
	d := does{}
	switch rapid.IntRange(0, 3).Draw(t, "behaviour") {
	case 0:
		return honest(after)
	case 1:
		return does{mute: true}
	case 2:
		d.stopAt = after + ms + time.Duration(rapid.IntRange(0, 10).Draw(t, "stops after"))*50*ms
	}
	if rapid.Bool().Draw(t, "says stop") {
		d.sayStop = after + ms + time.Duration(rapid.IntRange(0, 10).Draw(t, "says stop after"))*50*ms
	}
	if rapid.Bool().Draw(t, "effect") {
		d.effect = after + time.Duration(rapid.IntRange(1, 10).Draw(t, "effect after"))*50*ms
	}
	return d
}

type judged struct {
	Report   *Report
	Attempts []Judged
}

func judgeRecords(t *rapid.T, recs []history.Record) judged {
	var out judged
	r, err := Judge(inMemory(recs), func(j Judged) { out.Attempts = append(out.Attempts, j) })
	if err != nil {
		t.Fatal(err)
	}
	out.Report = r
	return out
}

// TestEveryAttemptOnce holds that each load attempt is judged once, in order,
// and that the counters add up.
func TestEveryAttemptOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs := drawRun(t)
		var want []history.Ref
		for _, r := range recs {
			if r.Start != nil && r.Start.Ref.Role == history.Load {
				want = append(want, r.Start.Ref)
			}
		}
		slices.SortFunc(want, history.Ref.Compare)
		out := judgeRecords(t, recs)
		var got []history.Ref
		cuts := 0
		for _, j := range out.Attempts {
			got = append(got, j.Start.Ref)
			if j.End.Cut != nil {
				cuts++
			}
			if (j.End.Cut != nil) != (j.Verdict != history.VerdictNone) {
				t.Fatalf("%s: cut %v, verdict %v", j.Start.Ref, j.End.Cut != nil, j.Verdict)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("attempts (-want +got):\n%s", d)
		}
		sum := 0
		for _, n := range out.Report.Counts.Verdicts {
			sum += n
		}
		if sum != cuts || out.Report.Counts.Cuts != cuts {
			t.Fatalf("%d cuts, %d verdicts, counted %d", cuts, sum, out.Report.Counts.Cuts)
		}
	})
}

// TestRepeats holds that a history is judged alike each time.
func TestRepeats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs := drawRun(t)
		if d := cmp.Diff(judgeRecords(t, recs), judgeRecords(t, recs)); d != "" {
			t.Fatalf("second time (-first +second):\n%s", d)
		}
	})
}

// TestOrderOfArrival holds that records that became known at the same time may
// be in any order, as long as each call's and each source's order stands.
func TestOrderOfArrival(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs := drawRun(t)
		before := judgeRecords(t, recs)
		tied := func(a, b *history.Record) bool {
			return (callOf(a) == callOf(b)) || callOf(a).IsZero() || callOf(b).IsZero()
		}
		mixed := slices.Clone(recs)
		for range 3 * len(mixed) {
			i := rapid.IntRange(0, len(mixed)-2).Draw(t, "swap")
			a, b := &mixed[i], &mixed[i+1]
			if a.T == b.T && !tied(a, b) {
				mixed[i], mixed[i+1] = mixed[i+1], mixed[i]
			}
		}
		if d := cmp.Diff(before, judgeRecords(t, mixed)); d != "" {
			t.Fatalf("in another order (-before +after):\n%s", d)
		}
	})
}

func callOf(r *history.Record) history.Ref {
	switch {
	case r.Start != nil:
		return r.Start.Ref.Whole()
	case r.End != nil:
		return r.End.Ref.Whole()
	case r.Call != nil:
		return r.Call.Ref
	case r.Evidence != nil:
		return r.Evidence.Ref.Whole()
	}
	return history.Ref{}
}

// TestMoreEvidence holds that more evidence on a cut attempt never turns a fail
// into a pass: what proves work makes no verdict milder, and no claim of a stop
// undoes proven work.
func TestMoreEvidence(t *testing.T) {
	rank := map[history.Verdict]int{history.RanOn: 2, history.Late: 1}
	rapid.Check(t, func(t *rapid.T) {
		recs := drawRun(t)
		before := judgeRecords(t, recs)
		var cuts []Judged
		for _, j := range before.Attempts {
			if j.Class == history.ClassSignal {
				cuts = append(cuts, j)
			}
		}
		if len(cuts) == 0 {
			return
		}
		j := rapid.SampledFrom(cuts).Draw(t, "attempt")
		kind := rapid.SampledFrom([]history.Kind{history.Work, history.Effect, history.Completion, history.Stop}).Draw(t, "kind")
		e := history.Evidence{Source: 1, Kind: kind, Ref: j.Start.Ref, By: "id"}
		if kind == history.Work {
			e.Units = float64(rapid.IntRange(1, 3).Draw(t, "units"))
		}
		at := j.End.Cut.C1 + time.Duration(rapid.IntRange(1, 1500).Draw(t, "at"))*ms
		if w := recs[1].Witness; w != nil && w.Timed || recs[2].Witness != nil && recs[2].Witness.Timed {
			e.Timed, e.Lo, e.Hi = true, at+time.Hour, at+time.Hour+1
		}
		more := append(slices.Clone(recs), history.Record{T: at + 300*ms, Evidence: &e})
		slices.SortStableFunc(more, func(a, b history.Record) int { return int(a.T - b.T) })
		after := judgeRecords(t, more)
		for i, was := range before.Attempts {
			is := after.Attempts[i]
			milder := rank[is.Verdict] < rank[was.Verdict]
			if kind == history.Stop { // who ran on may be late; a stop that came sooner may undo the claim that it was late
				milder = was.Verdict == history.RanOn && rank[is.Verdict] == 0
			}
			if milder {
				t.Fatalf("%s: %v (%s) became %v (%s) by one more %v", was.Start.Ref, was.Verdict, was.Reason, is.Verdict, is.Reason, kind)
			}
		}
		if kind != history.Stop && kind != history.Work && before.Report.Judgement == history.Fail && after.Report.Judgement == history.Pass {
			t.Fatalf("run: fail became pass by one more %v", kind)
		}
	})
}

// stream generates a history of many calls without holding it.
type stream struct {
	calls, evidence int
	n               int
	queue           []history.Record
	done            bool
	begun           time.Duration
}

// Next gives the records of one call after the other; calls overlap in time by
// their watches.
func (s *stream) Next() (history.Record, error) {
	for len(s.queue) == 0 {
		if s.done {
			return history.Record{}, io.EOF
		}
		s.fill()
	}
	r := s.queue[0]
	s.queue = s.queue[1:]
	return r, nil
}

func (s *stream) fill() {
	add := func(t time.Duration, r history.Record) { r.T = t; s.queue = append(s.queue, r) }
	if s.n == 0 {
		add(0, history.Record{Run: &history.Run{Schema: history.Schema, Cuts: []string{"fin@mid"}, Watch: 2 * time.Second}})
		add(0, history.Record{Witness: &newSim().log})
		add(0, history.Record{Budget: &history.Budget{StopWithin: 150 * ms}})
	}
	s.n++
	if s.n > s.calls {
		add(s.begun, history.Record{Close: &history.Close{Reason: "calls"}})
		s.done = true
		return
	}
	s.begun += 20 * ms
	r, t := ref(uint64(s.n), 1), s.begun
	add(t, history.Record{Start: &history.Start{Ref: r, Intended: t, Begun: t}})
	n := s.evidence
	e := &history.End{Ref: r, Begun: t, Connected: t, Sent: t, FirstByte: t, Headers: t, Form: "sse", Outcome: history.Delivered, Result: t + 19*ms, Ended: t + 19*ms}
	if s.n%2 == 0 {
		n /= 2
		e.Outcome, e.Result, e.Ended = history.Cut, 0, t+10*ms
		e.Cut = &history.CutDone{Style: history.Fin, Phase: history.PhaseMid, Cause: "plan", Due: e.Ended, C0: e.Ended, C1: e.Ended}
		e.Planned = &history.Planned{Style: history.Fin, Moment: "mid"}
	}
	for i := range n {
		add(t+time.Duration(i)*900*time.Microsecond, history.Record{Evidence: &history.Evidence{Source: 1, Kind: history.Work, Units: 1, Ref: r, By: "id", Text: "step of the tool id=whatever"}})
	}
	add(e.Ended, history.Record{End: e})
	add(e.Ended, history.Record{Call: &history.Call{Ref: r.Whole(), Outcome: "x", Attempts: 1}})
}

func generated(calls, evidence int) Source {
	return func() (Cursor, error) { return &stream{calls: calls, evidence: evidence}, nil }
}

// TestMemoryIsFlat judges ten times as many calls in about the same heap.
func TestMemoryIsFlat(t *testing.T) {
	peak := func(calls int) uint64 {
		var top uint64
		visited := 0
		measure := func() {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			top = max(top, m.HeapAlloc)
		}
		if _, err := Judge(generated(calls, 20), func(Judged) {
			if visited++; visited%(calls/5) == 0 {
				measure()
			}
		}); err != nil {
			t.Fatal(err)
		}
		if visited != calls {
			t.Fatalf("%d of %d calls visited", visited, calls)
		}
		return top
	}
	few, many := peak(5_000), peak(50_000)
	if many > few+few/4+1<<20 {
		t.Errorf("heap at most %d KiB for 5,000 calls, %d KiB for 50,000: it grows with the run", few>>10, many>>10)
	}
	t.Logf("heap at most %d KiB for 5,000 calls, %d KiB for 50,000", few>>10, many>>10)
}

func BenchmarkJudge(b *testing.B) {
	const calls, evidence = 2_000, 20
	records := 0
	c, _ := generated(calls, evidence)()
	for {
		if _, err := c.Next(); err != nil {
			break
		}
		records++
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Judge(generated(calls, evidence), func(Judged) {}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
