package target

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpflood/mcpflood/internal/mcp"
)

func TestIdempotencyKey(t *testing.T) {
	key := `{"month":"2026-09","idempotency_key":"k"}`
	for _, tt := range []struct {
		name   string
		faults []FaultKind
		asks   []ask
		want   string
	}{
		{"same key", nil, []ask{{id: "a", args: key}, {id: "b", args: key}}, "1"},
		{"no key", nil, []ask{{id: "a"}, {id: "b"}}, "2"},
		{"another user", nil, []ask{{id: "a", args: key}, {id: "b", args: key, user: "bob"}}, "2"},
		{"double-effect", []FaultKind{DoubleEffect}, []ask{{id: "a", args: key}, {id: "b", args: key}}, "2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := quick(tt.faults...)
			cfg.StepTime = time.Millisecond
			r := newRig(t, cfg)
			for _, a := range tt.asks {
				c := r.call(a)
				c.answered()
				c.Close()
			}
			if got := r.metric("target_effects_total"); got != tt.want {
				t.Errorf("%s e-mails, want %s", got, tt.want)
			}
		})
	}
}

func TestCrossTalk(t *testing.T) {
	cfg := quick()
	cfg.Faults = []Fault{{Kind: CrossTalk}}
	r := newRig(t, cfg)
	a, b := r.call(ask{id: "a", token: "pa"}), r.call(ask{id: "b", token: "pb"})
	defer a.Close()
	defer b.Close()
	strays := 0
	for c, own := range map[*client]string{a: "pa", b: "pb"} {
		msgs := c.answered()
		for _, m := range msgs {
			if m.Kind == mcp.Notification && m.Progress.Token != mcp.StringID(own) {
				strays++
			}
		}
		if last := msgs[len(msgs)-1]; last.Kind != mcp.ResultResponse {
			t.Errorf("last message = %+v, want the result", last)
		}
	}
	if strays == 0 {
		t.Error("no foreign progress on either stream, want some")
	}
	alone := r.call(ask{id: "c", token: "pc"})
	defer alone.Close()
	if msgs := alone.answered(); len(msgs) != 5 {
		t.Errorf("%d messages on the only stream, want 5", len(msgs))
	}
}

func TestWrongID(t *testing.T) {
	cfg := quick(WrongID)
	cfg.StepTime = time.Millisecond
	r := newRig(t, cfg)
	key := func(k string) string { return `{"month":"2026-09","idempotency_key":"` + k + `"}` }
	bag := func(k string) string { return `,"baggage":"a=1,mcpflood.call=` + k + `"` }
	for _, tt := range []struct {
		ask  ask
		want string
	}{
		{ask{id: "1", args: key("k")}, "1"},
		{ask{id: "2", args: key("k")}, "1"},
		{ask{id: "3", args: key("other")}, "3"},
		{ask{id: "4", args: key("k"), user: "bob"}, "4"},
		{ask{id: "5", meta: bag("m")}, "5"},
		{ask{id: "6", meta: bag("n")}, "6"},
		{ask{id: "7", meta: bag("m")}, "5"},
		{ask{id: "8"}, "8"},
		{ask{id: "9"}, "8"},
	} {
		c := r.call(tt.ask)
		if got := c.answered()[0].ID; got != mcp.StringID(tt.want) {
			t.Errorf("request %s is answered as %s, want %s", tt.ask.id, got, tt.want)
		}
		c.Close()
	}
}

func TestSpurious(t *testing.T) {
	cfg := quick(Spurious)
	cfg.Steps = 1000
	r := newRig(t, cfg)
	forms := map[string]bool{}
	for n := 0; len(forms) < 3 && n < 50; n++ {
		victim := fmt.Sprint("v", n)
		v := r.call(ask{id: victim, token: "pv"})
		r.logged(victim, "step 1 of", 1)
		r.cut(ask{id: fmt.Sprint("c", n)}, leave{sent: true})
		if tr := r.ended(victim); tr.End != EndSpurious || tr.CutSeen != nil {
			t.Fatalf("truth = %+v, want a spurious end", tr)
		}
		if !strings.HasSuffix(r.events(victim), "(stream closed)") {
			t.Errorf("log = %s, want a cancelled line", r.events(victim))
		}
		msgs := v.answered()
		last := msgs[len(msgs)-1]
		switch {
		case last.Kind == mcp.ErrorResponse && last.Cancelled() && last.ID == mcp.StringID(victim):
			forms["error"] = true
		case last.Kind == mcp.ResultResponse && last.Cancelled():
			forms["isError"] = true
		case last.Kind == mcp.Notification:
			forms["closed"] = true
		default:
			t.Errorf("victim got %+v", last)
		}
		v.Close()
	}
	if len(forms) != 3 {
		t.Errorf("saw only %v, want an error, an isError result and a closed stream", forms)
	}
}

func TestSlotLeak(t *testing.T) {
	cfg := quick(SlotLeak)
	cfg.Slots = 2
	r := newRig(t, cfg)
	r.cut(ask{id: "a"}, leave{})
	c := r.call(ask{id: "ok", token: "p"})
	if msgs := c.answered(); len(msgs) != 5 {
		t.Errorf("with a slot left: %d messages, want 5", len(msgs))
	}
	c.Close()
	r.cut(ask{id: "b"}, leave{})
	c = r.call(ask{id: "no", token: "p"})
	defer c.Close()
	resp, body := c.response()
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || !strings.Contains(body, "no free slot") {
		t.Errorf("without a slot: %s, Retry-After %q, %s", resp.Status, resp.Header.Get("Retry-After"), body)
	}
	if tr := r.ended("no"); tr.End != EndRefused || tr.Units != 0 {
		t.Errorf("truth = %+v", tr)
	}
	d := r.call(ask{id: "d", method: mcp.MethodDiscover})
	defer d.Close()
	if resp, _ := d.response(); resp.StatusCode != 200 {
		t.Errorf("discovery: %s, want 200", resp.Status)
	}
}

func TestBrick(t *testing.T) {
	r := newRig(t, quick(Brick))
	r.cut(ask{id: "a"}, leave{})
	for _, a := range []ask{{id: "b"}, {id: "c", method: mcp.MethodDiscover}} {
		c := r.call(a)
		if resp, _ := c.response(); resp.StatusCode != 500 {
			t.Errorf("request %s: %s, want 500", a.id, resp.Status)
		}
		c.Close()
	}
	if got := r.metric("target_cancelled_total"); got != "1" {
		t.Errorf("target_cancelled_total = %s, want 1: the counters stay readable", got)
	}
}

// Faults of a share meet the requests that the seed says, and no others.
func TestShare(t *testing.T) {
	cfg := quick()
	cfg.Faults = []Fault{{RunOn, 0.5}, {DeafBody, 0.3}}
	cfg.Seed = 7
	shares := sharesOf(cfg.Faults)
	r := newRig(t, cfg)
	var wg sync.WaitGroup
	for n := range 30 {
		wg.Go(func() {
			id := fmt.Sprint("x", n)
			c := dial(t, r.addr)
			c.send(ask{id: id, token: "p" + id})
			r.logged(id, "step 1 of", 1)
			c.Close()
			tr, set := r.ended(id), shares.draw(7, id)
			if want := set != 0; (tr.End == EndFinished) != want || !slices.Equal(tr.Faults, append([]string{}, set.names()...)) {
				t.Errorf("%s: truth %+v, want it to run on: %v", id, tr, want)
			}
		})
	}
	wg.Wait()
}
