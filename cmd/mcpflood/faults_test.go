package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/results"
	"github.com/mcpflood/mcpflood/target"
)

const plan = "fin@uniform(0s,800ms):50%"

// faultCase is one fault of the reference server and what must come of it.
type faultCase struct {
	name  string
	extra []string // flags of the target
	args  []string // flags of the run
	code  int
	find  string
	// noSet holds where no set of attempts is compared with the truth.
	noSet bool
	// threshold makes a warning fail.
	threshold string
	wholeOnly bool
}

var faultCases = []faultCase{
	{name: "run-on", code: exitFail, find: "run-on"},
	{name: "slow-stop", args: []string{"--cut", "fin@uniform(0s,400ms):50%"}, code: exitPass, find: "late", threshold: "mcp_late: count==0"},
	{name: "deaf-before-headers", code: exitFail, find: "run-on"},
	{name: "deaf-json", extra: []string{"--answer", "json"}, code: exitFail, find: "run-on"},
	{name: "deaf-body", code: exitFail, find: "run-on"},
	{name: "effect-after", code: exitFail, find: "effect-after-cut"},
	{name: "double-effect", args: []string{"--reissue", "3", "--arg", "idempotency_key={{.Marker}}"}, code: exitPass, find: "duplicate-effect", threshold: "mcp_duplicate_effects: count==0"},
	{name: "cross-talk", code: exitFail, find: "stray-message"},
	{name: "wrong-id", args: []string{"--reissue", "3", "--arg", "idempotency_key={{.Marker}}"}, code: exitFail, find: "wrong-id"},
	{name: "spurious", code: exitFail, find: "spurious-cancel"},
	{name: "slot-leak", extra: []string{"--slots", "2"}, args: []string{"--reissue", "3"}, code: exitFail, find: "slot-leak"},
	{name: "brick", code: exitFail, find: "server-down"},
	{name: "lying-log", code: exitFail, find: "contradiction", noSet: true, wholeOnly: true},
}

// TestFaults runs every fault, whole and at a share of 1 %, with patterns that
// carry ids: the finding comes, the exit code is right, and the set of attempts
// judged ran_on is the set of those that ran on.
func TestFaults(t *testing.T) {
	mcpflood(t)
	for _, fc := range faultCases {
		for _, share := range []string{"", "=0.01"} {
			if share != "" && fc.wholeOnly {
				continue
			}
			t.Run(fc.name+share, func(t *testing.T) {
				t.Parallel()
				fc.run(t, share)
			})
		}
	}
}

func (fc faultCase) run(t *testing.T, share string) {
	s := startTarget(t, append([]string{"--fault", fc.name + share}, fc.extra...)...)
	args := append([]string{"--cut", plan}, s.withIDs()...)
	if slices.Contains(fc.args, "--cut") {
		args = s.withIDs()
	}
	args = append(args, fc.args...)
	if share == "" {
		args = append(args, "--streams", "40", "--duration", "5s")
	} else {
		args = append(args, "--streams", "150", "--calls", "2500")
	}
	if fc.name == "lying-log" {
		args = append(args, "--metrics", s.metrics(), "--metric", "inflight=target_in_flight", "--metrics-interval", "200ms")
	}
	o := s.flood(t, args...)
	o.want(t, fc.code)
	if o.sum == nil {
		t.Fatalf("no summary\n%s\n%s", o.stdout, tail(o.stderr))
	}
	if !o.has(fc.find) {
		t.Errorf("no finding %s; findings %v\n%s", fc.find, o.findings(history.SeverityNote), o.stdout)
	}
	if fc.name == "lying-log" && !o.has("run-on") {
		t.Errorf("no finding run-on; findings %v", o.findings(history.SeverityNote))
	}
	if fc.threshold != "" {
		if again := invoke(t, "", "check", o.dir, "--threshold", fc.threshold); again.code != exitFail {
			t.Errorf("under the threshold %q: exit code %d, want %d", fc.threshold, again.code, exitFail)
		}
	}
	s.stop()
	if !fc.noSet {
		sameRanOn(t, o.attempts(t), s.truths(t))
	}
}

// sameRanOn compares the attempts judged ran_on with the truth.
func sameRanOn(t *testing.T, attempts map[string]results.Attempt, truths map[string]target.Truth) {
	t.Helper()
	compared := 0
	for id, a := range attempts {
		if a.Class != "signal" || !a.Discriminates || a.Ref.Role != history.Load {
			continue
		}
		compared++
		x, seen := truths[id]
		// It ran on if it was told nothing, or heeded nothing, and finished.
		ranOn := seen && x.End == target.EndFinished
		if judged := a.Verdict == results.Opt(history.RanOn.String()); judged != ranOn {
			t.Errorf("attempt %s: judged %q (%s), in truth it ended %q with %d units, faults %v, cut at %v", a.Ref, a.Verdict, a.Reason, x.End, x.Units, x.Faults, a.C1)
		}
		if ranOn && len(a.Work) > 0 {
			after := 0
			for _, w := range x.Work {
				if x.CutSeen != nil && w.After(*x.CutSeen) {
					after++
				}
			}
			if x.CutSeen != nil && abs(float64(after)-a.Work[0].After) > 1 {
				t.Errorf("attempt %s: %v units judged after the cut, in truth %d", a.Ref, a.Work[0].After, after)
			}
		}
	}
	if compared == 0 {
		t.Error("no cut that discriminates: nothing was compared")
	}
}

