package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpflood/mcpflood/chaos"
)

func newProfilesCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "profiles",
		Short:   "list the profiles: named mixtures of cuts, with their sources",
		Example: "  mcpflood profiles\n  mcpflood run URL --tool T --profile flaky-peer",
		Args:    cobra.NoArgs,
		Run:     func(cmd *cobra.Command, _ []string) { printProfiles(cmd.OutOrStdout()) },
	}
}

func printProfiles(w io.Writer) {
	for i, p := range chaos.Profiles() {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, p.Name)
		for _, line := range wrap(p.Models+". Source: "+p.Source+".", 92) {
			fmt.Fprintln(w, "    "+line)
		}
		var words []string
		for _, f := range p.Flags() {
			if strings.ContainsAny(f, "()") {
				f = "'" + f + "'"
			}
			words = append(words, f)
		}
		fmt.Fprintln(w, "    = "+strings.Join(words, " "))
	}
}
