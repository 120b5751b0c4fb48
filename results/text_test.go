package results

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/oracle"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files instead of comparing with them")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

// leaky is the summary of a server that does not honour hang-ups.
func leaky() *Summary {
	run := Run{
		ID: "k3x9", Seed: 42, Started: time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC), Duration: 75.3,
		Command: "mcpflood run http://127.0.0.1:3000/mcp --tool build_report --arg month=2026-09 --arg 'note=it is  late --now' --rate 20/s --duration 30s --cut 'fin@uniform(0s,800ms):50%' --log server.log --log-work 'step (?P<step>\\d+) of .* id=(?P<id>\\S+)'",
		Targets: []string{"http://127.0.0.1:3000/mcp"}, HTTP: "1.1", Protocol: "2026-07-28", Version: "0.1.0", Host: &Host{2, "linux"},
	}
	mid := GroupTags{history.Fin, history.PhaseMid}
	stop := Times{Count: 40, Censored: 12, Min: ptr(0.), Mean: ptr(0.41), P50: ptr(0.092), P90: ptr(0.8), P95: ptr(0.85), P99: ptr(0.9), P999: ptr(0.9), Max: ptr(0.9)}
	amounts := func(f float64) Amounts {
		return Amounts{Useful: ptr(410 * f), Lost: ptr(150 * f), RunOn: ptr(96 * f), RunOnProjected: ptr(120 * f), Unnoticed: ptr(0.), Errored: ptr(0.),
			Abandoned: ptr(8 * f), Unattributed: ptr(0.), Duplicate: ptr(30 * f), Total: ptr(664 * f), Counterfactual: ptr(230 * f)}
	}
	return &Summary{
		Schema: SummarySchema, Run: run, Verdict: history.Fail,
		Reasons:    []string{"run-on: 12 of 40 judged hang-ups", "threshold missed: mcp_time_to_stop: p(99)<500 (at least 900)"},
		Thresholds: []Threshold{{"mcp_time_to_stop", "p(99)<500", ptr(false), ptr(900.)}, {"mcp_notice_time", "p(50)<1000", nil, nil}, {"mcp_calls", "count>=50", ptr(true), ptr(100.)}},
		Counts: Counts{Calls: ptr(100), Delivered: ptr(52), Failed: ptr(46), Attempts: 104, Reissues: ptr(4), PlannedCuts: 55, Cuts: 51, MissedCuts: ptr(4), DroppedArrivals: ptr(3), Abandoned: ptr(2), ToolErrors: 1,
			Verdicts: Verdicts{Stopped: 22, Late: 2, RanOn: 12, Finished: 4, Unknown: 11}, PostCutEmissions: 1, PostCutBytes: 512, StrayMessages: 0,
			Effects: ptr(70), EffectsAfterCut: ptr(9), EffectsInRace: ptr(1), DuplicateEffects: ptr(2), Evidence: &Evidence{Attributed: 900, Unattributed: 1, Foreign: 2}},
		Times: map[string]Times{
			"mcp_call_duration": {Count: 100, Censored: 48, Min: ptr(0.1), Mean: ptr(1.), P50: ptr(1.302), P90: ptr(1.31), P95: ptr(1.32), P99: ptr(1.4), P999: ptr(1.5), Max: ptr(1.5)},
			"mcp_time_to_stop":  stop,
			"mcp_cut_lateness":  {Count: 51, Min: ptr(0.00002), Mean: ptr(0.0001), P50: ptr(0.000061), P90: ptr(0.0002), P95: ptr(0.0003), P99: ptr(0.00117), P999: ptr(0.002), Max: ptr(0.002)},
			"mcp_notice_time":   {},
		},
		Survival:      []Survival{{history.Fin, history.PhaseMid, [][2]float64{{0, 1}, {0.05, 0.6}, {0.1, 0.4}, {0.4, 0.35}, {0.9, 0.3}}}, {history.Reset, history.PhaseMid, nil}},
		Work:          []Work{{"step", amounts(1)}},
		Cost:          Cost{"USD", amounts(0.002)},
		Effectiveness: ptr(0.583), EffectivenessN: 36, StopWithin: ptr(0.15), Clean: Clean{ptr(1.3), ptr(10.), ptr(0.11)},
		Groups: []Group{{Tags: mid, Counts: Counts{Attempts: 40, Cuts: 40, Verdicts: Verdicts{Stopped: 20, Late: 2, RanOn: 12, Finished: 4, Unknown: 2}}, Times: map[string]Times{"mcp_time_to_stop": stop}, Effectiveness: ptr(0.58)},
			{Tags: GroupTags{history.Fin, history.PhaseSent}, Counts: Counts{Attempts: 11, Cuts: 11, Verdicts: Verdicts{Stopped: 2, Unknown: 9}}}},
		Witnesses: []Witness{{"wire", "wire", 0, 3, 3}, {"log", "server.log", history.GradeC, 903, 900}},
		Canary:    Canary{Probes: 76, Failures: 2, P50: ptr(0.0021), P99: ptr(0.0093), LongestOutage: 2.1},
		Driver:    Driver{CPUMax: 0.42, LatenessP99: 0.00117, OpenFiles: 61},
		Findings: []Finding{
			{ID: "run-on", Severity: history.SeverityFail, Text: "the work went on after the client had hung up. Likely the handler never looks at its request's context: pass it on to whatever works.", Count: 12, Where: Where{Style: "fin", Phase: "mid", Tool: "build_report"},
				Attempts: []history.Ref{{Call: 3, Attempt: 1}, {Call: 17, Attempt: 2}},
				Evidence: []oracle.Cite{
					{Source: 1, Name: "server.log", Line: 812, Kind: history.Work, Lo: 12345 * time.Millisecond, Hi: 12346 * time.Millisecond, Text: "build_report step 7 of 10 id=mf-abc-3-1 \x1b[2Jmarker=mfm-abc-3 trace=0123456789abcdef0123456789abcdef user=alice"},
					{Source: 1, Name: "server.log", Line: 813, Kind: history.Completion, Lo: 12600 * time.Millisecond, Hi: 12940 * time.Millisecond, Text: "build_report finished"}}},
			{ID: "duplicate-effect", Severity: history.SeverityWarn, Text: "2 calls had their side effect twice", Count: 2},
		},
	}
}

