package oracle

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

const ms = time.Millisecond

// sim writes the history of a run against a made-up server whose tool does ten
// steps of 100 ms, one effect at the end, and answers 300 ms after it.
type sim struct {
	recs []history.Record

	steps    int
	step     time.Duration
	tail     time.Duration
	watch    time.Duration
	stop     time.Duration // S
	form     string
	effects  bool // the log shows effects and the end
	noStops  bool // the log shows no stops
	noClose  bool
	log      history.Witness
	lag      time.Duration // of the log
	timed    bool          // the log has times, on a clock that is an hour ahead
	cuts     []string
	noLog    bool
	buffered bool   // streams arrive with their end
	worked   []span // times in which the tool is in flight, for gauges
	extra    []history.Record
}

type span struct{ from, to time.Duration }

func newSim() *sim {
	return &sim{
		steps: 10, step: 100 * ms, tail: 300 * ms, watch: 5 * time.Second, stop: 150 * ms, form: "sse", effects: true, lag: 2 * ms,
		log: history.Witness{
			Source: 1, What: "log", Name: "server.log", Grade: history.GradeC, ByAttempt: true,
			Shows: []history.Kind{history.Work, history.Stop, history.Completion, history.Effect},
		},
		cuts: []string{"fin@mid"},
	}
}

func (s *sim) clean() time.Duration { return time.Duration(s.steps)*s.step + s.tail }

func (s *sim) at(t time.Duration, r history.Record) {
	r.T = t
	s.recs = append(s.recs, r)
}

func ref(call uint64, attempt uint32) history.Ref { return history.Ref{Call: call, Attempt: attempt} }

// does is what the server does with one attempt.
type does struct {
	stopAt  time.Duration // work stops, after the request; 0: it runs to its end
	sayStop time.Duration // the log says "cancelled" then; 0: it does not
	effect  time.Duration // when the effect comes; 0: at the end, <0: never
	mute    bool          // its log shows nothing
}

// evidence is one record of the log that was made at t.
func (s *sim) evidence(r history.Ref, k history.Kind, step int, t time.Duration) {
	if s.noLog || !s.effects && (k == history.Effect || k == history.Completion) || s.noStops && k == history.Stop {
		return
	}
	e := history.Evidence{Source: 1, Kind: k, Step: step, Text: fmt.Sprintf("%s %d id=%s", k, step, r)}
	if s.log.ByAttempt {
		e.Ref, e.By = r, "id"
	} else if s.log.ByCall {
		e.Ref, e.By = r.Whole(), "marker"
	}
	if k == history.Work {
		e.Units = 1
	}
	if s.timed {
		e.Timed, e.Lo, e.Hi = true, t+time.Hour, t+time.Hour+1
	}
	s.at(t+s.lag, history.Record{Evidence: &e})
}

// serve writes what the server does with a request that came at t; it returns
// when it would answer.
func (s *sim) serve(r history.Ref, t time.Duration, d does) time.Duration {
	end := t + s.clean()
	stop := t + d.stopAt
	if d.stopAt == 0 {
		stop = end
	}
	s.worked = append(s.worked, span{t, stop})
	if d.mute {
		return end
	}
	for i := 1; i <= s.steps; i++ {
		if at := t + time.Duration(i)*s.step; at <= stop {
			s.evidence(r, history.Work, i, at)
		}
	}
	last := t + time.Duration(s.steps)*s.step
	switch {
	case d.effect > 0:
		s.evidence(r, history.Effect, 0, t+d.effect)
	case d.effect == 0 && stop >= last+ms:
		s.evidence(r, history.Effect, 0, last+ms)
	}
	if d.stopAt == 0 {
		s.evidence(r, history.Completion, 0, end-ms)
	}
	if d.sayStop > 0 {
		s.evidence(r, history.Stop, 0, t+d.sayStop)
	}
	return end
}

// uncut is a whole call that nobody cuts.
func (s *sim) uncut(r history.Ref, t time.Duration) time.Duration {
	end := s.serve(r, t+ms, does{})
	s.start(r, t, nil)
	e := s.end(r, t)
	e.Outcome, e.Origin, e.Result, e.Ended = history.Delivered, history.Peer, end, end
	e.Events, e.FirstEvent, e.LastEvent = s.steps, t+ms+s.step, end-s.tail
	if s.buffered {
		e.FirstEvent = end - 5*ms
	}
	s.at(end, history.Record{End: e})
	if r.Role == history.Load {
		s.over(r, "delivered", t, end)
	}
	return end
}

func (s *sim) start(r history.Ref, t time.Duration, p *history.Planned) {
	s.at(t, history.Record{Start: &history.Start{Ref: r, Intended: t, Begun: t, Planned: p}})
}

func (s *sim) end(r history.Ref, t time.Duration) *history.End {
	return &history.End{Ref: r, Begun: t, Connected: t, Sent: t + ms, FirstByte: t + 2*ms, Headers: t + 2*ms, Form: s.form, Status: 200}
}

