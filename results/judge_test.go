package results

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/mcpflood/mcpflood/history"
)

// story writes the history of a run against a server with ten steps of 100 ms,
// an effect and a result.
type story struct {
	records []history.Record
	line    int64
}

const (
	step   = 100 * ms
	steps  = 10
	length = steps*step + 30*ms
)

func (s *story) at(t time.Duration, r history.Record) {
	r.T = t
	s.records = append(s.records, r)
}

func (s *story) evidence(r history.Ref, kind history.Kind, t time.Duration, text string) {
	s.line++
	e := &history.Evidence{Source: 1, Kind: kind, Ref: r, By: "id", Timed: true, Lo: t, Hi: t + ms/1000, Line: s.line, Text: text}
	if kind == history.Work {
		e.Units = 1
	}
	s.at(t+ms, history.Record{Evidence: e})
}

// work lets an attempt that begins at from work its first n steps.
func (s *story) work(r history.Ref, from time.Duration, n int) {
	for i := 1; i <= n; i++ {
		s.evidence(r, history.Work, from+time.Duration(i)*step, fmt.Sprintf("build_report step %d of %d", i, steps))
	}
	if n == steps {
		s.evidence(r, history.Effect, from+steps*step+ms, "build_report effect: e-mail to the team")
		s.evidence(r, history.Completion, from+length, "build_report finished")
	}
}

func (s *story) start(r history.Ref, from time.Duration, p *history.Planned) {
	s.at(from, history.Record{Start: &history.Start{Ref: r, Intended: from, Begun: from, Planned: p}})
}

func (s *story) delivered(r history.Ref, from time.Duration) {
	s.start(r, from, nil)
	s.work(r, from, steps)
	end := from + length + ms
	s.at(end, history.Record{End: &history.End{Ref: r, Outcome: history.Delivered, Begun: from, Connected: from, Sent: from, FirstByte: from + step, Headers: from + step,
		FirstEvent: from + step, LastEvent: from + steps*step, Result: end, Ended: end, Events: steps, Form: "sse", Status: 200}})
	s.over(r, "delivered", from, end)
}

func (s *story) over(r history.Ref, outcome string, from, end time.Duration) {
	s.at(end, history.Record{Call: &history.Call{Ref: r.Whole(), Outcome: outcome, Intended: from, Ended: end, Attempts: 1}})
}

// cut is an attempt cut after 350 ms that did so many steps in all.
func (s *story) cut(r history.Ref, from time.Duration, done int) {
	c0 := from + 350*ms
	p := &history.Planned{Style: history.Fin, Moment: "after(350ms)"}
	s.start(r, from, p)
	s.at(c0+ms, history.Record{End: &history.End{Ref: r, Outcome: history.Cut, Origin: history.Chaos, Begun: from, Connected: from, Sent: from, FirstByte: from + step, Headers: from + step,
		FirstEvent: from + step, LastEvent: from + 3*step, Ended: c0 + ms, Events: 3, Form: "sse", Status: 200, Planned: p,
		Cut: &history.CutDone{Style: history.Fin, Phase: history.PhaseMid, Cause: "plan", Due: c0 - ms/10, C0: c0, C1: c0 + ms/10}}})
	s.over(r, "failed", from, c0+ms)
	s.work(r, from, done)
	if done < steps {
		s.evidence(r, history.Stop, c0+5*ms, "build_report cancelled at step 3 (stream closed)")
	}
}