func TestTextLeaky(t *testing.T) { golden(t, "leaky.txt", leaky().Text()) }

func TestTextGood(t *testing.T) {
	s := leaky()
	s.Verdict, s.Reasons, s.Findings, s.Thresholds = history.Pass, []string{"not excluded: effects not witnessed"}, nil, nil
	s.Counts.Verdicts = Verdicts{Stopped: 50, Finished: 1}
	s.Counts.Effects, s.Counts.EffectsAfterCut, s.Counts.MissedCuts, s.Counts.DroppedArrivals = nil, nil, ptr(0), ptr(0)
	s.Cost, s.Survival, s.Groups, s.Effectiveness = Cost{}, nil, nil, ptr(1.)
	golden(t, "good.txt", s.Text())
}

func TestTextEmpty(t *testing.T) {
	s := &Summary{Schema: SummarySchema, Verdict: history.Undecided, Reasons: []string{"no call was delivered and no cut was judged"}}
	golden(t, "empty.txt", s.Text())
}

// Whatever a server or a witness says, a report stays in its columns and holds
// no control character.
func TestTextIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := leaky()
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\x1b]0;x\a", "\u202etxt.exe", "\xff\xfe", strings.Repeat("w", 500)}))
		s.Reasons = append(s.Reasons, text.Draw(t, "reason"))
		s.Findings[0].Text = text.Draw(t, "finding")
		s.Findings[0].Evidence[0].Text = text.Draw(t, "evidence")
		s.Findings[0].Evidence[0].Name = text.Draw(t, "name")
		s.Findings[0].Where.Tool = Opt(text.Draw(t, "tool"))
		s.Witnesses[1].Source = text.Draw(t, "source")
		s.Thresholds[0].Metric = text.Draw(t, "metric")
		s.Run.Targets = []string{text.Draw(t, "target")}
		s.Run.Command = "mcpflood run"
		for line := range strings.SplitSeq(s.Text(), "\n") {
			if n := utf8.RuneCountInString(line); n > Width {
				t.Fatalf("%d columns: %q", n, line)
			}
			for _, r := range line {
				if !unicode.IsPrint(r) {
					t.Fatalf("%q in %q", r, line)
				}
			}
		}
	})
}

func TestShellLines(t *testing.T) {
	command := string(leaky().Run.Command)
	joined := strings.ReplaceAll(strings.TrimSpace(shellLines(command, "    ")), " \\\n      ", " ")
	if joined != command {
		t.Errorf("a shell reads\n%s\nwant\n%s", joined, command)
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain text, ünïcode ≥ …": "plain text, ünïcode ≥ …",
		"a\x1b[31mb":              `a\x1b[31mb`,
		"a\nb\tc\r":               `a\x0ab\x09c\x0d`,
		"\x7f\u009b":              `\x7f\u009b`,
		"\u202eabc\u2066":         `\u202eabc\u2066`,
		"\xff":                    `\xff`,
		"\ufffd":                  "\ufffd",
		"\U000e0041":              `\U000e0041`,
	} {
		got := Visible(in)
		if got != want || Visible(got) != got {
			t.Errorf("Visible(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for x, want := range map[float64]string{0: "0ms", 0.00002: "0.02ms", 0.0000617: "0.0617ms", 0.152: "152ms", 0.9996: "1000ms", 1.5249: "1.52s", 59.96: "60s", 75.3: "1m15s", 7260: "2h01m"} {
		if got := span(x); got != want {
			t.Errorf("span(%v) = %q, want %q", x, got, want)
		}
	}
	for x, want := range map[float64]string{0: "0", 1234567: "1234567", 0.192: "0.192", 1.5: "1.5", 100: "100", 0.0000001234: "0.0000001234"} {
		if got := amount(&x); got != want {
			t.Errorf("amount(%v) = %q, want %q", x, got, want)
		}
	}
	for x, want := range map[float64]string{0: "0%", 1: "100%", 0.1446: "14.5%", 0.05: "5%", 0.0004: "under 0.1%", 0.9999: "100%"} {
		if got := percent(x); got != want {
			t.Errorf("percent(%v) = %q, want %q", x, got, want)
		}
	}
}
