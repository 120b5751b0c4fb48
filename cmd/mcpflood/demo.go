package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpflood/mcpflood/flood"
	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/results"
	"github.com/mcpflood/mcpflood/target"
)

// demoFile names the demo's own result in its directory.
const demoFile = "demo.json"

// The demo's tool works in short steps, so that a demo takes seconds.
const (
	demoSteps    = 10
	demoStepTime = 100 * time.Millisecond
	demoTailTime = 100 * time.Millisecond
	demoLoad     = 6 * time.Second
	demoWatch    = 3 * time.Second
	demoStreams  = 40
	demoPrice    = "step=0.002"
)

func newDemoCommand() *cobra.Command {
	var dir string
	var quiet bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "embedded servers, one good, one leaky: flood both, verdict and money side by side",
		Long: `demo starts two servers inside this process, floods both at the same time with
the same plan, and judges them from their logs. The good one stops when a client
hangs up; the leaky one works on and sends its e-mail. It ends with 0 if it told
the two apart.`,
		Example: "  mcpflood demo\n  mcpflood demo -o results/demo",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd, dir, newView(cmd.ErrOrStderr(), quiet))
		},
	}
	cmd.Flags().StringVarP(&dir, "output", "o", "", "directory for the two runs (default results/demo-<time>)")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "no progress")
	return cmd
}

// demoResult is demo.json.
type demoResult struct {
	Schema    string   `json:"schema"`
	ToldApart bool     `json:"told_apart"`
	Good      string   `json:"good"` // verdicts
	Leaky     string   `json:"leaky"`
	Why       []string `json:"why"` // what is missing, if they were not told apart
}

func runDemo(cmd *cobra.Command, dir string, v *view) error {
	if dir == "" {
		dir = filepath.Join("results", "demo-"+time.Now().Format("20060102-150405"))
	}
	if err := results.CheckDir(dir, demoFile); err != nil {
		return usage(err)
	}
	v.notice(fmt.Sprintf("two servers with a tool of %d steps of %s, %d streams each, half of them hung up at a random moment", demoSteps, demoStepTime, demoStreams))
	arms := []*demoArm{{name: "good"}, {name: "leaky", faults: []target.Fault{{Kind: target.RunOn}}}}
	var wg sync.WaitGroup
	for i, arm := range arms {
		hooks := flood.Hooks{Notice: func(s string) { v.notice(arm.name + ": " + s) }}
		if i == 0 {
			hooks.Progress = v.progress
		} else {
			hooks.Notice = nil
		}
		wg.Go(func() { arm.err = arm.run(cmd, filepath.Join(dir, arm.name), hooks) })
	}
	wg.Wait()
	v.clear()
	for _, arm := range arms {
		if arm.err != nil {
			return &exitError{codeOf(arm.err), fmt.Errorf("%s server: %w", arm.name, arm.err)}
		}
	}
	good, leaky := arms[0].out, arms[1].out
	if good.Interrupted || leaky.Interrupted {
		return &exitError{exitInterrupted, errors.New("interrupted; the two runs so far are in " + dir)}
	}
	res := demoResult{Schema: "mcpflood/demo/v1", Good: good.Summary.Verdict.String(), Leaky: leaky.Summary.Verdict.String(), Why: missing(good.Summary, leaky.Summary)}
	res.ToldApart = len(res.Why) == 0
	if err := results.WriteFile(filepath.Join(dir, demoFile), func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(res)
	}); err != nil {
		return usage(err)
	}
	fmt.Fprint(cmd.OutOrStdout(), sideBySide(good.Summary, leaky.Summary))
	fmt.Fprintf(cmd.OutOrStdout(), "\nThe evidence: mcpflood report %s\nYour server:  mcpflood run URL --tool NAME --log FILE --log-work RE   (see mcpflood run --help)\n", filepath.Join(dir, "leaky"))
	if !res.ToldApart {
		return &exitError{exitFail, errors.New("the demo did not tell the two servers apart: " + strings.Join(res.Why, "; "))}
	}
	return nil
}

// missing says what of the demo's claim does not hold.
func missing(good, leaky *results.Summary) (why []string) {
	need := func(ok bool, text string) {
		if !ok {
			why = append(why, text)
		}
	}
	need(good.Verdict == history.Pass, "the good server does not pass")
	need(good.Counts.Verdicts.RanOn == 0, "calls of the good server ran on")
	need(good.Effectiveness != nil && *good.Effectiveness >= 0.95, "the good server's effectiveness is below 0.95")
	need(leaky.Verdict == history.Fail, "the leaky server does not fail")
	need(leaky.Counts.EffectsAfterCut != nil && *leaky.Counts.EffectsAfterCut > 0, "no effect of the leaky server was seen after a cut")
	need(leaky.Cost.RunOn != nil && *leaky.Cost.RunOn > 0, "the leaky server's run-on cost is not above zero")
	return why
}

// demoArm is one of the two servers and its run.
type demoArm struct {
	name   string
	faults []target.Fault
	out    *flood.Outcome
	err    error
}

func (a *demoArm) run(cmd *cobra.Command, dir string, hooks flood.Hooks) (err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	logFile := dir + ".log"
	log, err := os.Create(logFile)
	if err != nil {
		return err
	}
	defer log.Close()
	server, err := target.New(target.Config{Steps: demoSteps, StepTime: demoStepTime, TailTime: demoTailTime, Faults: a.faults, Log: log})
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	defer func() { err = errors.Join(err, server.Close(), <-served) }()
	a.out, err = flood.Run(cmd.Context(), demoConfig("http://"+ln.Addr().String()+target.PathMCP, logFile, dir), hooks)
	return err
}

// The patterns of the reference server's log lines.
const (
	targetWork   = `build_report step (?P<step>\d+) of \d+ id=(?P<id>\S+) marker=(?P<marker>\S+) trace=(?P<trace>\S+) .*t=(?P<time>\S+)`
	targetStop   = `build_report cancelled at step \d+ \(stream closed\) id=(?P<id>\S+) .*t=(?P<time>\S+)`
	targetDone   = `build_report finished id=(?P<id>\S+) .*t=(?P<time>\S+)`
	targetEffect = `build_report effect: e-mail to the team id=(?P<id>\S+) .*t=(?P<time>\S+)`
)

func demoConfig(url, logFile, dir string) flood.Config {
	return flood.Config{
		URL: url, Tool: "build_report", Args: []string{"month=2026-09", "idempotency_key={{.Marker}}"},
		Streams: demoStreams, Duration: demoLoad, Cuts: []string{"fin@uniform(0s,900ms):50%"}, Seed: 1,
		Log: []string{logFile}, LogWork: []string{targetWork}, LogStop: []string{targetStop}, LogDone: []string{targetDone}, LogEffect: []string{targetEffect},
		Watch: demoWatch, Prices: []string{demoPrice}, Dir: dir,
	}
}
