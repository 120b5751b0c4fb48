package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpflood/mcpflood/history"
)

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestPrepare(t *testing.T) {
	for name, c := range map[string]struct {
		files   []string
		refused bool
		left    []string
	}{
		"missing":              {nil, false, nil},
		"a former run":         {[]string{ManifestFile, HistoryFile, SummaryFile, "notes.md"}, false, []string{"notes.md"}},
		"killed before it":     {[]string{HistoryFile}, false, nil},
		"somebody's files":     {[]string{"thesis.tex"}, true, []string{"thesis.tex"}},
		"only a summary.json":  {[]string{SummaryFile}, true, []string{SummaryFile}},
		"a directory so named": {[]string{ManifestFile + "/x"}, true, []string{ManifestFile}},
	} {
		dir := filepath.Join(t.TempDir(), "deep", "run")
		for _, f := range c.files {
			touch(t, filepath.Join(dir, f))
		}
		err := Prepare(dir)
		var notOurs *NotOursError
		if errors.As(err, &notOurs) != c.refused || (err != nil) != c.refused {
			t.Errorf("%s: Prepare = %v, want refused: %v", name, err, c.refused)
			continue
		}
		if got := list(t, dir); !slices.Equal(got, c.left) {
			t.Errorf("%s: left %q, want %q", name, got, c.left)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	touch(t, file)
	if err := Prepare(file); err == nil {
		t.Error("Prepare of a file = nil")
	}
	if err := CheckDir(filepath.Dir(file), "file"); err != nil {
		t.Errorf("CheckDir with a mark = %v", err)
	}
}

func TestDefaultDir(t *testing.T) {
	got := DefaultDir(time.Date(2026, 12, 1, 5, 6, 7, 0, time.UTC), "k3x9")
	if want := filepath.Join("results", "20261201-050607-k3x9"); got != want {
		t.Errorf("DefaultDir = %q, want %q", got, want)
	}
}

// A failed write leaves the old file and nothing beside it.
func TestWriteFileIsWholeOrNot(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	write := func(text string, fail error) error {
		return WriteFile(path, func(w io.Writer) error { io.WriteString(w, text); return fail })
	}
	if err := write("old", nil); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := write("new", broken); !errors.Is(err, broken) {
		t.Errorf("WriteFile = %v, want %v", err, broken)
	}
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Errorf("file holds %q, want the old text", b)
	}
	if got := list(t, dir); len(got) != 1 {
		t.Errorf("directory holds %q", got)
	}
}

func TestManifestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	m := Manifest{
		ID: "k3x9", Seed: 42, Nonce: history.NewNonce(), Started: time.Unix(1700000000, 5).UTC(),
		Command: "mcpflood run <http://x>", Config: []string{`url = "http://x"`}, Version: "0.1.0", Go: "go1.26",
		Host: Host{2, "linux"}, Targets: []string{"http://x"}, HTTP: "1.1", Protocol: "2026-07-28",
		Era: Era{[]string{"2026-07-28"}, "target 1"}, Budget: &history.Budget{StopWithin: time.Second, Events: 10},
		Thresholds: []string{"mcp_ran_on: count==0"}, Prices: Prices{"USD", map[string]float64{"step": 0.002}}, Strict: true,
	}
	if err := WriteManifest(dir, m); err != nil {
		t.Fatal(err)
	}
	got, err := ReadManifest(dir)
	m.Schema = ManifestSchema
	if d := cmp.Diff(m, got); err != nil || d != "" {
		t.Errorf("ReadManifest: %v (-want +got):\n%s", err, d)
	}
	for text, want := range map[string]string{"{": "unexpected end", `{"schema":"other/v1"}`: `schema "other/v1"`} {
		if err := os.WriteFile(filepath.Join(dir, ManifestFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadManifest(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ReadManifest of %q = %v, want %q", text, err, want)
		}
	}
}

// Every key of the schema is there, whatever the run was: what does not apply
// is null, and lists are lists.
func TestSummaryKeys(t *testing.T) {
	var full, empty bytes.Buffer
	if err := leaky().WriteJSON(&full); err != nil {
		t.Fatal(err)
	}
	var s Summary
	if err := s.WriteJSON(&empty); err != nil {
		t.Fatal(err)
	}
	keys := func(b []byte) map[string]any {
		var m map[string]any
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	a, b := keys(full.Bytes()), keys(empty.Bytes())
	for _, path := range [][]string{{}, {"run"}, {"counts", "verdicts"}, {"cost"}, {"clean"}, {"canary"}, {"driver"}} {
		x, y := a, b
		for _, p := range path {
			x, y = x[p].(map[string]any), y[p].(map[string]any)
		}
		for k := range x {
			if _, ok := y[k]; !ok {
				t.Errorf("%v has no key %q in an empty summary", path, k)
			}
		}
	}
	var again Summary
	if err := json.Unmarshal(full.Bytes(), &again); err != nil || !reflect.DeepEqual(&again, leaky()) {
		t.Errorf("a summary does not survive its JSON: %v\n%s", err, cmp.Diff(leaky(), &again))
	}
}
