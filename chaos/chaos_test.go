package chaos

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcpflood/mcpflood/history"
)

func TestMomentText(t *testing.T) {
	for in, want := range map[string]string{
		"connect": "connect", "head": "head", "body": "body", "sent": "sent", "headers": "headers",
		"mid": "mid", "event": "event", "tail": "tail", "done": "done",
		"event(3)": "event(3)", "event+12(3)": "event+12(3)", "bytes(100)": "bytes(100)",
		"after(2s)": "after(2s)", "after(0s)": "after(0s)", "after(60s)": "after(1m)", "after(1h)": "after(1h)",
		"uniform(0s,800ms)": "uniform(0s,800ms)", "uniform(0s, 10s)": "uniform(0s,10s)",
		"exp(20s)": "exp(20s)", "exp(20s,2s)": "exp(20s,2s)", "quiet(60s)": "quiet(1m)", "every(2m)": "every(2m)",
		"head(20)": "head(20)", "body(1)": "body(1)", "part(0.2,0.9)": "part(0.2,0.9)", "part(0,1.5)": "part(0,1.5)",
	} {
		m, err := ParseMoment(in)
		if err != nil || m.String() != want {
			t.Errorf("ParseMoment(%q) = %q, %v, want %q", in, m, err, want)
		}
		if again, err := ParseMoment(m.String()); err != nil || again != m {
			t.Errorf("ParseMoment(%q) = %+v, %v, want %+v", m, again, err, m)
		}
	}
}

func TestMomentErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":                            "want a phase",
		"midway":                      "want a phase",
		"event(0)":                    "want a whole number from 1",
		"event(x)":                    "want a whole number from 1",
		"event+0(3)":                  "offset in bytes",
		"mid+3(1)":                    "want a phase",
		"event(3":                     "closing parenthesis",
		"after()":                     "no duration",
		"after(2)":                    "no duration",
		"after(-1s)":                  "out of range",
		"after(25h)":                  "out of range",
		"after(1s,2s)":                "takes 1 argument(s), got 2",
		"uniform(1s)":                 "takes 2 argument(s), got 1",
		"uniform(2s,1s)":              "earlier time first",
		"exp(0s)":                     "above 0s",
		"part(0.9,0.2)":               "smaller fraction first",
		"part(nan,1)":                 "no number",
		"part(0,1e9)":                 "out of range",
		"bytes(-1)":                   "want a whole number from 1",
		"sometimes(1s)":               "want a phase",
		"after(2s)(3)":                "no duration",
		"bytes(99999999999999999999)": "want a whole number",
	} {
		if m, err := ParseMoment(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseMoment(%q) = %q, %v, want an error with %q", in, m, err, want)
		}
	}
}

