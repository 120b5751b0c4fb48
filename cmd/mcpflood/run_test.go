package main

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/peers/peertest"
	"github.com/mcpflood/mcpflood/results"
)

func TestDemo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	begun := time.Now()
	o := invoke(t, "", "demo", "-o", dir)
	took := time.Since(begun)
	if o.code != exitPass {
		t.Fatalf("exit code %d\n%s\n%s", o.code, o.stdout, tail(o.stderr))
	}
	if took > 30*time.Second {
		t.Errorf("the demo took %s, want at most 30s", took)
	}
	for _, want := range []string{"good server", "leaky server", "PASS", "FAIL", "USD"} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("the demo does not print %q:\n%s", want, o.stdout)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, demoFile))
	if err != nil {
		t.Fatal(err)
	}
	var res demoResult
	if err := json.Unmarshal(b, &res); err != nil || !res.ToldApart {
		t.Errorf("demo.json: %s, %v", b, err)
	}
	for _, arm := range []string{"good", "leaky"} {
		if again := invoke(t, "", "check", filepath.Join(dir, arm)); again.code != map[string]int{"good": exitPass, "leaky": exitFail}[arm] {
			t.Errorf("check of %s: exit code %d", arm, again.code)
		}
	}
	if again := invoke(t, "", "demo", "-o", filepath.Dir(dir)); again.code != exitUsage {
		t.Errorf("demo into a directory of others: exit code %d, want %d", again.code, exitUsage)
	}
}

// TestSameSeedSamePlan runs one plan twice: the decisions are the same.
func TestSameSeedSamePlan(t *testing.T) {
	s := startTarget(t)
	planned := func() map[history.Ref]string {
		o := s.flood(t, append(s.withIDs(), "--streams", "20", "--calls", "100", "--cut", "fin@uniform(0s,800ms):50%", "--cut", "reset@mid:20%", "--watch", "2s")...)
		if o.sum == nil {
			t.Fatalf("no summary\n%s", tail(o.stderr))
		}
		out := map[history.Ref]string{}
		each(t, o.dir, func(r history.Record) {
			if r.Start != nil && r.Start.Planned != nil {
				out[r.Start.Ref] = r.Start.Planned.Style.String() + "@" + r.Start.Planned.Moment
			}
		})
		return out
	}
	a, b := planned(), planned()
	if len(a) == 0 || len(a) != len(b) {
		t.Fatalf("%d and %d planned cuts", len(a), len(b))
	}
	for ref, cut := range a {
		if b[ref] != cut {
			t.Errorf("attempt %s: %s in one run, %s in the other", ref, cut, b[ref])
		}
	}
}

func each(t *testing.T, dir string, f func(history.Record)) {
	t.Helper()
	r, err := history.Open(results.HistoryPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		rec, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		f(rec)
	}
}

// TestCheckTwice judges one history twice: not a byte differs.
func TestCheckTwice(t *testing.T) {
	s := startTarget(t, "--fault", "run-on=0.3")
	o := s.flood(t, append(s.withIDs(), "--streams", "30", "--duration", "3s", "--cut", plan, "--price", "step=0.002")...)
	o.want(t, exitFail)
	files := []string{results.SummaryFile, results.ReportFile, results.TimesFile}
	read := func() (out []string) {
		for _, name := range files {
			b, err := os.ReadFile(filepath.Join(o.dir, name))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(b))
		}
		return out
	}
	last := read()
	for range 2 {
		attempts := invoke(t, "", "check", o.dir, "--attempts", "-")
		now := append(read(), "")
		for i, name := range files {
			if now[i] != last[i] {
				t.Errorf("%s differs after check", name)
			}
		}
		if again := invoke(t, "", "check", o.dir, "--attempts", "-"); again.stdout != attempts.stdout || attempts.code != exitFail {
			t.Errorf("the attempts differ, or exit code %d", attempts.code)
		}
	}
}

// interrupted starts a long run and returns its directory once it is under
// load, with the process.
func interrupted(t *testing.T, s *server, args ...string) (*exec.Cmd, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	cmd := exec.Command(mcpflood(t), append([]string{"run", s.url(), "--tool", "build_report", "--arg", "month=2026-09", "-o", dir,
		"--streams", "30", "--duration", "5m", "--cut", plan, "--watch", "3s", "--quiet"}, args...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	limit := time.Now().Add(30 * time.Second)
	for cuts := 0; cuts < 40; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("the run did not come under load")
		}
		if _, err := os.Stat(results.HistoryPath(dir)); err != nil {
			continue
		}
		cuts = 0
		if r, err := history.Open(results.HistoryPath(dir)); err == nil {
			for {
				rec, err := r.Next()
				if err != nil {
					break
				}
				if rec.End != nil && rec.End.Cut != nil {
					cuts++
				}
			}
			r.Close()
		}
	}
	return cmd, dir
}