// run tells of a run with so many delivered, stopped and leaking calls.
func run(good, stopped, leaking int) *story {
	s := &story{}
	clauses := []string{"fin@after(350ms):50%"}
	s.at(0, history.Record{Run: &history.Run{Schema: history.Schema, ID: "k3x9", Nonce: history.Nonce{1}, Seed: 7, Started: time.Unix(1_800_000_000, 0).UTC(), Version: "test",
		Targets: []string{"http://127.0.0.1:3000/mcp"}, Tool: "build_report", Protocol: "2026-07-28", HTTP: "1.1", Cuts: clauses, Clean: 3, Watch: 3 * time.Second}})
	s.at(0, history.Record{Witness: &history.Witness{What: "wire", Name: "wire", Shows: []history.Kind{history.Emission, history.Stray, history.WrongID}}})
	s.at(0, history.Record{Witness: &history.Witness{Source: 1, What: "log", Name: "server.log", Grade: history.GradeC, ByAttempt: true, Timed: true,
		Shows: []history.Kind{history.Work, history.Stop, history.Completion, history.Effect}}})
	for i := range uint64(3) {
		s.delivered(history.Ref{Role: history.Clean, Call: i + 1, Attempt: 1}, 10*ms)
	}
	s.at(1500*ms, history.Record{Budget: &history.Budget{StopWithin: 150 * ms, CleanMedian: length + ms, Gap: step, TailGap: 31 * ms, Events: steps, Units: steps}})
	from := 2 * time.Second
	n := uint64(0)
	next := func() (history.Ref, time.Duration) {
		n++
		from += 50 * ms
		return history.Ref{Call: n, Attempt: 1}, from
	}
	for range good {
		s.delivered(next())
	}
	for range stopped {
		r, t := next()
		s.cut(r, t, 3)
	}
	for range leaking {
		r, t := next()
		s.cut(r, t, steps)
	}
	for t := 2 * time.Second; t < from; t += time.Second {
		s.at(t, history.Record{Canary: &history.Canary{At: t, Latency: 2 * ms, OK: true}})
		s.at(t, history.Record{Driver: &history.Driver{CPU: 0.25, Streams: 20, OpenFiles: 31}})
	}
	settled := from + 5*time.Second
	for i := range uint64(3) {
		s.delivered(history.Ref{Role: history.Closing, Call: i + 1, Attempt: 1}, settled)
	}
	s.at(settled+3*time.Second, history.Record{Close: &history.Close{Reason: "calls", Records: int64(len(s.records))}})
	slices.SortStableFunc(s.records, func(a, b history.Record) int { return cmp.Compare(a.T, b.T) })
	return s
}