func TestClauseText(t *testing.T) {
	for in, want := range map[string]Clause{
		"fin@mid":                    {Style: history.Fin, Moment: Moment{form: formPhase, phase: history.PhaseMid}, Share: 1},
		"fin@uniform(0s,800ms):50%":  {Style: history.Fin, Moment: Moment{form: formUniform, to: 800 * time.Millisecond}, Share: 0.5},
		"reset@event+12(3):7%":       {Style: history.Reset, Moment: Moment{form: formEvent, event: 3, offset: 12}, Share: 0.07},
		"half-close@sent:0.5%":       {Style: history.HalfClose, Moment: Moment{form: formPhase, phase: history.PhaseSent}, Share: 0.005},
		"vanish@tail:12.25%":         {Style: history.Vanish, Moment: Moment{form: formPhase, phase: history.PhaseTail}, Share: 0.1225},
		"stream-reset(NO_ERROR)@mid": {Style: history.StreamReset, Moment: Moment{form: formPhase, phase: history.PhaseMid}, Share: 1, Code: 1},
		"stall@bytes(100):33.33333%": {Style: history.Stall, Moment: Moment{form: formBytes, bytes: 100}, Share: 0.3333333},
	} {
		got, err := ParseClause(in)
		if err != nil || got != want || got.String() != in {
			t.Errorf("ParseClause(%q) = %+v (%s), %v, want %+v", in, got, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"fin":                    "want STYLE@MOMENT",
		"@mid":                   "style is missing",
		"bang@mid":               "unknown style",
		"fin@":                   "bad moment",
		"fin(CANCEL":             "want STYLE@MOMENT",
		"stream-reset(GONE)@mid": "unknown HTTP/2 error code",
		"fin@mid:30":             "want a percentage",
		"fin@mid:0%":             "want a percentage",
		"fin@mid:101%":           "want a percentage",
		"fin@mid:-1%":            "want a percentage",
		"fin@mid:1e1%":           "want a percentage",
		"fin@mid:%":              "want a percentage",
		"fin@mid:":               "want a percentage",
	} {
		if c, err := ParseClause(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseClause(%q) = %s, %v, want an error with %q", in, c, err, want)
		}
	}
}

func genMoment(t *rapid.T) Moment {
	d := func(label string) time.Duration {
		return time.Duration(rapid.Int64Range(0, int64(MaxAfter)).Draw(t, label))
	}
	switch form(rapid.IntRange(1, int(formEvery)).Draw(t, "form")) {
	case formEvent:
		return Moment{form: formEvent, event: rapid.IntRange(1, MaxEvents).Draw(t, "n"), offset: rapid.IntRange(0, math.MaxInt32).Draw(t, "k")}
	case formBytes:
		return Moment{form: formBytes, bytes: rapid.Int64Range(1, MaxBytes).Draw(t, "bytes")}
	case formAfter:
		return Moment{form: formAfter, from: d("after")}
	case formUniform:
		a, b := d("a"), d("b")
		return Moment{form: formUniform, from: min(a, b), to: max(a, b)}
	case formExp:
		return Moment{form: formExp, from: max(1, d("mean")), to: d("not before")}
	case formHead:
		return Moment{form: formHead, bytes: rapid.Int64Range(1, MaxBytes).Draw(t, "bytes")}
	case formBody:
		return Moment{form: formBody, bytes: rapid.Int64Range(1, MaxBytes).Draw(t, "bytes")}
	case formQuiet:
		return Moment{form: formQuiet, from: max(1, d("quiet"))}
	case formEvery:
		return Moment{form: formEvery, from: max(1, d("every"))}
	case formPart:
		a, b := rapid.Float64Range(0, MaxPart).Draw(t, "lo"), rapid.Float64Range(0, MaxPart).Draw(t, "hi")
		return Moment{form: formPart, lo: min(a, b), hi: max(a, b)}
	}
	return Moment{form: formPhase, phase: rapid.SampledFrom(history.Phases()).Draw(t, "phase")}
}

func genClause(t *rapid.T, share float64) Clause {
	c := Clause{Style: rapid.SampledFrom(history.Styles()).Draw(t, "style"), Moment: genMoment(t), Share: share}
	if c.Style == history.StreamReset {
		c.Code = Code(rapid.IntRange(0, len(codes)).Draw(t, "code"))
	}
	return c
}

func genPlan(t *rapid.T) Plan {
	p := Plan{Seed: rapid.Uint64().Draw(t, "seed"), TailDelay: -1}
	if rapid.Bool().Draw(t, "tail delay given") {
		p.TailDelay = time.Duration(rapid.Int64Range(0, int64(MaxAfter)).Draw(t, "tail delay"))
	}
	for range rapid.IntRange(0, 4).Draw(t, "clauses") {
		share := 1.0
		if rapid.Bool().Draw(t, "has share") {
			share = rapid.Float64Range(1e-12, 1).Draw(t, "share")
		}
		p.Clauses = append(p.Clauses, genClause(t, share))
	}
	return p
}

// Any plan survives being printed and parsed.
func TestPlanRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := genPlan(t)
		got, err := ParsePlan(p.String())
		if err != nil {
			t.Fatalf("ParsePlan(%q): %v", p, err)
		}
		if got.String() != p.String() || got.Seed != p.Seed || got.TailDelay != p.TailDelay {
			t.Fatalf("ParsePlan(%q) = %q", p, got)
		}
		for i := range p.Clauses {
			if got.Clauses[i] != p.Clauses[i] {
				t.Fatalf("clause %d: got %+v, want %+v", i, got.Clauses[i], p.Clauses[i])
			}
		}
	})
}

func TestParsePlanReportsEveryWord(t *testing.T) {
	_, err := ParsePlan("seed=x fin@mid:10% bang@mid tail-delay=-1s")
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("ParsePlan of three bad words = %v, want three errors", err)
	}
}

func mustPlan(t testing.TB, s string) Plan {
	p, err := ParsePlan(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestValidate(t *testing.T) {
	for in, want := range map[string][]string{
		"":                           nil,
		"fin@mid:30% reset@sent:70%": nil,
		"fin@mid:33.4% fin@sent:33.3% stall@done:33.3% vanish@tail:0.1%": {"add up to 100.1%"},
		"fin@mid reset@mid:1%":                 {"add up to 101%"},
		"stream-reset@mid:1% slow@mid:1%":      {"needs HTTP/2"},
		"notify@mid:1% wrong-signal@mid:1%":    {"needs a stdio server"},
		"wrong-signal@head(3)":                 {"a request that was sent"},
		"fin@event:1% fin@head:1% fin@body:1%": nil,
	} {
		err := mustPlan(t, in).Validate()
		if (err == nil) != (len(want) == 0) {
			t.Errorf("Validate(%q) = %v, want %d problem(s)", in, err, len(want))
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("Validate(%q) = %v, want it to say %q", in, err, w)
			}
		}
	}
	zero := Plan{Clauses: []Clause{{}}}
	if err := zero.Validate(); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("Validate of a zero clause = %v, want style, moment and share", err)
	}
}

