// Command mcpflood floods MCP servers with calls, breaks their streams in the
// ways real networks do, and proves what the server did about it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mcpflood/mcpflood/flood"
	"github.com/mcpflood/mcpflood/results"
)

// version is set when a release is built; else the module's own version stands.
var version = ""

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program without its process: arguments in, exit code out.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := interruptible(stderr)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var coded *exitError
	switch {
	case err == nil:
		return exitPass
	case errors.As(err, &coded):
		if coded.err != nil {
			printError(stderr, coded.err)
		}
		return coded.code
	default: // cobra's own: unknown flags and commands
		printError(stderr, err)
		return exitUsage
	}
}

// printError prints an error for people. Servers and witnesses are quoted in it.
func printError(w io.Writer, err error) {
	for i, line := range strings.Split(err.Error(), "\n") {
		line = results.Visible(line)
		if i == 0 {
			line = "mcpflood: " + line
		} else {
			line = "          " + line
		}
		fmt.Fprintln(w, line)
	}
}

// interruptible ends the context on the first Ctrl-C or SIGTERM, so that the run
// settles and writes its results; a second one leaves at once.
func interruptible(stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	c := make(chan os.Signal, 2)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	go func() {
		for n := 0; ; n++ {
			if _, ok := <-c; !ok {
				return
			}
			if n > 0 {
				fmt.Fprintln(stderr, "mcpflood: left at once; the history so far can be judged with: mcpflood check DIR")
				os.Exit(exitInterrupted)
			}
			cancel()
		}
	}()
	return ctx, func() { signal.Stop(c); close(c); cancel() }
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "mcpflood",
		Short: "load and chaos testing of cancellation and cost waste in MCP servers",
		Long: `mcpflood floods an MCP server (revision 2026-07-28, Streamable HTTP) with tool
calls, breaks their response streams the way laptops, phones, proxies and stop
buttons do, and shows from the server's own log and metrics whether the work
really stopped, how fast, and what the rest cost.`,
		Example: `  mcpflood demo                                  see a good and a leaky server side by side
  mcpflood run http://127.0.0.1:3000/mcp --tool build_report --arg month=2026-09 \
      --log server.log --log-work 'step \d+ of \d+ id=(?P<id>\S+)' --price step=0.002`,
		Version:       versionText(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
	}
	root.SetVersionTemplate("mcpflood {{.Version}}\n")
	root.AddCommand(newDemoCommand(), newRunCommand(), newSweepCommand(), newTargetCommand(), newCheckCommand(), newReportCommand(), newProfilesCommand(), newVersionCommand())
	return root
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "print the version",
		Example: "  mcpflood version",
		Args:    cobra.NoArgs,
		Run:     func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "mcpflood", versionText()) },
	}
}

func versionText() string {
	if version != "" {
		return version
	}
	return flood.Version()
}
