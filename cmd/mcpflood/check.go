package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/mcpflood/mcpflood/flood"
	"github.com/mcpflood/mcpflood/results"
)

func newCheckCommand() *cobra.Command {
	var opts checkOptions
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "judge a saved run again, from its history",
		Long: `check reads the history of a run directory and judges it by the same code as the
run did: the verdicts are the same byte for byte. It also judges runs that were
killed before their end. Thresholds and prices can be given anew; nothing in the
directory is changed but summary.json, report.txt and times.hlog.`,
		Example: `  mcpflood check results/20261201-101500-k7x2mq
  mcpflood check DIR --threshold 'mcp_ran_on: count==0' --price step=0.01
  mcpflood check DIR --attempts attempts.jsonl      # one line an attempt, with its evidence`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return opts.run(cmd, args[0]) },
	}
	fs := cmd.Flags()
	fs.StringArrayVar(&opts.thresholds, "threshold", nil, "judge by these thresholds instead of the run's own")
	fs.StringArrayVar(&opts.prices, "price", nil, "UNIT=AMOUNT instead of the run's own prices")
	fs.BoolVar(&opts.strict, "strict", false, "notes and warnings fail the run too")
	fs.StringVar(&opts.json, "json", "", "write the summary as JSON to a file too, or to - for standard output instead of the report")
	fs.StringVar(&opts.attempts, "attempts", "", "write every judged attempt as a JSON line to a file, or to -")
	return cmd
}

type checkOptions struct {
	thresholds, prices []string
	strict             bool
	json, attempts     string
}

func (o *checkOptions) run(cmd *cobra.Command, dir string) (err error) {
	opts := results.Options{Thresholds: o.thresholds}
	if o.strict {
		opts.Strict = &o.strict
	}
	if len(o.prices) > 0 {
		m, err := results.ReadManifest(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return usage(err)
		}
		if err := flood.AddPrices(&m.Prices, o.prices); err != nil {
			return usage(err)
		}
		opts.Prices = &m.Prices
	}
	if o.attempts != "" {
		w := cmd.OutOrStdout()
		if o.attempts != "-" {
			f, err := os.Create(o.attempts)
			if err != nil {
				return usage(fmt.Errorf("--attempts: %w", err))
			}
			defer func() {
				if cerr := f.Close(); cerr != nil && err == nil {
					err = usage(cerr)
				}
			}()
			w = f
		}
		buf := bufio.NewWriter(w)
		defer func() {
			if ferr := buf.Flush(); ferr != nil && err == nil {
				err = usage(ferr)
			}
		}()
		opts.Attempts = buf
	}
	summary, err := results.Judge(dir, opts)
	if err != nil {
		return usage(err)
	}
	if o.attempts != "-" {
		if err := printSummary(cmd.OutOrStdout(), summary, o.json); err != nil {
			return usage(err)
		}
	}
	return verdictExit(summary.Verdict, false)
}

func newReportCommand() *cobra.Command {
	var jsonFile string
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "print the report of a judged run",
		Example: `  mcpflood report results/20261201-101500-k7x2mq
  mcpflood report DIR --json - | jq .effectiveness`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			summary, err := results.ReadSummary(args[0])
			if err != nil {
				return usage(fmt.Errorf("%w (a run that was killed has none yet: mcpflood check %s)", err, args[0]))
			}
			return usage(printSummary(cmd.OutOrStdout(), summary, jsonFile))
		},
	}
	cmd.Flags().StringVar(&jsonFile, "json", "", "write the summary as JSON to a file too, or to - for standard output instead of the report")
	return cmd
}
