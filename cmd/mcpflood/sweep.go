package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcpflood/mcpflood/flood"
	"github.com/mcpflood/mcpflood/internal/audit"
)

// sweepGroups are the headings of flags that a sweep takes; what it cuts and how
// fast is its own.
var sweepGroups = []string{"call", "witness", "judge", "price", "safety", "out"}

func newSweepCommand() *cobra.Command {
	var cfg flood.Config
	var jsonFile string
	var repeats int
	var quiet bool
	cmd := &cobra.Command{
		Use:   "sweep URL",
		Short: "the cancellation audit of one server: every style at every phase",
		Long: `sweep breaks a few calls in every style at every phase of a call, in waves, one a
phase: gentle first, cuts inside the request last. Before each wave the server
must answer its cheapest question, and an uncut call must begin as fast as
before; if not, the sweep stops and says so. It prints what came of each kind,
then the findings.

Cells: "stops 0s" stopped so long after the hang-up; "RAN ON 6s" worked on so
long; "late" stopped past --stop-within; "notices 5s" and "unnoticed" are for
clients that fall silent; "hangs up" and "goes on" for those that still listen;
"unseen" never reached the tool; "unchanged" after the result; "no harm" in the
tail, where only side effects count. Exit codes as for run.`,
		Example: `  mcpflood sweep http://127.0.0.1:3000/mcp --tool build_report --arg month=2026-09 \
      --log server.log --log-work 'step \d+ of \d+ id=(?P<id>\S+)' \
      --log-stop 'cancelled at step \d+ \(stream closed\) id=(?P<id>\S+)'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg.URL = args[0]
			view := newView(cmd.ErrOrStderr(), quiet)
			out, err := audit.Run(cmd.Context(), cfg, flood.Hooks{Stdin: cmd.InOrStdin(), Notice: view.notice, Progress: view.progress}, repeats)
			view.clear()
			if err != nil {
				return &exitError{codeOf(err), err}
			}
			if jsonFile != "-" {
				fmt.Fprintln(cmd.OutOrStdout(), out.Grid.Text())
			}
			if err := printSummary(cmd.OutOrStdout(), out.Summary, jsonFile); err != nil {
				return usage(err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "results in %s\n", out.Dir)
			return verdictExit(out.Verdict, out.Interrupted)
		},
	}
	bindConfig(cmd, &cfg, sweepGroups...)
	cmd.Flags().IntVar(&repeats, "repeats", 3, "calls a cell")
	cmd.Flags().StringVar(&jsonFile, "json", "", "write the summary as JSON to a file too, or to - for standard output instead of the report; the grid is in sweep.json")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "no progress")
	setGroup(cmd.Flags(), "repeats", "sweep")
	setGroup(cmd.Flags(), "json", "out")
	setGroup(cmd.Flags(), "quiet", "out")
	return cmd
}

func offered(group string, groups []string) bool {
	return group != "" && (len(groups) == 0 || slices.Contains(groups, group))
}