// save writes the story as the history of a run directory.
func (s *story) save(t testing.TB, dir string) {
	t.Helper()
	f, err := os.Create(HistoryPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	enc, err := zstd.NewWriter(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.records {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		enc.Write(append(b, '\n'))
	}
	if err := enc.Close(); err != nil {
		t.Fatal(err)
	}
}

func manifest(thresholds ...string) Manifest {
	return Manifest{ID: "k3x9", Command: "mcpflood run http://127.0.0.1:3000/mcp", Host: Host{2, "linux"}, Thresholds: thresholds,
		Prices: Prices{"USD", map[string]float64{"step": 0.01}}}
}

func runDir(t testing.TB, s *story, m Manifest) string {
	dir := t.TempDir()
	s.save(t, dir)
	if err := WriteManifest(dir, m); err != nil {
		t.Fatal(err)
	}
	return dir
}

func mustJudge(t testing.TB, dir string, o Options) *Summary {
	t.Helper()
	s, err := Judge(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestJudgeLeaky(t *testing.T) {
	dir := runDir(t, run(20, 6, 4), manifest("mcp_ran_on: count==0", "mcp_ran_on{style:fin}: rate<0.5", "mcp_notice_time: max<1"))
	var lines bytes.Buffer
	s := mustJudge(t, dir, Options{Attempts: &lines})
	if s.Verdict != history.Fail {
		t.Errorf("verdict %s, want fail", s.Verdict)
	}
	if s.Counts.Verdicts != (Verdicts{Stopped: 6, RanOn: 4}) || *s.Counts.EffectsAfterCut != 4 || *s.Counts.Calls != 30 || *s.Counts.Delivered != 20 {
		t.Errorf("counts: %+v", s.Counts)
	}
	var oks []string
	for _, th := range s.Thresholds {
		var b bytes.Buffer
		if err := json.NewEncoder(&b).Encode(th); err != nil {
			t.Fatal(err)
		}
		oks = append(oks, strings.ReplaceAll(strings.TrimSpace(b.String()), `\u003c`, "<"))
	}
	want := []string{
		`{"metric":"mcp_ran_on","expr":"count==0","ok":false,"value":4}`,
		`{"metric":"mcp_ran_on{style:fin}","expr":"rate<0.5","ok":true,"value":0.4}`,
		`{"metric":"mcp_notice_time","expr":"max<1","ok":null,"value":null}`,
	}
	if d := gocmp.Diff(want, oks); d != "" {
		t.Errorf("thresholds (-want +got):\n%s", d)
	}
	if len(s.Groups) != 1 || s.Groups[0].Counts.Verdicts != s.Counts.Verdicts || len(s.Survival) != 1 || s.Run.Command == "" || s.Run.Host == nil {
		t.Errorf("groups %d, survival %d, run %+v", len(s.Groups), len(s.Survival), s.Run)
	}
	checkMoney(t, s)
	checkAttempts(t, lines.Bytes())
	for _, name := range []string{SummaryFile, ReportFile, TimesFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	golden(t, "judged.txt", s.Text())
	again, err := ReadSummary(dir)
	if d := gocmp.Diff(s, again); err != nil || d != "" {
		t.Errorf("the summary on disk: %v (-want +got):\n%s", err, d)
	}
}

// 20 calls of 10 steps are useful; 10 cuts had done 3 and 4 of them did 7 more.
// The first of these 7 is counted as lost: the server's clock is known to 100 ms
// only, and it lies 50 ms after the cut.
func checkMoney(t *testing.T, s *Summary) {
	t.Helper()
	w := s.Work[0]
	for name, c := range map[string][2]float64{
		"useful": {*w.Useful, 200}, "lost": {*w.Lost, 34}, "run_on": {*w.RunOn, 24}, "total": {*w.Total, 258},
		"cost total": {*s.Cost.Total, 2.58}, "cost run_on": {*s.Cost.RunOn, 0.24}, "effectiveness": {*s.Effectiveness, 1 - 24./66}, "n": {float64(s.EffectivenessN), 10},
	} {
		if math.Abs(c[0]-c[1]) > 1e-8 {
			t.Errorf("%s = %v, want %v", name, c[0], c[1])
		}
	}
	for _, a := range []Amounts{w.Amounts, s.Cost.Amounts, s.Groups[0].Work[0].Amounts} {
		if sum := *a.Useful + *a.Lost + *a.RunOn + *a.Unnoticed + *a.Errored + *a.Abandoned + *a.Unattributed; math.Abs(sum-*a.Total) > 1e-6 {
			t.Errorf("the parts add up to %v, total is %v", sum, *a.Total)
		}
	}
}

func checkAttempts(t *testing.T, lines []byte) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(lines))
	var last history.Ref
	ran := 0
	n := 0
	for {
		var a Attempt
		err := dec.Decode(&a)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if a.Ref.Compare(last) <= 0 || !strings.HasSuffix(a.ID, fmt.Sprintf("-%d-1", a.Ref.Call)) {
			t.Errorf("attempt %s with id %s after %s", a.Ref, a.ID, last)
		}
		last = a.Ref
		n++
		if a.Verdict == "ran_on" {
			ran++
			if len(a.Evidence) == 0 || a.C0 == nil || a.Work[0].After != 6 {
				t.Errorf("attempt %s: %+v", a.Ref, a)
			}
		}
	}
	if n != 30 || ran != 4 {
		t.Errorf("%d attempts, %d ran on; want 30, 4", n, ran)
	}
}

func TestJudgeGood(t *testing.T) {
	s := mustJudge(t, runDir(t, run(20, 10, 0), manifest("mcp_ran_on: count==0", "mcp_effects_after_cut: count==0", "mcp_effectiveness: value>=0.95", "mcp_cost{kind:run_on}: count==0")), Options{})
	if s.Verdict != history.Pass || len(s.Findings) != 0 {
		t.Errorf("verdict %s, reasons %q, findings %+v; want a pass", s.Verdict, s.Reasons, s.Findings)
	}
	for _, th := range s.Thresholds {
		if th.OK == nil || !*th.OK {
			t.Errorf("threshold %+v, want met", th)
		}
	}
}

// What is asked for stands above the manifest.
func TestJudgeOptions(t *testing.T) {
	dir := runDir(t, run(20, 10, 0), manifest("mcp_ran_on: count==0"))
	s := mustJudge(t, dir, Options{Thresholds: []string{"mcp_calls: count>1000"}, Prices: &Prices{"EUR", map[string]float64{"call": 2}}})
	if s.Verdict != history.Fail || len(s.Thresholds) != 1 || s.Cost.Currency != "EUR" || *s.Cost.Useful != 40 {
		t.Errorf("verdict %s, thresholds %+v, cost %+v", s.Verdict, s.Thresholds, s.Cost)
	}
	if s = mustJudge(t, dir, Options{Thresholds: []string{}, Prices: &Prices{}}); len(s.Thresholds) != 0 || s.Cost.Total != nil {
		t.Errorf("thresholds %+v, cost %+v; want none", s.Thresholds, s.Cost)
	}
	for _, o := range []Options{{Thresholds: []string{"mcp_nothing: count==0"}}, {Prices: &Prices{PerUnit: map[string]float64{"step": -1}}}} {
		if _, err := Judge(dir, o); err == nil {
			t.Errorf("Judge(%+v) = nil", o)
		}
	}
}

// Judging twice gives the same bytes.
func TestJudgeIsRepeatable(t *testing.T) {
	dir := runDir(t, run(12, 5, 3), manifest("mcp_ran_on: count==0"))
	read := func() map[string]string {
		var lines bytes.Buffer
		mustJudge(t, dir, Options{Attempts: &lines})
		out := map[string]string{"attempts": lines.String()}
		for _, name := range []string{SummaryFile, ReportFile, TimesFile} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			out[name] = string(b)
		}
		return out
	}
	first := read()
	for range 3 {
		if d := gocmp.Diff(first, read()); d != "" {
			t.Fatalf("another judgement (-first +later):\n%s", d)
		}
	}
}

// kill -9 leaves a history without its end, and perhaps no manifest.
func TestJudgeCutShort(t *testing.T) {
	s := run(20, 6, 4)
	s.records = s.records[:len(s.records)*2/3]
	dir := t.TempDir()
	s.save(t, dir)
	sum := mustJudge(t, dir, Options{})
	if sum.Run.Command != "" || sum.Run.Host != nil || sum.Counts.Attempts == 0 {
		t.Errorf("summary of a history cut short: %+v", sum.Run)
	}
	if !slices.ContainsFunc(sum.Reasons, func(r string) bool { return strings.Contains(r, "cut short") }) {
		t.Errorf("reasons %q do not say so", sum.Reasons)
	}
	s.records = nil
	s.save(t, dir)
	if _, err := Judge(dir, Options{}); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("Judge of an empty history = %v", err)
	}
	if _, err := Judge(t.TempDir(), Options{}); err == nil {
		t.Error("Judge of an empty directory = nil")
	}
}

func TestStrict(t *testing.T) {
	s := run(12, 3, 0)
	// One attempt goes on for two steps and then stops: late, a warning.
	r, from := history.Ref{Call: 90, Attempt: 1}, 3*time.Second
	s.cut(r, from, 3)
	s.evidence(r, history.Work, from+650*ms, "build_report step 6 of 10")
	s.evidence(r, history.Stop, from+700*ms, "build_report cancelled at step 6 (stream closed)")
	slices.SortStableFunc(s.records, func(a, b history.Record) int { return cmp.Compare(a.T, b.T) })
	dir := runDir(t, s, manifest())
	lax, strict := mustJudge(t, dir, Options{}), mustJudge(t, dir, Options{Strict: ptr(true)})
	if lax.Counts.Verdicts.Late != 1 || lax.Verdict == history.Fail || strict.Verdict != history.Fail {
		t.Errorf("late %d, verdict %s, strict %s; reasons %q", lax.Counts.Verdicts.Late, lax.Verdict, strict.Verdict, strict.Reasons)
	}
}

// The interval log holds every sample of the run.
func TestTimesLog(t *testing.T) {
	dir := runDir(t, run(20, 6, 4), manifest())
	s := mustJudge(t, dir, Options{})
	f, err := os.Open(filepath.Join(dir, TimesFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := map[string]int64{}
	for r := hdr.NewHistogramLogReader(f); ; {
		h, err := r.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			break
		}
		got[strings.TrimSuffix(h.Tag(), ".censored")] += h.TotalCount()
	}
	for name, x := range s.Times {
		if got[name] != x.Count {
			t.Errorf("%s: %d samples in %s, %d in the summary", name, got[name], TimesFile, x.Count)
		}
	}
}