// The seeds people keep must go on to mean the same: these figures may never
// change.
func TestDrawIsFixed(t *testing.T) {
	for _, c := range []struct {
		seed    uint64
		ref     string
		purpose string
		want    string
	}{
		{1, "1/1", "cut", "0.343474613886"},
		{1, "1/2", "cut", "0.037064018218"},
		{1, "1/1", "moment", "0.547364051718"},
		{math.MaxUint64, "k3/1", "x", "0.282129356496"},
	} {
		ref, _ := history.ParseRef(c.ref)
		if got := fmt.Sprintf("%.12f", Draw(c.seed, ref, c.purpose)); got != c.want {
			t.Errorf("Draw(%d, %s, %s) = %s, want %s", c.seed, c.ref, c.purpose, got, c.want)
		}
	}
}

func TestDrawIsEven(t *testing.T) {
	const n, cells = 20_000, 20
	var count [cells]int
	sum := 0.0
	for i := range uint64(n) {
		ref := history.Ref{Call: i/2 + 1, Attempt: uint32(i%2) + 1}
		u := Draw(42, ref, "a")
		count[int(u*cells)]++
		sum += (u - 0.5) * (Draw(42, ref, "b") - 0.5)
	}
	for i, c := range count {
		if math.Abs(float64(c)-n/cells) > 6*math.Sqrt(n/cells) {
			t.Errorf("cell %d holds %d of %d draws, want about %d", i, c, n, n/cells)
		}
	}
	if r := sum / n * 12; math.Abs(r) > 0.04 {
		t.Errorf("two purposes correlate by %.3f, want 0", r)
	}
}

var clean = Clean{Median: 1300 * time.Millisecond, TailGap: 300 * time.Millisecond, Events: 10}

func TestCutShares(t *testing.T) {
	p := mustPlan(t, "seed=7 fin@mid:20% reset@sent:30% stall@after(1s):0.5%")
	var got [3]int
	const n = 20_000
	for i := range uint64(n) {
		if c, ok := p.Cut(history.Ref{Call: i + 1, Attempt: 1}, clean); ok {
			got[c.Clause]++
		}
	}
	for i, want := range []float64{0.2, 0.3, 0.005} {
		if d := math.Abs(float64(got[i])/n - want); d > 0.015 {
			t.Errorf("clause %d cut %d of %d, want a share of %v", i, got[i], n, want)
		}
	}
	all := mustPlan(t, "fin@mid:33.33333333% reset@mid:33.33333333% stall@mid:33.33333334%")
	for i := range uint64(n) {
		if _, ok := all.Cut(history.Ref{Call: i + 1, Attempt: 1}, clean); !ok {
			t.Fatalf("call %d is not cut although the shares add up to 100 %%", i+1)
		}
	}
}

func TestCutOnlyLoadAttempts(t *testing.T) {
	p := mustPlan(t, "fin@mid")
	for _, s := range []string{"k1/1", "z1/1", "p1/1", "1"} {
		ref, _ := history.ParseRef(s)
		if c, ok := p.Cut(ref, clean); ok {
			t.Errorf("Cut(%s) = %v, want none", s, c)
		}
	}
	if _, ok := (Plan{}).Cut(history.Ref{Call: 1, Attempt: 1}, clean); ok {
		t.Error("an empty plan cuts")
	}
}

// Clean figures move the resolved moment, never the decision; and the draw of
// a clause stays inside what its text says.
func TestCutProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := genPlan(t)
		ref := history.Ref{Call: rapid.Uint64Range(1, 1<<40).Draw(t, "call"), Attempt: rapid.Uint32Range(1, 9).Draw(t, "attempt")}
		a, okA := p.Cut(ref, clean)
		b, okB := p.Cut(ref, Clean{})
		if okA != okB || a.Clause != b.Clause || a.Style != b.Style {
			t.Fatalf("%s: clean calls changed the decision: %v %v, %v %v", p, a, okA, b, okB)
		}
		if again, ok := mustParse(t, p).Cut(ref, clean); ok != okA || again != a {
			t.Fatalf("%s: same seed, another cut: %v, %v", p, a, again)
		}
		if !okA {
			return
		}
		m, tr := p.Clauses[a.Clause].Moment, a.Trigger
		switch m.form {
		case formUniform:
			if tr.After < m.from-time.Microsecond || tr.After > m.to+time.Microsecond {
				t.Fatalf("%s resolved to %s", m, tr)
			}
		case formPhase:
			if m.phase == history.PhaseMid && (tr.Event < 1 || tr.Event > clean.Events-1) {
				t.Fatalf("mid resolved to %s", tr)
			}
		}
		if tr.Kind == TriggerNone || tr.String() == "" || tr.After < 0 {
			t.Fatalf("%s resolved to %+v", m, tr)
		}
	})
}

