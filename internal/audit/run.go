package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"github.com/mcpflood/mcpflood/flood"
	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/oracle"
	"github.com/mcpflood/mcpflood/results"
)

// GridFile is the grid in a run directory.
const GridFile = "sweep.json"

// Outcome is a finished sweep.
type Outcome struct {
	*flood.Outcome
	Grid *Grid
	// Verdict is of the run and of its cells together.
	Verdict history.Judgement
}

// Run sweeps the server that cfg names. Rates, cuts and re-issues of cfg do not
// count. Errors are those of [flood.Run].
func Run(ctx context.Context, cfg flood.Config, hooks flood.Hooks, repeats int) (*Outcome, error) {
	if repeats < 1 || repeats > MaxRepeats {
		return nil, fmt.Errorf("--repeats %d: want 1 to %d", repeats, MaxRepeats)
	}
	s := &Sweep{Repeats: repeats}
	cfg.Reissue = 0
	out, err := flood.RunDirected(ctx, cfg, hooks, s.Direct)
	if err != nil {
		return nil, err
	}
	grid, err := judge(out.Dir, s.skipped)
	if err != nil {
		return nil, err
	}
	err = results.WriteFile(filepath.Join(out.Dir, GridFile), func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(grid)
	})
	return &Outcome{Outcome: out, Grid: grid, Verdict: out.Summary.Verdict.Worse(grid.Judged)}, err
}

// judge makes the grid from the history of a run.
func judge(dir string, skipped map[Key]string) (*Grid, error) {
	cells := collector{}
	open := oracle.From(func() (*history.Reader, error) { return history.Open(results.HistoryPath(dir)) })
	if _, err := oracle.Judge(open, cells.add); err != nil {
		return nil, err
	}
	return cells.grid(skipped), nil
}
