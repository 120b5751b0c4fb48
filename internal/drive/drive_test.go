package drive

import (
	"encoding/json"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpflood/mcpflood/chaos"
	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/mcp"
	"github.com/mcpflood/mcpflood/internal/stream"
	"github.com/mcpflood/mcpflood/internal/wire"
	"github.com/mcpflood/mcpflood/target"
)

// memory is a history in memory.
type memory struct {
	mu   sync.Mutex
	recs []history.Record
}

func (m *memory) Append(r history.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recs = append(m.recs, r)
}

func (m *memory) ends() map[history.Ref]history.End {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[history.Ref]history.End{}
	for _, r := range m.recs {
		if r.End != nil {
			out[r.End.Ref] = *r.End
		}
	}
	return out
}

// stage is a Caller against a reference server.
type stage struct {
	*Caller
	mem *memory
}

func newStage(t *testing.T, tc target.Config, cuts string, reissue int) *stage {
	t.Helper()
	if tc.Steps == 0 {
		tc.Steps, tc.StepTime, tc.TailTime = 4, 50*time.Millisecond, 100*time.Millisecond
	}
	server, err := target.New(tc)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	return stageAt(t, ln.Addr().String(), cuts, reissue, func() {
		server.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// stageAt is a Caller against any server; stop ends it.
func stageAt(t *testing.T, addr, cuts string, reissue int, stop func()) *stage {
	t.Helper()
	clock := history.NewClock()
	alarm, err := NewAlarm(clock)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := chaos.ParsePlan("seed=1 " + cuts)
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := wire.ParseEndpoint("http://" + addr + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	dialer, err := wire.NewDialer(wire.DialConfig{})
	if err != nil {
		t.Fatal(err)
	}
	mem := &memory{}
	nonce := history.NewNonce()
	request := func(ask Ask) ([]byte, error) {
		ref := ask.Ref
		call := mcp.Call{ID: mcp.StringID(nonce.ID(ref)), Method: mcp.MethodToolsCall, Name: "build_report",
			Params: mcp.ToolCall("build_report", json.RawMessage(`{"month":"2026-09"}`)), Meta: mcp.Meta{ProgressToken: nonce.Token(ref)}}
		return wire.AppendRequest(nil, endpoint, call.Headers(), call.Body())
	}
	signal := func(ref history.Ref) ([]byte, error) {
		params := json.RawMessage(`{"requestId":"` + nonce.ID(ref) + `"}`)
		return wire.AppendRequest(nil, endpoint, []mcp.Field{{Name: "Content-Type", Value: "application/json"}}, mcp.AppendNotification(nil, mcp.MethodCancelled, params))
	}
	c := NewCaller(Config{Clock: clock, History: mem, Dialer: dialer, Endpoint: endpoint, Alarm: alarm, Request: request, Signal: signal, Plan: plan,
		Clean:   chaos.Clean{Median: 300 * time.Millisecond, TailGap: 100 * time.Millisecond, Events: 4},
		Reissue: stream.Reissue{Max: reissue}, Stream: stream.Config{Nonce: nonce, History: mem, Timeout: 20 * time.Second, Hold: 300 * time.Millisecond}})
	t.Cleanup(func() {
		c.Drop()
		c.WaitHeld()
		alarm.Close()
		stop()
		goleak.VerifyNone(t)
	})
	return &stage{c, mem}
}

func (s *stage) call(n uint64) history.Call {
	c, _ := s.Call(history.Ref{Call: n}, s.cfg.Clock.Now())
	return *c
}

func TestDelivered(t *testing.T) {
	s := newStage(t, target.Config{}, "", 0)
	if c := s.call(1); c.Outcome != "delivered" || c.Attempts != 1 {
		t.Fatalf("a call nobody cut ended %+v", c)
	}
	e := s.mem.ends()[history.Ref{Call: 1, Attempt: 1}]
	if e.Outcome != history.Delivered || e.Events != 4 || e.Form != "sse" || e.Status != 200 || e.Missed || e.Cut != nil {
		t.Errorf("its end is %+v", e)
	}
	if !(e.Begun <= e.Connected && e.Connected <= e.Sent && e.Sent < e.FirstByte && e.FirstByte <= e.Headers && e.Headers <= e.FirstEvent && e.FirstEvent < e.LastEvent && e.LastEvent < e.Result && e.Result <= e.Ended) {
		t.Errorf("its moments are out of order: %+v", e)
	}
}

func TestCutsFireWherePlanned(t *testing.T) {
	for _, tc := range []struct {
		cut   string
		phase history.Phase
		check func(e history.End) bool
	}{
		{"fin@sent", history.PhaseSent, func(e history.End) bool { return e.Events == 0 && e.Headers == 0 }},
		{"reset@headers", history.PhaseHeaders, func(e history.End) bool { return e.Headers > 0 && e.Events == 0 }},
		{"fin@event(2)", history.PhaseMid, func(e history.End) bool { return e.Events == 2 }},
		{"reset@event+10(3)", history.PhaseEvent, func(e history.End) bool { return e.Events == 2 }},
		{"reset@bytes(40)", history.PhaseEvent, func(e history.End) bool { return e.Bytes == 40 }},
		{"fin@tail", history.PhaseTail, func(e history.End) bool { return e.Events == 4 && e.Cut.C0-e.LastEvent >= 50*time.Millisecond }},
		{"fin@connect", history.PhaseConnect, func(e history.End) bool { return e.Connected > 0 && e.Sent == 0 }},
		{"reset@head(20)", history.PhaseHead, func(e history.End) bool { return e.Sent == 0 }},
		{"fin@head", history.PhaseHead, func(e history.End) bool { return e.Sent == 0 }},
		{"fin@body(10)", history.PhaseBody, func(e history.End) bool { return e.Sent == 0 && e.FirstByte == 0 }},
		{"reset@body", history.PhaseBody, func(e history.End) bool { return e.Sent == 0 }},
		{"reset@event", history.PhaseEvent, func(e history.End) bool { return e.Headers > 0 }},
		{"fin@quiet(30ms)", history.PhaseSent, func(e history.End) bool { return e.Cut.C0-e.Sent >= 30*time.Millisecond }},
		{"fin@every(200ms)", history.PhaseMid, func(e history.End) bool { return e.Cut.Due%(200*time.Millisecond) == 0 }},
		{"fin@after(120ms)", history.PhaseMid, func(e history.End) bool {
			return e.Cut.C0-e.Sent >= 120*time.Millisecond && e.Cut.Due-e.Sent == 120*time.Millisecond
		}},
	} {
		t.Run(tc.cut, func(t *testing.T) {
			s := newStage(t, target.Config{}, tc.cut, 0)
			s.call(1)
			e := s.mem.ends()[history.Ref{Call: 1, Attempt: 1}]
			if e.Outcome != history.Cut || e.Cut == nil || e.Cut.Phase != tc.phase || e.Origin != history.Chaos || e.Cut.C0 > e.Cut.C1 || !tc.check(e) {
				t.Errorf("end %+v, cut %+v", e, e.Cut)
			}
		})
	}
}

func TestDoneChangesNothing(t *testing.T) {
	s := newStage(t, target.Config{}, "fin@done", 3)
	if c := s.call(1); c.Outcome != "delivered" || c.Attempts != 1 {
		t.Fatalf("ended %+v", c)
	}
	if e := s.mem.ends()[history.Ref{Call: 1, Attempt: 1}]; e.Outcome != history.Delivered || e.Cut == nil || e.Cut.Phase != history.PhaseDone {
		t.Errorf("end %+v", e)
	}
}

func TestMissedCut(t *testing.T) {
	s := newStage(t, target.Config{}, "fin@after(10s)", 0)
	s.call(1)
	if e := s.mem.ends()[history.Ref{Call: 1, Attempt: 1}]; e.Outcome != history.Delivered || !e.Missed || e.Cut != nil {
		t.Errorf("end %+v", e)
	}
}

func TestReissueWhileSilentSocketIsHeld(t *testing.T) {
	s := newStage(t, target.Config{}, "vanish@mid", 2)
	if c := s.call(1); c.Attempts != 3 || c.Outcome != "failed" {
		t.Fatalf("ended %+v", c)
	}
	s.WaitHeld()
	ends := s.mem.ends()
	for a := uint32(1); a <= 3; a++ {
		e := ends[history.Ref{Call: 1, Attempt: a}]
		if e.Cut == nil || e.Cut.Style != history.Vanish || e.Ended-e.Cut.C1 < 300*time.Millisecond {
			t.Errorf("attempt %d ended %+v, cut %+v", a, e, e.Cut)
		}
	}
}

func TestSlowReaderIsHeld(t *testing.T) {
	s := newStage(t, target.Config{Steps: 2000, StepTime: time.Millisecond}, "slow@event(2)", 0)
	s.cfg.Stream.Hold = 2500 * time.Millisecond
	s.call(1)
	s.WaitHeld()
	e := s.mem.ends()[history.Ref{Call: 1, Attempt: 1}]
	if e.Outcome != history.Cut || e.Cut == nil || e.Cut.Style != history.Slow || e.Ended-e.Cut.C1 < 2500*time.Millisecond {
		t.Errorf("end %+v, cut %+v", e, e.Cut)
	}
}

func TestHalfCloseReadsOn(t *testing.T) {
	s := newStage(t, target.Config{}, "half-close@event(2)", 0)
	s.call(1)
	e := s.mem.ends()[history.Ref{Call: 1, Attempt: 1}]
	if e.Cut == nil || e.After == nil || e.After.How == "" {
		t.Errorf("end %+v, after %+v: want the server's reaction recorded", e, e.After)
	}
}

func TestWrongSignalKeepsTheStream(t *testing.T) {
	s := newStage(t, target.Config{}, "wrong-signal@event(2)", 0)
	if c := s.call(1); c.Outcome != "delivered" {
		t.Errorf("the call ended %+v: a stateless server does not heed the notification", c)
	}
	e := s.mem.ends()[history.Ref{Call: 1, Attempt: 1}]
	if e.Outcome != history.Delivered || e.Cut == nil || e.Cut.Style != history.WrongSignal || e.After == nil || e.After.Result == 0 {
		t.Errorf("end %+v, cut %+v, after %+v", e, e.Cut, e.After)
	}
}

func TestDropEndsOpenCalls(t *testing.T) {
	s := newStage(t, target.Config{Steps: 100, StepTime: time.Second}, "", 3)
	done := make(chan history.Call)
	go func() { done <- s.call(1) }()
	for s.live.Open.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	s.Drop()
	if c := <-done; c.Outcome != "abandoned" || c.Attempts != 1 {
		t.Errorf("ended %+v", c)
	}
}
