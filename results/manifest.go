package results

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// ManifestSchema names the form of a manifest.
const ManifestSchema = "mcpflood/manifest/v1"

// Manifest is the recipe of a run. Whoever fills it in has masked all secrets.
type Manifest struct {
	Schema  string        `json:"schema"`
	ID      string        `json:"id"`
	Seed    uint64        `json:"seed"`
	Nonce   history.Nonce `json:"nonce"`
	Started time.Time     `json:"started"`
	Command string        `json:"command"` // repeats the run
	Config  []string      `json:"config"`  // every setting as text, in order

	Version  string   `json:"version"`
	Go       string   `json:"go"`
	Host     Host     `json:"host"`
	Targets  []string `json:"targets"`
	HTTP     string   `json:"http"`
	Protocol string   `json:"protocol"`
	// Era is what the server said of itself: the protocol revisions it speaks,
	// its name and version.
	Era Era `json:"era"`

	// Budget is what the clean calls fixed; null until they are over.
	Budget *history.Budget `json:"budget"`

	// How the run is judged unless check is told otherwise.
	Thresholds []string `json:"thresholds"`
	Prices     Prices   `json:"prices"`
	Strict     bool     `json:"strict"`
}

// Host is the machine that drove the run.
type Host struct {
	CPUs int    `json:"cpus"`
	OS   string `json:"os"`
}

// Era is the server's answer to discovery.
type Era struct {
	Versions []string `json:"versions"`
	Server   string   `json:"server"`
}

// Prices are what a unit of work costs, by unit: step, token, call, second.
type Prices struct {
	Currency string             `json:"currency"`
	PerUnit  map[string]float64 `json:"per_unit"`
}

// WriteManifest writes the manifest of a run directory, whole or not at all.
func WriteManifest(dir string, m Manifest) error {
	m.Schema = ManifestSchema
	return WriteFile(filepath.Join(dir, ManifestFile), func(w io.Writer) error { return writeJSON(w, m) })
}

// maxFile bounds the JSON files that are read.
const maxFile = 64 << 20

// ReadManifest reads the manifest of a run directory.
func ReadManifest(dir string) (Manifest, error) {
	var m Manifest
	if err := readJSON(filepath.Join(dir, ManifestFile), &m); err != nil {
		return Manifest{}, err
	}
	if m.Schema != ManifestSchema {
		return Manifest{}, fmt.Errorf("results: %s has schema %q: want %s", filepath.Join(dir, ManifestFile), m.Schema, ManifestSchema)
	}
	return m, nil
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func readJSON(path string, v any) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return fmt.Errorf("results: %w", err)
	case len(b) > maxFile:
		return fmt.Errorf("results: %s is larger than %d bytes", path, maxFile)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("results: %s: %v", path, err)
	}
	return nil
}
