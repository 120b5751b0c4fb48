package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcpflood/mcpflood/flood"
)

// groupKey marks a flag with the heading it stands under in the help.
const groupKey = "group"

// bindConfig offers the settings of cfg as flags, under their headings: those of
// some groups, or all.
func bindConfig(cmd *cobra.Command, cfg *flood.Config, groups ...string) {
	fs := cmd.Flags()
	for _, f := range cfg.Fields() {
		if !offered(f.Group, groups) {
			continue
		}
		usage := f.Usage
		if f.Default != "" {
			usage += " (default " + f.Default + ")"
		}
		switch p := f.Value.Addr().Interface().(type) {
		case *string:
			fs.StringVarP(p, f.Name, f.Short, "", usage)
		case *[]string:
			fs.StringArrayVarP(p, f.Name, f.Short, nil, usage)
		case *bool:
			fs.BoolVarP(p, f.Name, f.Short, false, usage)
		case *int:
			fs.IntVarP(p, f.Name, f.Short, 0, usage)
		case *uint64:
			fs.Uint64VarP(p, f.Name, f.Short, 0, usage)
		case *time.Duration:
			fs.DurationVarP(p, f.Name, f.Short, 0, usage)
		}
		setGroup(fs, f.Name, f.Group)
	}
	groupedHelp(cmd)
}

func setGroup(fs *pflag.FlagSet, name, group string) {
	if err := fs.SetAnnotation(name, groupKey, []string{group}); err != nil {
		panic("mcpflood: invariant: the flag exists: " + err.Error())
	}
}

// groupedHelp prints a command's flags under their headings instead of in one
// long list.
func groupedHelp(cmd *cobra.Command) {
	cmd.SetUsageFunc(func(c *cobra.Command) error {
		w := c.OutOrStderr()
		fmt.Fprintf(w, "Usage:\n  %s\n", c.UseLine())
		if c.HasExample() {
			fmt.Fprintf(w, "\nExamples:\n%s\n", c.Example)
		}
		var order []string
		sets := map[string]*pflag.FlagSet{}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			group := "other"
			if a := f.Annotations[groupKey]; len(a) > 0 {
				group = a[0]
			}
			if sets[group] == nil {
				sets[group] = pflag.NewFlagSet(group, pflag.ContinueOnError)
				sets[group].SortFlags = false
				order = append(order, group)
			}
			sets[group].AddFlag(f)
		})
		for _, group := range order {
			fmt.Fprintf(w, "\n%s:\n%s", strings.ToUpper(group[:1])+group[1:], sets[group].FlagUsagesWrapped(100))
		}
		return nil
	})
	cmd.Flags().SortFlags = false
}
