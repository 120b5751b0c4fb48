package metric

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const ms = time.Millisecond

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range Defs() {
		id, err := ParseID(d.Name)
		if err != nil || id != d.ID || seen[d.Name] || !strings.HasPrefix(d.Name, "mcp_") || d.Kind == 0 || d.Help == "" {
			t.Errorf("%+v: ParseID = %v, %v", d, id, err)
		}
		seen[d.Name] = true
	}
	if _, err := ParseID(""); err == nil {
		t.Error("the empty name is a metric")
	}
}

func TestThresholdErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":                                      "want METRIC: EXPR",
		"mcp_ran_on":                            "want METRIC: EXPR",
		"mcp_bogus: count==0":                   "want one of mcp_calls, mcp_attempts",
		"mcp_ran_on: p(99)<1":                   "mcp_ran_on is a counter and has no \"p(99)\": want one of count, rate",
		"mcp_ran_on: count":                     "has no comparison",
		"mcp_ran_on: count=0":                   "has no comparison",
		"mcp_ran_on: count==x":                  "want a number",
		"mcp_ran_on: count==Inf":                "want a number",
		"mcp_ran_on: ==0":                       "has no \"\"",
		"mcp_time_to_stop: count>1":             "mcp_time_to_stop is a time and has no \"count\": want one of avg, min, med, max, p(N)",
		"mcp_time_to_stop: p(N)<1":              "want p(0) to p(100)",
		"mcp_time_to_stop: p(101)<1":            "want p(0) to p(100)",
		"mcp_time_to_stop: p(99<1":              "want p(0) to p(100)",
		"mcp_time_to_stop: p(99)<500ms":         "write 500",
		"mcp_effectiveness: p(1)<1":             "mcp_effectiveness is a value",
		"mcp_effectiveness{style:fin}: value>0": "no tags to select by",
		"mcp_ran_on{style:fin: count==0":        "closing brace",
		"mcp_ran_on{style:fin}x: count==0":      "between the selector and the colon",
		"mcp_ran_on{style}: count==0":           "want tag:value",
		"mcp_ran_on{colour:red}: count==0":      "has no tag \"colour\": want one of style, phase",
		"mcp_ran_on{kind:lost}: count==0":       "has no tag \"kind\"",
		"mcp_cost{style:fin}: count<1":          "want one of kind",
	} {
		if _, err := ParseThreshold(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseThreshold(%q) = %v, want an error with %q", in, err, want)
		}
	}
}

func must(t testing.TB, s string) Threshold {
	th, err := ParseThreshold(s)
	if err != nil {
		t.Fatal(err)
	}
	return th
}

func TestThresholdText(t *testing.T) {
	th := must(t, "  mcp_time_to_stop{style:fin,phase:mid} :  p( 99.5 ) <= 500 ")
	if th.Metric() != "mcp_time_to_stop{style:fin,phase:mid}" || th.Expr() != "p( 99.5 ) <= 500" || th.percent != 99.5 || th.op != "<=" || th.limit != 500 {
		t.Errorf("parsed as %+v", th)
	}
	if again := must(t, th.String()); again != th {
		t.Errorf("%q parses to %+v, want %+v", th, again, th)
	}
}

// fill is a small run: three fin cuts judged, one unknown, one vanish noticed.
func fill(r *Registry) {
	fin := Tags{Style: "fin", Phase: "mid", Tool: "build_report", Grade: "C"}
	vanish := Tags{Style: "vanish", Phase: "mid", Tool: "build_report"}
	r.Count(Calls, Tags{Tool: "build_report"}, 20)
	r.Count(RanOn, fin, 1)
	r.Count(Stopped, fin, 2)
	r.Count(Unknown, fin, 1)
	r.Populate(JudgedSignal, fin, 3)
	r.Populate(JudgedCuts, fin, 3)
	r.Populate(JudgedCuts, vanish, 1)
	r.Populate(AllVerdicts, fin, 4)
	r.Populate(AllVerdicts, vanish, 1)
	for _, d := range []time.Duration{10 * ms, 20 * ms, 30 * ms} {
		r.Time(TimeToStop, fin, d, false)
	}
	r.Time(TimeToStop, fin, 15*time.Second, true)
	r.Time(NoticeTime, vanish, 700*ms, false)
	r.Count(Cost, Tags{Kind: "useful"}, 4)
	r.Count(Cost, Tags{Kind: "run_on"}, 1.5)
	r.Overlay(Cost, Tags{Kind: "duplicate"}, 0.5)
	r.Set(Effectiveness, 0.75)
	r.Blind(EffectsAfterCut)
}

