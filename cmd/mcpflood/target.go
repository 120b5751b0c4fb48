package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpflood/mcpflood/target"
)

// targetOptions are the flags of the target command.
type targetOptions struct {
	cfg      target.Config
	addr     string
	portFile string
	log      string
	truth    string
	answer   string
	faults   []string
	quiet    bool
}

func newTargetCommand() *cobra.Command {
	var o targetOptions
	cmd := &cobra.Command{
		Use:   "target",
		Short: "the reference server, and its faults",
		Long: `target serves MCP 2026-07-28 at http://ADDR/mcp and its counters at
http://ADDR/metrics until Ctrl-C. Its tool build_report(month, idempotency_key?)
works in steps, reports progress where the request carries a progress token,
e-mails the team once (a pretence: a line in the log) and returns a result. It
stops at once when its client hangs up, and says so in its log, which goes to
standard output.

Faults make it misbehave. They combine; a share limits one to a part of the
requests, drawn from --seed and the id of the request:

` + faultHelp(),
		Example: `  # a healthy server; its log to a file, so that a run can watch it
  mcpflood target --log target.log

  # one that works on after every hang-up, with steps of 100 ms
  mcpflood target --fault run-on --step-time 100ms

  # one in a hundred cancelled calls keeps its slot, and the log is block-buffered
  mcpflood target --fault slot-leak=0.01 --slots 2 --log-buffer 4096

  # on a free port, which a script reads from a file
  mcpflood target --addr 127.0.0.1:0 --port-file addr.txt --quiet

  # ask it for a report by hand, and hang up with Ctrl-C
  curl -sS -N localhost:3000/mcp -H 'Content-Type: application/json' \
    -H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: 2026-07-28' \
    -H 'Authorization: Bearer alice' -H 'Mcp-Method: tools/call' -H 'Mcp-Name: build_report' \
    -d '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"build_report","arguments":{"month":"2026-09"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":"p7"}}}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.bind(cmd)
	return cmd
}

// faultHelp lists the faults, wrapped for a terminal.
func faultHelp() string {
	var b strings.Builder
	for _, k := range target.FaultKinds() {
		fmt.Fprintf(&b, "  %s\n", k)
		for _, line := range wrap(k.Does()+". Seen as: "+k.Seen()+".", 74) {
			fmt.Fprintf(&b, "      %s\n", line)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// wrap breaks text into lines of at most width bytes where its words allow.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

func (o *targetOptions) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.addr, "addr", target.DefaultAddr, "address to listen on; port 0 takes a free one")
	f.StringVar(&o.portFile, "port-file", "", "write host:port to this `FILE` once the target listens")
	f.IntVar(&o.cfg.Steps, "steps", target.DefaultSteps, "steps of a call")
	f.DurationVar(&o.cfg.StepTime, "step-time", target.DefaultStepTime, "time a step takes")
	f.DurationVar(&o.cfg.TailTime, "tail-time", target.DefaultTailTime, "time from the e-mail to the result")
	f.StringVar(&o.answer, "answer", "", "`FORM` of answers: json, sse or mixed (default: sse where the request carries a progress token, else json)")
	f.BoolVar(&o.cfg.NoProgress, "no-progress", false, "send no progress, even where it is asked for")
	f.IntVar(&o.cfg.Fillers, "fillers", 0, "tools that do nothing, listed after build_report")
	f.IntVar(&o.cfg.PageSize, "page-size", 0, "tools on a page of tools/list (default: all on one)")
	f.StringArrayVar(&o.faults, "fault", nil, "switch a fault on: `NAME[=SHARE]`, share from 0 to 1; repeatable, see above")
	f.Uint64Var(&o.cfg.Seed, "seed", 1, "draws which requests have a fault, and mixed answers")
	f.DurationVar(&o.cfg.StopDelay, "stop-delay", 0, "fault slow-stop: time it works on (default: five steps)")
	f.IntVar(&o.cfg.Slots, "slots", target.DefaultSlots, "fault slot-leak: slots that cancelled calls can keep")
	f.DurationVar(&o.cfg.SlotWait, "slot-wait", target.DefaultSlotWait, "fault slot-leak: time a call waits for a slot")
	f.StringVar(&o.log, "log", "-", "append the log to this `FILE`; - is standard output, none switches it off")
	f.IntVar(&o.cfg.LogBuffer, "log-buffer", 0, "hold the log back in blocks of this many `BYTES`, as standard output to a file does")
	f.StringVar(&o.truth, "truth", "", "append what really happened to each call to this `FILE`, a JSON object a line")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "nothing on standard error but errors")
}

// run serves until ctx ends.
func (o *targetOptions) run(ctx context.Context, stdout, stderr io.Writer) error {
	closeFiles, err := o.complete(stdout)
	if err != nil {
		return usage(err)
	}
	defer closeFiles()
	ln, err := net.Listen("tcp", o.addr)
	if err != nil {
		return usage(fmt.Errorf("%w\nhint: --addr 127.0.0.1:0 takes a free port", err))
	}
	server, err := target.New(o.cfg)
	if err != nil {
		ln.Close()
		return usage(err)
	}
	if err := o.announce(ln.Addr().String(), stderr); err != nil {
		ln.Close()
		return usage(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	select {
	case <-ctx.Done():
		return usage(server.Close())
	case err := <-served:
		return usage(errors.Join(err, server.Close()))
	}
}

// complete turns flags into settings, checks them and opens the files; the
// caller ends with closeFiles.
func (o *targetOptions) complete(stdout io.Writer) (closeFiles func(), err error) {
	o.cfg.Answer = target.Answer(o.answer)
	o.cfg.Version = versionText()
	if o.cfg.TailTime == 0 {
		o.cfg.TailTime = -1 // asked for: none
	}
	var errs []error
	for flag, isZero := range map[string]bool{
		"steps": o.cfg.Steps == 0, "step-time": o.cfg.StepTime == 0, "slots": o.cfg.Slots == 0, "slot-wait": o.cfg.SlotWait == 0,
	} {
		if isZero { // the zero Config means the default here
			errs = append(errs, fmt.Errorf("bad --%s 0: want more", flag))
		}
	}
	for _, text := range o.faults {
		f, err := target.ParseFault(text)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		o.cfg.Faults = append(o.cfg.Faults, f)
	}
	if err := errors.Join(append(errs, o.cfg.Validate())...); err != nil {
		return nil, err
	}
	return o.openFiles(stdout)
}

// openFiles sets where log and truth go.
func (o *targetOptions) openFiles(stdout io.Writer) (closeFiles func(), err error) {
	var open []*os.File
	closeFiles = func() {
		for _, f := range open {
			f.Close()
		}
	}
	file := func(name string) (io.Writer, error) {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err == nil {
			open = append(open, f)
		}
		return f, err
	}
	switch o.log {
	case "-":
		o.cfg.Log = stdout
	case "", "none":
	default:
		if o.cfg.Log, err = file(o.log); err != nil {
			return nil, err
		}
	}
	if o.truth != "" {
		if o.cfg.Truth, err = file(o.truth); err != nil {
			closeFiles()
			return nil, err
		}
	}
	return closeFiles, nil
}

// announce says where the target listens.
func (o *targetOptions) announce(addr string, stderr io.Writer) error {
	if !o.quiet {
		kind := "healthy"
		if len(o.faults) > 0 {
			kind = "faults: " + strings.Join(o.faults, ", ") + "; seed " + fmt.Sprint(o.cfg.Seed)
		}
		fmt.Fprintf(stderr, "target at http://%s%s (%s), counters at http://%s%s; Ctrl-C ends it\n", addr, target.PathMCP, kind, addr, target.PathMetrics)
	}
	if o.portFile == "" {
		return nil
	}
	// Written aside and renamed, so that nobody reads half an address.
	aside := filepath.Join(filepath.Dir(o.portFile), "."+filepath.Base(o.portFile)+".new")
	if err := os.WriteFile(aside, []byte(addr+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(aside, o.portFile)
}