func (s *sim) over(r history.Ref, outcome string, from, to time.Duration) {
	s.at(to, history.Record{Call: &history.Call{Ref: r.Whole(), Outcome: outcome, Intended: from, Ended: to, Attempts: int(r.Attempt)}})
}

// cut is an attempt that is cut some time after its request was sent.
type cut struct {
	style history.Style
	phase history.Phase
	after time.Duration
	does  does
	more  func(*history.End)
	again bool // the call goes on
}

func (s *sim) cut(r history.Ref, t time.Duration, c cut) *history.End {
	if c.style == 0 {
		c.style = history.Fin
	}
	if c.phase == 0 {
		c.phase = history.PhaseMid
	}
	s.serve(r, t+ms, c.does)
	plan := &history.Planned{Style: c.style, Moment: fmt.Sprintf("after(%s)", c.after)}
	s.start(r, t, plan)
	e := s.end(r, t)
	e.Planned = plan
	at := t + ms + c.after
	e.Outcome, e.Origin, e.Ended = history.Cut, history.Chaos, at
	if c.phase == history.PhaseSent {
		e.FirstByte, e.Headers, e.Form = 0, 0, ""
	}
	e.Cut = &history.CutDone{Style: c.style, Phase: c.phase, Cause: "plan", Due: at, C0: at, C1: at}
	switch c.style.Class() {
	case history.ClassOpen:
		e.After = &history.After{}
		e.Ended = at + s.watch
	case history.ClassSilent:
		e.Ended = at + s.watch
	}
	if c.more != nil {
		c.more(e)
	}
	s.at(e.Ended, history.Record{End: e})
	if !c.again {
		s.over(r, "failed", t, e.Ended)
	}
	return e
}

// honest stops at the next step after the hang-up and says so.
func honest(after time.Duration) does {
	return does{stopAt: after + ms, sayStop: after + ms}
}

// build finishes the history: the run, its witnesses, three clean calls before
// and three closing calls after.
func (s *sim) build() []history.Record {
	out := &sim{}
	*out = *s
	out.recs = slices.Clone(s.recs)
	first, last := 10*time.Second, time.Duration(0)
	for _, r := range s.recs {
		last = max(last, r.T)
	}
	out.at(0, history.Record{Run: &history.Run{Schema: history.Schema, Cuts: s.cuts, Clean: 3, Watch: s.watch, HTTP: "1.1"}})
	if !s.noLog {
		out.log.Timed = s.timed
		out.at(0, history.Record{Witness: &out.log})
	}
	for i := uint64(1); i <= 3; i++ {
		out.uncut(history.Ref{Role: history.Clean, Call: i, Attempt: 1}, first-5*time.Second)
	}
	out.at(first-time.Second, history.Record{Budget: &history.Budget{StopWithin: s.stop, CleanMedian: s.clean()}})
	closing := max(last, first) + s.watch + time.Second
	for i := uint64(1); i <= 3; i++ {
		out.uncut(history.Ref{Role: history.Closing, Call: i, Attempt: 1}, closing)
	}
	end := closing + s.clean() + time.Second
	out.recs = append(out.recs, s.extra...)
	if !s.noClose {
		out.at(end, history.Record{Close: &history.Close{Reason: "calls"}})
	}
	s.worked = out.worked
	slices.SortStableFunc(out.recs, func(a, b history.Record) int { return cmp.Compare(a.T, b.T) })
	return out.recs
}

// records is a history in memory.
type records struct {
	recs []history.Record
	n    int
}

func (r *records) Next() (history.Record, error) {
	if r.n == len(r.recs) {
		return history.Record{}, io.EOF
	}
	r.n++
	return r.recs[r.n-1], nil
}

func inMemory(recs []history.Record) Source {
	return func() (Cursor, error) { return &records{recs: recs}, nil }
}

func judgeAll(t testing.TB, recs []history.Record) (*Report, map[history.Ref]Judged) {
	t.Helper()
	got := map[history.Ref]Judged{}
	var last history.Ref
	r, err := Judge(inMemory(recs), func(j Judged) {
		if j.Start.Ref.Compare(last) <= 0 {
			t.Errorf("visited %s after %s, want sorted", j.Start.Ref, last)
		}
		last = j.Start.Ref
		got[last] = j
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, got
}

func (s *sim) judge(t testing.TB) (*Report, map[history.Ref]Judged) {
	t.Helper()
	return judgeAll(t, s.build())
}

func (r *Report) finding(id string) *Finding {
	for i := range r.Findings {
		if r.Findings[i].ID == id {
			return &r.Findings[i]
		}
	}
	return nil
}

func ids(r *Report) []string {
	out := []string{}
	for _, f := range r.Findings {
		out = append(out, f.ID)
	}
	return out
}

// load is when load calls may begin: after the clean calls.
const load = 10 * time.Second
