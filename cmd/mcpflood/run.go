package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mcpflood/mcpflood/flood"
	"github.com/mcpflood/mcpflood/results"
)

func newRunCommand() *cobra.Command {
	var cfg flood.Config
	var jsonFile string
	var quiet bool
	cmd := &cobra.Command{
		Use:   "run URL",
		Short: "flood a server with calls, cut their streams, judge what it did",
		Long: `run makes uncut clean calls first, to learn how the tool behaves; then the load,
in which a share of the streams is cut by plan; then it watches what the
witnesses say the server still did, and judges.

Without a witness nothing can be proved: give the server's log, its metrics or
both. The verdict goes to standard output, prose to standard error, everything
into the run directory. Exit codes: 0 pass, 99 fail, 3 not enough evidence,
2 usage, 4 target unreachable, 130 interrupted.`,
		Example: `  # the reference server, in another terminal: mcpflood target > server.log
  mcpflood run http://127.0.0.1:3000/mcp --tool build_report --arg month=2026-09 \
      --log server.log --log-work 'step \d+ of \d+ id=(?P<id>\S+)' \
      --log-stop 'cancelled at step \d+ \(stream closed\) id=(?P<id>\S+)' --price step=0.002

  # thousands of streams, three ways to leave, two retries each
  mcpflood run http://127.0.0.1:3000/mcp --tool build_report --arg month=2026-09 \
      --rate 200/s --duration 2m --cut fin@uniform(0s,8s):20% --cut reset@mid:10% --cut vanish@part(0.2,0.8):5% \
      --reissue 2 --metrics http://127.0.0.1:3000/metrics --metric inflight=target_in_flight`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.HasSuffix(args[0], ".js") || strings.HasSuffix(args[0], ".ts") {
				return usage(fmt.Errorf("%s: scenario scripts are not in this version: give the URL of a server", args[0]))
			}
			cfg.URL = args[0]
			view := newView(cmd.ErrOrStderr(), quiet)
			out, err := flood.Run(cmd.Context(), cfg, flood.Hooks{Stdin: cmd.InOrStdin(), Notice: view.notice, Progress: view.progress})
			view.clear()
			if err != nil {
				return &exitError{codeOf(err), err}
			}
			return deliver(cmd, out, jsonFile)
		},
	}
	bindConfig(cmd, &cfg)
	cmd.Flags().StringVar(&jsonFile, "json", "", "write the summary as JSON to a file too, or to - for standard output instead of the report")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "no progress")
	setGroup(cmd.Flags(), "json", "out")
	setGroup(cmd.Flags(), "quiet", "out")
	return cmd
}

// deliver prints a finished run's report and turns its verdict into the exit
// code.
func deliver(cmd *cobra.Command, out *flood.Outcome, jsonFile string) error {
	if err := printSummary(cmd.OutOrStdout(), out.Summary, jsonFile); err != nil {
		return usage(err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "results in %s\n", out.Dir)
	return verdictExit(out.Summary.Verdict, out.Interrupted)
}

func printSummary(w io.Writer, s *results.Summary, jsonFile string) error {
	if jsonFile == "-" {
		return s.WriteJSON(w)
	}
	if jsonFile != "" {
		if err := results.WriteFile(jsonFile, s.WriteJSON); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, s.Text())
	return err
}

// view shows a run's progress: one line that is rewritten on a terminal, one
// line every few seconds elsewhere.
type view struct {
	w     io.Writer
	tty   bool
	quiet bool
	last  time.Time
	stage string
	drawn bool
}

// plainEvery is the pace of progress lines where there is no terminal.
const plainEvery = 5 * time.Second

func newView(w io.Writer, quiet bool) *view {
	f, ok := w.(*os.File)
	return &view{w: w, quiet: quiet, tty: ok && term.IsTerminal(int(f.Fd()))}
}

func (v *view) notice(line string) {
	v.clear()
	fmt.Fprintln(v.w, results.Visible(line))
}

func (v *view) progress(s flood.Snapshot) {
	if v.quiet || !v.tty && time.Since(v.last) < plainEvery && s.Stage == v.stage {
		return
	}
	v.last, v.stage = time.Now(), s.Stage
	line := progressLine(s)
	if v.tty {
		fmt.Fprintf(v.w, "\r\x1b[K%s", line)
		v.drawn = true
		return
	}
	fmt.Fprintln(v.w, line)
}

// clear takes the progress line off the terminal.
func (v *view) clear() {
	if v.drawn {
		fmt.Fprint(v.w, "\r\x1b[K")
		v.drawn = false
	}
}

func progressLine(s flood.Snapshot) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", s.Stage, s.InStage.Round(time.Second))
	if s.Stage == "load" && s.Duration > 0 {
		fmt.Fprintf(&b, " of %s", s.Duration)
	}
	if s.Planned > 0 {
		fmt.Fprintf(&b, " · %d of %d calls", s.Calls, s.Planned)
	} else {
		fmt.Fprintf(&b, " · %d calls", s.Calls)
	}
	fmt.Fprintf(&b, " · %d open · %d delivered · %d cut", s.Open, s.Delivered, s.Cuts)
	for _, part := range []struct {
		n    int64
		text string
	}{{s.Held, "held silent"}, {s.Reissues, "re-issued"}, {s.Failed, "not delivered"}, {s.Dropped, "arrivals dropped"}} {
		if part.n > 0 {
			fmt.Fprintf(&b, " · %d %s", part.n, part.text)
		}
	}
	if s.Work+s.Stops+s.Effects > 0 {
		fmt.Fprintf(&b, " · witnessed %d work, %d stops, %d effects", s.Work, s.Stops, s.Effects)
	}
	if s.Trouble != "" {
		fmt.Fprintf(&b, " · %s", results.Visible(s.Trouble))
	}
	return b.String()
}