func TestKilledRunIsJudged(t *testing.T) {
	s := startTarget(t, "--fault", "run-on")
	cmd, dir := interrupted(t, s, s.withIDs()...)
	time.Sleep(3 * time.Second)
	cmd.Process.Kill()
	cmd.Wait()
	o := invoke(t, "", "check", dir)
	if o.code != exitFail || !strings.Contains(o.stdout, "run-on") {
		t.Errorf("exit code %d\n%s\n%s", o.code, o.stdout, o.stderr)
	}
	if sum, err := results.ReadSummary(dir); err != nil || sum.Counts.Verdicts.RanOn == 0 {
		t.Errorf("summary %+v, %v", sum, err)
	}
}

func TestInterruptSettlesAndWrites(t *testing.T) {
	s := startTarget(t)
	cmd, dir := interrupted(t, s, s.withIDs()...)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != exitInterrupted {
		t.Errorf("exit %v, want code %d", err, exitInterrupted)
	}
	sum, err := results.ReadSummary(dir)
	if err != nil {
		t.Fatal(err)
	}
	v := sum.Counts.Verdicts
	if v.RanOn+v.Late > 0 || v.Stopped == 0 || sum.Counts.Abandoned == nil || *sum.Counts.Abandoned == 0 {
		t.Errorf("counts %+v", sum.Counts)
	}
}

func TestSecrets(t *testing.T) {
	s := startTarget(t)
	const secret = "s3cr3t-t0ken"
	o := s.flood(t, append(s.withIDs(), "--streams", "5", "--calls", "10", "--cut", plan, "--watch", "1s", "--bearer", secret, "--header", "X-Api-Key: "+secret)...)
	for _, text := range []string{o.stdout, o.stderr} {
		if strings.Contains(text, secret) {
			t.Error("the secret is printed")
		}
	}
	found := 0
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(o.dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), secret) {
			t.Errorf("%s holds the secret", e.Name())
		}
		found++
	}
	each(t, o.dir, func(r history.Record) {
		if b, _ := json.Marshal(r); strings.Contains(string(b), secret) {
			t.Errorf("the history holds the secret: %s", b)
		}
	})
	if found < 5 {
		t.Errorf("only %d files in the run directory", found)
	}
}

// TestPeers floods real servers on public SDKs.
func TestPeers(t *testing.T) {
	mcpflood(t)
	short := []string{"--step-time", "100ms"}
	for _, tc := range []struct {
		name  string
		start func() *peertest.Peer
		code  int
	}{
		{"go default", func() *peertest.Peer { return peertest.StartGo(t, short...) }, exitFail},
		{"go propagating", func() *peertest.Peer { return peertest.StartGo(t, append(short, "--propagate")...) }, exitPass},
		{"typescript honouring", func() *peertest.Peer { return peertest.StartTypeScript(t, short...) }, exitPass},
		{"typescript ignoring", func() *peertest.Peer { return peertest.StartTypeScript(t, append(short, "--ignore-signal")...) }, exitFail},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := tc.start()
			const who = ` id=(?P<id>\S+) marker=(?P<marker>\S+) trace=(?P<trace>\S+) .*t=(?P<time>\S+)`
			dir := filepath.Join(t.TempDir(), "run")
			o := invoke(t, dir, "run", p.URL, "--tool", "build_report", "--arg", "month=2026-09", "-o", dir, "--streams", "30", "--duration", "4s", "--watch", "4s",
				"--cut", "fin@uniform(0s,800ms):30%", "--cut", "reset@mid:20%", "--cut", "fin@sent:10%", "--log", p.LogFile,
				"--log-work", `build_report step (?P<step>\d+) of \d+`+who, "--log-stop", `build_report cancelled at step \d+ \(stream closed\)`+who,
				"--log-done", `build_report finished`+who, "--log-effect", `build_report effect: e-mail to the team`+who)
			o.want(t, tc.code)
			v := o.sum.Counts.Verdicts
			switch {
			case tc.code == exitPass && (v.Stopped == 0 || v.RanOn+v.Late > 0 || len(o.findings(history.SeverityWarn)) > 0):
				t.Errorf("verdicts %+v, findings %v\n%s", v, o.findings(history.SeverityWarn), o.stdout)
			case tc.code == exitFail && (v.RanOn == 0 || stoppedMid(o.sum) > 0 || !slices.Contains(o.findings(history.SeverityFail), "run-on")):
				t.Errorf("verdicts %+v, findings %v\n%s", v, o.findings(history.SeverityWarn), o.stdout)
			}
		})
	}
}

