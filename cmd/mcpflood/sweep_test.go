package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/audit"
)

// sweep runs the audit against s and reads its grid.
func (s *server) sweep(t *testing.T, args ...string) (*outcome, map[audit.Key]audit.Cell) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	all := append([]string{"sweep", s.url(), "--tool", "build_report", "--arg", "month=2026-09", "--arg", "idempotency_key={{.Marker}}", "-o", dir, "--watch", "4s"}, s.withIDs()...)
	o := invoke(t, dir, append(all, args...)...)
	b, err := os.ReadFile(filepath.Join(dir, audit.GridFile))
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, o.stdout, tail(o.stderr))
	}
	var g audit.Grid
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	cells := map[audit.Key]audit.Cell{}
	for _, c := range g.Cells {
		if c.Text == "" || c.Text == "n/a" && c.Why == "" {
			t.Errorf("cell %+v says nothing", c)
		}
		cells[audit.Key{Form: c.Form, Phase: c.Phase, Style: c.Style}] = c
	}
	return o, cells
}

// TestSweep audits the healthy reference server and some of its faults: the
// failing cells are the right ones, and no others.
func TestSweep(t *testing.T) {
	mcpflood(t)
	stream := []history.Phase{history.PhaseMid, history.PhaseEvent, history.PhaseHeaders}
	every := append(slices.Clone(stream), history.PhaseSent)
	sent := []history.Phase{history.PhaseSent}
	for _, tc := range []struct {
		fault     string
		code      int
		findings  []string // above note
		sse, json []history.Phase
		text      string // how the marked cells begin
		say       string
	}{
		{fault: "", code: exitPass},
		{fault: "run-on", code: exitFail, findings: []string{"effect-after-cut", "run-on"}, sse: every, json: sent, text: "RAN ON"},
		{fault: "slow-stop", code: exitPass, findings: []string{"late"}, sse: every, json: sent, text: "late"},
		{fault: "effect-after", code: exitFail, findings: []string{"effect-after-cut"}, sse: every, json: sent, text: "EFFECT"},
		{fault: "deaf-before-headers", code: exitFail, findings: []string{"effect-after-cut", "run-on"}, sse: sent, json: sent, text: "RAN ON", say: "before the response head"},
		{fault: "deaf-json", code: exitFail, findings: []string{"effect-after-cut", "run-on"}, json: sent, text: "RAN ON", say: "plain JSON"},
		{fault: "cancel-any", code: exitFail, findings: []string{"cancel-any"}, say: "another client's notifications/cancelled"},
		{fault: "brick", code: exitFail, findings: []string{"server-down"}, say: "server down since"},
	} {
		t.Run("fault="+tc.fault, func(t *testing.T) {
			t.Parallel()
			var flags []string
			if tc.fault != "" {
				flags = []string{"--fault", tc.fault}
			}
			o, cells := startTarget(t, flags...).sweep(t)
			o.want(t, tc.code)
			if got := o.findings(history.SeverityWarn); !slices.Equal(got, tc.findings) {
				t.Errorf("findings %v, want %v\n%s", got, tc.findings, o.stdout)
			}
			if out := strings.Join(strings.Fields(o.stdout), " "); !strings.Contains(out, tc.say) {
				t.Errorf("it does not say %q:\n%s", tc.say, o.stdout)
			}
			for k, c := range cells {
				marked := tc.text != "" && k.Style.Class() == history.ClassSignal &&
					slices.Contains(map[string][]history.Phase{audit.FormSSE: tc.sse, audit.FormJSON: tc.json}[k.Form], k.Phase)
				if marked != (tc.text != "" && strings.HasPrefix(c.Text, tc.text)) {
					t.Errorf("cell %+v: %q, %s", k, c.Text, c.Why)
				}
				if c.Verdict == history.Undecided {
					t.Errorf("cell %+v is unknown: %s", k, c.Why)
				}
			}
		})
	}
}

func TestSweepWithoutWitness(t *testing.T) {
	s := startTarget(t)
	dir := filepath.Join(t.TempDir(), "run")
	o := invoke(t, dir, "sweep", s.url(), "--tool", "build_report", "--arg", "month=2026-09", "-o", dir, "--watch", "1s", "--repeats", "1")
	o.want(t, exitUnknown)
	if again := invoke(t, "", "sweep", s.url(), "--tool", "build_report", "--arg", "month=2026-09", "--repeats", "0"); again.code != exitUsage || !strings.Contains(again.stderr, "--repeats") {
		t.Errorf("exit code %d: %s", again.code, again.stderr)
	}
}
