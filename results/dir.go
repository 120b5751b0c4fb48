package results

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The files of a run directory.
const (
	ManifestFile = "manifest.json"
	HistoryFile  = "history.jsonl.zst"
	SummaryFile  = "summary.json"
	ReportFile   = "report.txt"
	TimesFile    = "times.hlog"
)

var runFiles = []string{ManifestFile, HistoryFile, SummaryFile, ReportFile, TimesFile}

// DefaultDir is where a run goes that was given no directory.
func DefaultDir(started time.Time, id string) string {
	return filepath.Join("results", started.Format("20060102-150405")+"-"+id)
}

// HistoryPath is the history file of a run directory.
func HistoryPath(dir string) string { return filepath.Join(dir, HistoryFile) }

// NotOursError refuses a directory that holds something else.
type NotOursError struct{ Dir string }

func (e *NotOursError) Error() string {
	return fmt.Sprintf("%s is not empty and no run directory: choose another with -o", e.Dir)
}

// CheckDir returns nil if dir can be written to without harm: it does not
// exist, is empty, or holds one of the files that mark it as ours. Otherwise
// the error is a [NotOursError].
func CheckDir(dir string, marks ...string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("results: %w", err)
	case len(entries) == 0:
		return nil
	}
	for _, e := range entries {
		if e.Type().IsRegular() && slices.Contains(marks, e.Name()) {
			return nil
		}
	}
	return &NotOursError{dir}
}

// IsRunDir reports whether dir holds a run.
func IsRunDir(dir string) bool {
	info, err := os.Stat(HistoryPath(dir))
	return err == nil && info.Mode().IsRegular()
}

// Prepare makes dir ready for a new run: it is created, and the files of a
// former run in it are removed. A non-empty directory that is no run directory
// is refused.
func Prepare(dir string) error {
	if err := CheckDir(dir, ManifestFile, HistoryFile); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	for _, name := range runFiles {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("results: %w", err)
		}
	}
	return nil
}

// WriteFile writes a file aside and renames it, so that at any moment there is
// the old one or the new one, whole.
func WriteFile(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	err = write(f)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("results: writing %s: %w", path, err)
	}
	return nil
}
