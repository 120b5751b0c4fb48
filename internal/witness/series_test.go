package witness

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpflood/mcpflood/history"
)

func mustSelect(t *testing.T, texts ...string) []selector {
	t.Helper()
	var out []selector
	for _, text := range texts {
		s, err := parseSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

func mustParse(t *testing.T, lines ...string) []sample {
	t.Helper()
	all, _, err := parse(strings.NewReader(strings.Join(lines, "\n") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestParseSelector(t *testing.T) {
	for text, want := range map[string]selector{
		"work=jobs":                {role: "work", kind: history.Work, name: "jobs"},
		"inflight=a:b_c{}":         {role: "inflight", kind: history.Work, name: "a:b_c"},
		`stopped=x{tool="a,}=b"}`:  {role: "stopped", kind: history.Stop, name: "x", labels: []label{{"tool", "a,}=b"}}},
		`done=x{ a="1" , b="\"",}`: {role: "done", kind: history.Completion, name: "x", labels: []label{{"a", "1"}, {"b", `"`}}},
		"effects=mails_total":      {role: "effects", kind: history.Effect, name: "mails_total"},
	} {
		want.text = text
		got, err := parseSelector(text)
		if err != nil || !cmp.Equal(got, want, cmp.AllowUnexported(selector{}, label{})) {
			t.Errorf("parseSelector(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"jobs":            "want ROLE=NAME",
		"wrok=jobs":       `did you mean "work"`,
		"work=":           "want the name",
		`work={a="b"}`:    "want the name",
		"work=x{a=b}":     "quoted",
		`work=x{a!="b"}`:  "want labels",
		`work=x{a=~"b"}`:  "quoted",
		`work=x{a="b"`:    "want , or }",
		`work=x{a="b"}y`:  "want , or }",
		`work=x{a="b" c}`: "want , or }",
		`work=x{`:         "want labels",
	} {
		if _, err := parseSelector(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseSelector(%q) = %v, want %q", text, err, want)
		}
	}
}

func FuzzParseSelector(f *testing.F) {
	for _, s := range []string{"work=jobs", `stopped=x{tool="a",b="\x"}`, `work=x{a="b",,}`, "="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if sel, err := parseSelector(s); err == nil && (sel.name == "" || sel.kind == 0) {
			t.Errorf("parseSelector(%q) = %+v", s, sel)
		}
	})
}

func TestPick(t *testing.T) {
	all := mustParse(t,
		"# TYPE steps_total counter", `steps_total{tool="a"} 1`, `steps_total{tool="b"} 2`,
		"both 3", "both_total 4",
		"# TYPE size histogram", `size_bucket{le="1"} 1`, `size_bucket{le="+Inf"} 5`, "size_sum 9", "size_count 5",
		"# TYPE lag summary", `lag{quantile="0.5"} 3`, "lag_sum 12", "lag_count 4")
	for text, want := range map[string][]float64{
		"work=steps_total":     {1, 2},
		"work=steps":           {1, 2},
		`work=steps{tool="b"}`: {2},
		`work=steps{tool="c"}`: nil,
		"work=both":            {3},
		"work=both_total":      {4},
		"work=size_count":      {5},
		"work=size_sum":        {9},
		"work=lag_sum":         {12},
		"work=size":            nil,
		"work=none":            nil,
	} {
		var got []float64
		for _, m := range mustSelect(t, text)[0].pick(all) {
			got = append(got, m.value)
		}
		if !cmp.Equal(got, want) {
			t.Errorf("%s picks %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"work=stpes":            `nearest: "steps_total"`,
		`work=steps{tool="aa"}`: `steps_total{tool="a"}`,
	} {
		if got := mustSelect(t, text)[0].hint(all); !strings.Contains(got, want) {
			t.Errorf("hint of %s = %q, want %q", text, got, want)
		}
	}
	if got := mustSelect(t, "work=x")[0].hint(nil); !strings.Contains(got, "no metrics") {
		t.Errorf("hint without metrics = %q", got)
	}
}

func TestSeriesAggregate(t *testing.T) {
	s := newSeries(ours, mustSelect(t, "work=steps", `work=steps{tool="a"}`, "inflight=busy", "stopped=stops"))
	r := s.read(mustParse(t, `steps_total{tool="a"} 5`, "other 9"), 1, 2)
	want := reading{values: map[string]float64{"work": 5, "inflight": 0, "stopped": 0}, moved: map[history.Kind]bool{}}
	if diff := cmp.Diff(want, r, cmp.AllowUnexported(reading{})); diff != "" {
		t.Errorf("first scrape (-want +got):\n%s", diff)
	}
	if !cmp.Equal(s.met, []bool{true, true, false, false}) {
		t.Errorf("met %v", s.met)
	}
	r = s.read(mustParse(t, `steps_total{tool="a"} 7`, `steps_total{tool="b"} 2`, "busy 3", `stops{why="hup"} 1`), 3, 4)
	want.values = map[string]float64{"work": 9, "inflight": 3, "stopped": 1}
	want.moved = map[history.Kind]bool{history.Work: true, history.Stop: true}
	if diff := cmp.Diff(want, r, cmp.AllowUnexported(reading{})); diff != "" {
		t.Errorf("second scrape (-want +got):\n%s", diff)
	}
	// One series falls, another vanishes: their sum hides neither. A gauge may
	// do both.
	r = s.read(mustParse(t, `steps_total{tool="a"} 1`, `steps_total{tool="c"} 90`, `stops{why="hup"} 1`), 5, 6)
	if len(r.gaps) != 1 || !strings.Contains(r.gaps[0], "counter reset: 2 series") {
		t.Errorf("gaps %q, want a reset of 2 series", r.gaps)
	}
	if r.values["inflight"] != 0 || r.values["work"] != 91 {
		t.Errorf("values %v", r.values)
	}
}

func TestSeriesByAttempt(t *testing.T) {
	id, marker := ours.ID(ref), ours.Marker(other)
	s := newSeries(ours, mustSelect(t, "work=steps", "inflight=busy", "stopped=stops", "done=ends", "effects=mails"))
	s.read(nil, 100, 110)
	text := func(name string) string { return name + `{id="` + id + `"}` }
	r := s.read(mustParse(t,
		text("steps")+" 3", `steps{id="`+theirs.ID(ref)+`"} 4`, "steps 50",
		text("busy")+" 1", `stops{m="`+marker+`"} 1`, text("ends")+" 0", text("mails")+" 2"), 200, 210)
	base := history.Evidence{Ref: ref, By: "id", Timed: true, Lo: 100, Hi: 210}
	of := func(k history.Kind, edit func(*history.Evidence)) history.Evidence {
		e := base
		e.Kind = k
		edit(&e)
		return e
	}
	mail := of(history.Effect, func(e *history.Evidence) { e.Text = text("mails") })
	want := []history.Evidence{
		of(history.Work, func(e *history.Evidence) { e.Units, e.Text = 3, text("steps") }),
		{Kind: history.Work, Units: 4, Foreign: true, Timed: true, Lo: 100, Hi: 210},
		of(history.Work, func(e *history.Evidence) { e.Lo, e.Text = 200, text("busy") }),
		of(history.Stop, func(e *history.Evidence) { e.Ref, e.By, e.Text = other.Whole(), "marker", `stops{m="`+marker+`"}` }),
		mail, mail,
	}
	if diff := cmp.Diff(want, r.evidence); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
	// The gauge, stops, ends and mails name attempts: no aggregate of theirs is
	// left. The series without an id still has one.
	if diff := cmp.Diff(map[string]float64{"work": 50}, r.values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	// What rose, and a series that began again; one that is over may vanish.
	r = s.read(mustParse(t, text("steps")+" 2", text("busy")+" 0"), 300, 310)
	want = []history.Evidence{of(history.Work, func(e *history.Evidence) { e.Units, e.Text, e.Lo, e.Hi = 2, text("steps"), 200, 310 })}
	if diff := cmp.Diff(want, r.evidence); diff != "" {
		t.Errorf("evidence after a reset (-want +got):\n%s", diff)
	}
	if len(r.gaps) != 1 || !strings.Contains(r.gaps[0], "2 series") { // steps by id, steps without
		t.Errorf("gaps %q", r.gaps)
	}
}

func TestSeriesLimits(t *testing.T) {
	s := newSeries(ours, mustSelect(t, "work=x", "effects=y"))
	s.read(nil, 0, time.Second)
	all := make([]sample, maxSeries+7)
	for i := range all {
		all[i] = sample{"x", []label{{"n", string(rune('a' + i))}}, 1}
	}
	r := s.read(all, 1, 2)
	if len(r.gaps) != 1 || !strings.Contains(r.gaps[0], "7 series beyond") || len(s.prev) != maxSeries {
		t.Errorf("gaps %q, %d series followed", r.gaps, len(s.prev))
	}
	r = s.read([]sample{{"y", []label{{"id", ours.ID(ref)}}, 1e9}}, 3, 4)
	if len(r.evidence) != maxEffects {
		t.Errorf("%d effects of a leaping counter, want %d", len(r.evidence), maxEffects)
	}
}

func TestParseValues(t *testing.T) {
	all, malformed, err := parse(strings.NewReader("a NaN\nb +Inf\nc 1e300\nd 4\ne{x=\"\\\"\\n\"} 5 1700000000000\n"))
	if err != nil || malformed != 3 || len(all) != 2 {
		t.Errorf("parse = %v, %d malformed, %v; want two values, three malformed", all, malformed, err)
	}
	if got, want := all[1].String(), `e{x="\"\n"}`; got != want {
		t.Errorf("series %s, want %s", got, want)
	}
}

func FuzzScrape(f *testing.F) {
	f.Add("# TYPE steps counter\nsteps_total{id=\"" + ours.ID(ref) + "\"} 3\n")
	f.Add("# HELP x y\n# TYPE x histogram\nx_bucket{le=\"1\"} 1\nx_count 2\nx_sum NaN\n")
	f.Add("{\"a.b\",c=\"d\"} 1e999\n# EOF\n")
	sel := []string{"work=steps", "inflight=x", "effects=x_count"}
	f.Fuzz(func(t *testing.T, text string) {
		s := newSeries(ours, mustSelect(t, sel...))
		for i := range time.Duration(3) {
			all, _, err := parse(strings.NewReader(text))
			if err != nil {
				return
			}
			r := s.read(all, i, i+1)
			for _, e := range r.evidence {
				if e.Lo > e.Hi || e.Units < 0 {
					t.Errorf("evidence %+v", e)
				}
			}
			if len(r.gaps) > 0 {
				t.Errorf("the same page again gives gaps %q", r.gaps)
			}
		}
	})
}