func mustParse(t *rapid.T, p Plan) Plan {
	q, err := ParsePlan(p.String())
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestResolve(t *testing.T) {
	for in, want := range map[string]Trigger{
		"sent":           {Kind: AtPhase, Phase: history.PhaseSent},
		"headers":        {Kind: AtPhase, Phase: history.PhaseHeaders},
		"done":           {Kind: AtPhase, Phase: history.PhaseDone},
		"mid":            {Kind: AtEvent, Phase: history.PhaseMid, Event: 5},
		"event":          {Kind: AtEvent, Phase: history.PhaseEvent, Event: 6, Offset: 1},
		"head":           {Kind: InRequest, Phase: history.PhaseHead, Part: 0.5},
		"body(7)":        {Kind: InRequest, Phase: history.PhaseBody, Bytes: 7},
		"quiet(1s)":      {Kind: AfterQuiet, After: time.Second},
		"every(1s)":      {Kind: AtClock, After: time.Second},
		"exp(1s,2s)":     {Kind: AfterSent, After: 2693147 * time.Microsecond},
		"tail":           {Kind: AtPhase, Phase: history.PhaseTail, After: 150 * time.Millisecond, Event: 10, Base: time.Second},
		"event(3)":       {Kind: AtEvent, Event: 3},
		"event+12(3)":    {Kind: AtEvent, Event: 3, Offset: 12},
		"bytes(100)":     {Kind: AtBytes, Bytes: 100},
		"after(2s)":      {Kind: AfterSent, After: 2 * time.Second},
		"uniform(0s,1s)": {Kind: AfterSent, After: 500 * time.Millisecond},
		"exp(1s)":        {Kind: AfterSent, After: 693147 * time.Microsecond},
		"part(0.5,1.5)":  {Kind: AfterSent, After: 1300 * time.Millisecond},
	} {
		m, err := ParseMoment(in)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, m.resolve(0.5, clean, -1)); d != "" {
			t.Errorf("resolve(%s) (-want +got):\n%s", in, d)
		}
	}
	tail, _ := ParseMoment("tail")
	if got := tail.resolve(0, clean, 40*time.Millisecond).String(); got != "tail+40ms" {
		t.Errorf("tail with a delay of 40ms = %s", got)
	}
	mid, _ := ParseMoment("mid")
	if got := mid.resolve(0.999, Clean{Events: 1}, -1).String(); got != "event(1)" {
		t.Errorf("mid with one clean event = %s", got)
	}
}

func TestWarnings(t *testing.T) {
	for in, want := range map[string]string{
		"fin@after(1s)":        "",
		"fin@after(2s)":        "cut fin@after(2s): its moment lies beyond the clean duration of 1.3s: every cut will be missed",
		"fin@uniform(0s,1.3s)": "",
		"fin@uniform(0s,2.6s)": "about 50 % of its moments",
		"fin@uniform(2s,3s)":   "every cut will be missed",
		"fin@exp(1s)":          "",
		"fin@exp(20s)":         "about 94 % of its moments",
		"fin@part(0.2,0.9)":    "",
		"fin@part(0.5,1.5)":    "about 50 %",
		"fin@event(10)":        "",
		"fin@event(11)":        "has 10 event(s)",
		"fin@mid":              "",
		"fin@done":             "",
	} {
		got := strings.Join(mustPlan(t, in).Warnings(clean), "\n")
		if !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("Warnings(%s) = %q, want %q", in, got, want)
		}
	}
	if got := mustPlan(t, "fin@mid").Warnings(Clean{Median: time.Second}); len(got) != 1 {
		t.Errorf("Warnings(mid, no events) = %q, want one", got)
	}
}

func FuzzParseClause(f *testing.F) {
	for _, s := range []string{"fin@mid", "fin@uniform(0s,800ms):50%", "reset@event+12(3):7%", "stall@part(0.2,0.9):0.1%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseClause(s)
		if err != nil {
			return
		}
		if again, err := ParseClause(c.String()); err != nil || again != c {
			t.Fatalf("ParseClause(%q) = %+v, printed %q, parsed %+v, %v", s, c, c, again, err)
		}
	})
}
