package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpflood/mcpflood/results"
)

// width of a cell in the printed grid.
const width = 14

// Text is the grid for people: one table a form, and below it why cells are
// not there or not decided.
func (g *Grid) Text() string {
	var b strings.Builder
	for _, form := range forms {
		g.table(&b, form)
	}
	g.reasons(&b)
	return b.String()
}

func (g *Grid) table(b *strings.Builder, form string) {
	title := map[string]string{FormSSE: "answers with progress", FormJSON: "answers without progress"}[form]
	cells := map[Key]Cell{}
	exists := false
	why := ""
	for _, c := range g.Cells {
		if c.Form == form {
			cells[Key{c.Form, c.Phase, c.Style}] = c
			exists = exists || c.Attempts > 0
			why = c.Why
		}
	}
	if !exists {
		fmt.Fprintf(b, "%s: n/a, %s\n\n", title, why)
		return
	}
	fmt.Fprintf(b, "%s\n  %-9s", title, "")
	for _, s := range styles {
		fmt.Fprintf(b, "%-*s", width, s)
	}
	b.WriteString("\n")
	for _, p := range phases {
		fmt.Fprintf(b, "  %-9s", p)
		for _, s := range styles {
			fmt.Fprintf(b, "%-*s", width, cells[Key{form, p, s}].Text)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

func (g *Grid) reasons(b *strings.Builder) {
	where := map[string][]string{}
	for _, c := range g.Cells {
		if c.Why != "" {
			where[c.Text+": "+c.Why] = append(where[c.Text+": "+c.Why], fmt.Sprintf("%s@%s (%s)", c.Style, c.Phase, c.Form))
		}
	}
	for _, why := range slices.Sorted(maps.Keys(where)) {
		list := where[why]
		if len(list) > 4 {
			list = append(list[:4:4], fmt.Sprintf("%d more", len(list)-4))
		}
		fmt.Fprintf(b, "%s\n    %s\n", results.Visible(why), strings.Join(list, ", "))
	}
}