func abs(x float64) float64 { return max(x, -x) }

// healthyArgs make 5,000 cuts fire. These floods run one after the other: three at
// once would make a small machine late, and its server with it.
var healthyArgs = []string{"--streams", "300", "--arg", "idempotency_key={{.Marker}}"}

func TestHealthy(t *testing.T) {
	mcpflood(t)
	mixed := []string{"--cut", "fin@uniform(0s,800ms):10%", "--cut", "reset@mid:10%", "--cut", "fin@sent:5%", "--cut", "reset@headers:5%",
		"--cut", "half-close@event(2):5%", "--cut", "stall@mid:2%", "--cut", "vanish@mid:2%", "--cut", "fin@tail:5%", "--cut", "fin@done:5%", "--cut", "reset@bytes(300):5%"}
	for _, tc := range []struct {
		name   string
		target []string
		args   []string
		calls  string
		cuts   int
	}{
		{"fin", nil, []string{"--cut", plan}, "11000", 5000},
		{"log-buffer", []string{"--log-buffer", "4096"}, []string{"--cut", plan}, "11000", 5000},
		{"mixed", []string{"--answer", "mixed"}, append(mixed, "--reissue", "2"), "9500", 5000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := startTarget(t, tc.target...)
			o := s.flood(t, slices.Concat(s.withIDs(), healthyArgs, tc.args, []string{"--calls", tc.calls})...)
			o.want(t, exitPass)
			if got := o.findings(history.SeverityWarn); len(got) > 0 {
				t.Errorf("the healthy server is blamed: %v\n%s", got, o.stdout)
			}
			if o.sum.Counts.Cuts < tc.cuts {
				t.Errorf("only %d cuts fired, want %d", o.sum.Counts.Cuts, tc.cuts)
			}
			if v := o.sum.Counts.Verdicts; v.RanOn+v.Late > 0 {
				t.Errorf("verdicts %+v", v)
			}
			s.stop()
			sameRanOn(t, o.attempts(t), s.truths(t))
		})
	}
}

// TestWithoutIDs runs every whole fault with patterns that name no attempt, and
// with the aggregate gauge alone.
func TestWithoutIDs(t *testing.T) {
	mcpflood(t)
	invisible := map[string]bool{"effect-after": true, "double-effect": true}
	for _, fc := range faultCases {
		for _, witness := range []string{"patterns", "gauge"} {
			t.Run(fc.name+"/"+witness, func(t *testing.T) {
				t.Parallel()
				s := startTarget(t, append([]string{"--fault", fc.name}, fc.extra...)...)
				args := []string{"--streams", "20", "--duration", "6s", "--stop-within", "150ms", "--cut", plan}
				if slices.Contains(fc.args, "--cut") {
					args = args[:len(args)-2]
				}
				if fc.name == "deaf-before-headers" {
					args = append(args[:len(args)-2], "--cut", "fin@sent:50%")
				}
				args = append(args, fc.args...)
				if witness == "gauge" {
					args = append(args, "--metrics", s.metrics(), "--metric", "inflight=target_in_flight", "--metrics-interval", "200ms")
				} else {
					args = append(args, s.withoutIDs()...)
				}
				o := s.flood(t, args...)
				if o.sum == nil {
					t.Fatalf("no summary\n%s\n%s", o.stdout, tail(o.stderr))
				}
				switch {
				case slices.Contains([]string{"run-on", "slow-stop", "deaf-before-headers", "deaf-json", "deaf-body"}, fc.name):
					o.want(t, exitFail)
					if !o.has("run-on") {
						t.Errorf("no finding run-on; findings %v\n%s", o.findings(history.SeverityNote), o.stdout)
					}
				case o.code == exitPass && witness == "gauge" && !strings.Contains(strings.Join(strings.Fields(o.stdout), " "), "effects not witnessed"):
					t.Errorf("a pass that does not say that effects are not witnessed:\n%s", o.stdout)
				case o.code == exitPass:
					if !invisible[fc.name] && !o.has(fc.find) {
						t.Errorf("a pass; findings %v\n%s", o.findings(history.SeverityNote), o.stdout)
					}
				case o.code == exitFail:
					if !o.has(fc.find) && !o.has("run-on") {
						t.Errorf("fail without the finding %s: %v\n%s", fc.find, o.findings(history.SeverityNote), o.stdout)
					}
				default:
					o.want(t, exitUnknown)
				}
			})
		}
	}
}

// TestNoWitness holds that without evidence nothing passes.
func TestNoWitness(t *testing.T) {
	s := startTarget(t)
	o := s.flood(t, "--streams", "10", "--duration", "2s", "--cut", plan, "--watch", "1s")
	o.want(t, exitUnknown)
	if o.sum == nil || !strings.Contains(o.stdout, "--log") {
		t.Errorf("the report does not say what to add:\n%s", o.stdout)
	}
}