func TestEvaluate(t *testing.T) {
	type out struct {
		OK      string
		Value   float64
		AtLeast bool
		Why     string
	}
	none := math.Inf(-1)
	for in, want := range map[string]out{
		"mcp_calls: count>=20":                          {"true", 20, false, ""},
		"mcp_calls: rate>3":                             {"false", 2, false, ""},
		"mcp_ran_on: count==0":                          {"false", 1, false, ""},
		"mcp_ran_on: rate<0.5":                          {"true", 1. / 3, false, ""},
		"mcp_ran_on{style:fin}: count<2":                {"true", 1, false, ""},
		"mcp_ran_on{style:fin,phase:tail}: count<2":     {"", none, false, "no judged cut that signals"},
		"mcp_ran_on{style:vanish}: count==0":            {"", none, false, "no judged cut that signals"},
		"mcp_ran_on{grade:C}: count===1":                {"true", 1, false, ""},
		"mcp_late: count==0":                            {"true", 0, false, ""},
		"mcp_unknown: rate<=0.2":                        {"true", 0.2, false, ""},
		"mcp_post_cut_emissions: count==0":              {"true", 0, false, ""},
		"mcp_effects_after_cut: count==0":               {"", none, false, "nothing could see it"},
		"mcp_canary_failures: count==0":                 {"", none, false, "no canary probe"},
		"mcp_time_to_stop: med<100":                     {"true", 20, false, ""},
		"mcp_time_to_stop: p(99)<100000":                {"false", 15000, true, ""},
		"mcp_time_to_stop: max>1":                       {"true", 15000, true, ""},
		"mcp_time_to_stop: min!=10":                     {"false", 10, false, ""},
		"mcp_time_to_stop: avg<100000":                  {"false", 3765, true, ""},
		"mcp_notice_time{style:\"vanish\"}: p(50)<=700": {"true", 700, false, ""},
		"mcp_signal_latency: p(95)<100":                 {"", none, false, "no samples"},
		"mcp_effectiveness: value>0.95":                 {"false", 0.75, false, ""},
		"mcp_streams: value<10":                         {"", none, false, "no figure"},
		"mcp_cost: count<5.6":                           {"true", 5.5, false, ""},
		"mcp_cost{kind:run_on}: count==0":               {"false", 1.5, false, ""},
		"mcp_cost{kind:duplicate}: count==0":            {"false", 0.5, false, ""},
	} {
		th := must(t, in)
		r := NewRegistry([]Threshold{th})
		fill(r)
		res := r.Evaluate(th, 10*time.Second)
		got := out{Value: none, AtLeast: res.AtLeast, Why: res.Why}
		if res.OK != nil {
			got.OK = map[bool]string{true: "true", false: "false"}[*res.OK]
		}
		if res.Value != nil {
			got.Value = *res.Value
		}
		near := cmp.Comparer(func(x, y float64) bool { return x == y || math.Abs(x-y) < 1e-3*math.Abs(y) })
		if d := cmp.Diff(want, got, near); d != "" {
			t.Errorf("%s (-want +got):\n%s", in, d)
		}
	}
}

// What a selector picks and what it leaves add up to the whole.
func TestSelectorsPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, _ := ParseThreshold("mcp_cuts{style:fin}: count>=0")
		b, _ := ParseThreshold("mcp_cuts{style:reset}: count>=0")
		r := NewRegistry([]Threshold{a, b})
		total := 0
		for range rapid.IntRange(0, 20).Draw(t, "n") {
			r.Count(Cuts, Tags{Style: rapid.SampledFrom([]string{"fin", "reset"}).Draw(t, "style")}, 1)
			total++
		}
		x, y := r.Evaluate(a, time.Second), r.Evaluate(b, time.Second)
		if *x.Value+*y.Value != float64(total) || r.Whole().Sum(Cuts) != float64(total) {
			t.Fatalf("%v + %v of %d", *x.Value, *y.Value, total)
		}
	})
}

func TestMisuseIsAnInvariant(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a time was counted")
		}
	}()
	new(Set).Count(TimeToStop, 1)
}

func FuzzParseThreshold(f *testing.F) {
	for _, s := range []string{"mcp_ran_on: count==0", "mcp_time_to_stop{style:fin,phase:mid}: p(99)<500", "mcp_cost{kind:run_on}: rate<0.01", "mcp_x{:}:p(=="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		th, err := ParseThreshold(s)
		if err != nil {
			return
		}
		if again, err := ParseThreshold(th.String()); err != nil || again != th {
			t.Fatalf("%q printed %q, parsed %+v, %v", s, th, again, err)
		}
		NewRegistry([]Threshold{th}).Evaluate(th, time.Second)
	})
}