// stoppedMid counts attempts that stopped although they had begun. One that is
// cut the moment it was sent may never be read by the server at all.
func stoppedMid(s *results.Summary) (n int) {
	for _, g := range s.Groups {
		if g.Tags.Phase != history.PhaseSent {
			n += g.Counts.Verdicts.Stopped
		}
	}
	return n
}

func TestUsage(t *testing.T) {
	mcpflood(t)
	s := startTarget(t)
	for _, tc := range []struct {
		name string
		args []string
		code int
		say  string
	}{
		{"no such flag", []string{"run", s.url(), "--tol", "x"}, exitUsage, "unknown flag"},
		{"no tool", []string{"run", s.url()}, exitUsage, "--tool"},
		{"wrong tool", []string{"run", s.url(), "--tool", "build_repor"}, exitUsage, "build_report"},
		{"missing argument", []string{"run", s.url(), "--tool", "build_report"}, exitUsage, "month"},
		{"not loopback", []string{"run", "http://192.0.2.1/mcp", "--tool", "x"}, exitUsage, "--allow-host"},
		{"nobody there", []string{"run", "http://127.0.0.1:9/mcp", "--tool", "x"}, exitUnreachable, "refused"},
		{"bad cut", []string{"run", s.url(), "--tool", "build_report", "--arg", "month=1", "--cut", "fin@nowhere"}, exitUsage, "nowhere"},
		{"bad pattern", []string{"run", s.url(), "--tool", "build_report", "--arg", "month=1", "--log", s.log, "--log-work", "("}, exitUsage, "--log-work"},
		{"unknown group", []string{"run", s.url(), "--tool", "build_report", "--arg", "month=1", "--log", s.log, "--log-work", "(?P<idd>x)"}, exitUsage, "idd"},
		{"missing log", []string{"run", s.url(), "--tool", "build_report", "--arg", "month=1", "--log", s.log + "x", "--log-work", "x"}, exitUsage, "server.log"},
		{"bad threshold", []string{"run", s.url(), "--tool", "build_report", "--arg", "month=1", "--threshold", "mcp_ranon: count==0"}, exitUsage, "mcp_ran_on"},
		{"pattern that matches nothing", []string{"run", s.url(), "--tool", "build_report", "--arg", "month=1", "--log", s.log, "--log-work", "stepp (?P<id>x)"}, exitUnknown, "build_report"},
		{"directory of others", []string{"run", s.url(), "--tool", "build_report", "--arg", "month=1", "-o", filepath.Dir(s.log)}, exitUsage, "-o"},
		{"check of nothing", []string{"check", t.TempDir()}, exitUsage, "history"},
		{"script", []string{"run", "scenario.js"}, exitUsage, "script"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := tc.args
			if args[0] == "run" && !slices.Contains(args, "-o") {
				args = append(args, "-o", filepath.Join(t.TempDir(), "run"))
			}
			o := invoke(t, "", args...)
			if o.code != tc.code || !strings.Contains(o.stderr, tc.say) {
				t.Errorf("exit code %d, want %d; it says\n%s\nwant something about %q", o.code, tc.code, o.stderr, tc.say)
			}
		})
	}
}

// TestOpenModel starts calls at a pace that the limit of streams cannot hold:
// what could not start is counted, never hidden.
func TestOpenModel(t *testing.T) {
	s := startTarget(t)
	o := s.flood(t, append(s.withIDs(), "--rate", "100/s", "--ramp", "1s", "--duration", "4s", "--max-streams", "30", "--cut", plan, "--watch", "2s")...)
	o.want(t, exitPass)
	c := o.sum.Counts
	// A ramp of one second to 100/s and three seconds at it: 350 arrivals.
	if c.Calls == nil || c.DroppedArrivals == nil || *c.DroppedArrivals == 0 || *c.Calls+*c.DroppedArrivals < 340 || *c.Calls+*c.DroppedArrivals > 360 {
		t.Errorf("counts %+v", c)
	}
	if again := invoke(t, "", "check", o.dir, "--threshold", "mcp_dropped_arrivals: count==0"); again.code != exitFail {
		t.Errorf("a threshold on dropped arrivals: exit code %d, want %d", again.code, exitFail)
	}
}

// TestProfile runs one profile: a network that changes under the client.
func TestProfile(t *testing.T) {
	s := startTarget(t)
	o := s.flood(t, append(s.withIDs(), "--streams", "20", "--duration", "3s", "--watch", "3s", "--profile", "wifi-to-cell", "--arg", "idempotency_key={{.Marker}}")...)
	o.want(t, exitPass)
	if c := o.sum.Counts; c.Reissues == nil || *c.Reissues == 0 || c.Verdicts.Noticed+c.Verdicts.Unnoticed == 0 {
		t.Errorf("counts %+v", c)
	}
}
