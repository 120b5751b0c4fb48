package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/results"
	"github.com/mcpflood/mcpflood/target"
)

// These tests run the built binary as users do: the reference server and the
// flood are processes of their own.

var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "mcpflood-e2e")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "mcpflood")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building mcpflood: %w\n%s", err, out)
	}
	return path, nil
})

func mcpflood(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("end to end: not in -short")
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// server is a reference server in a process of its own.
type server struct {
	addr, log, truth string
	cmd              *exec.Cmd
}

func (s *server) url() string     { return "http://" + s.addr + target.PathMCP }
func (s *server) metrics() string { return "http://" + s.addr + target.PathMetrics }

func startTarget(t *testing.T, args ...string) *server {
	t.Helper()
	dir := t.TempDir()
	s := &server{log: filepath.Join(dir, "server.log"), truth: filepath.Join(dir, "truth.jsonl")}
	port := filepath.Join(dir, "port")
	s.cmd = exec.Command(mcpflood(t), append([]string{"target", "--addr", "127.0.0.1:0", "--port-file", port, "--quiet",
		"--step-time", "100ms", "--log", s.log, "--truth", s.truth}, args...)...)
	var stderr bytes.Buffer
	s.cmd.Stderr = &stderr
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	for limit := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if b, err := os.ReadFile(port); err == nil && len(b) > 0 {
			s.addr = strings.TrimSpace(string(b))
			return s
		}
		if time.Now().After(limit) {
			t.Fatalf("the target did not start: %s", stderr.String())
		}
	}
}

func (s *server) stop() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Signal(os.Interrupt)
		_ = s.cmd.Wait()
	}
}

// withIDs are the witness flags for the target's log, attributed by id.
func (s *server) withIDs() []string {
	return []string{"--log", s.log, "--log-work", targetWork, "--log-stop", targetStop, "--log-done", targetDone, "--log-effect", targetEffect}
}

// withoutIDs are the same patterns without a group that names an attempt.
func (s *server) withoutIDs() []string {
	return []string{"--log", s.log, "--log-work", `build_report step \d+ of \d+`, "--log-stop", `build_report cancelled at step`,
		"--log-done", `build_report finished`, "--log-effect", `build_report effect:`}
}

// outcome is a finished run of the binary.
type outcome struct {
	code           int
	stdout, stderr string
	dir            string
	sum            *results.Summary
	process        *os.ProcessState
}

// flood runs "mcpflood run" against s. The arguments come last, so they win.
func (s *server) flood(t *testing.T, args ...string) *outcome {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	all := append([]string{"run", s.url(), "--tool", "build_report", "--arg", "month=2026-09", "-o", dir, "--seed", "7", "--watch", "4s"}, args...)
	return invoke(t, dir, all...)
}

// runLimit bounds one invocation of the binary.
const runLimit = 3 * time.Minute

func invoke(t *testing.T, dir string, args ...string) *outcome {
	t.Helper()
	cmd := exec.Command(mcpflood(t), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(runLimit, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	if !timer.Stop() {
		t.Fatalf("mcpflood %s did not end within %s\n%s", strings.Join(args, " "), runLimit, stderr.String())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	o := &outcome{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String(), dir: dir, process: cmd.ProcessState}
	if dir != "" {
		o.sum, _ = results.ReadSummary(dir)
	}
	return o
}

func (o *outcome) want(t *testing.T, code int) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit code %d, want %d\n%s\n%s", o.code, code, o.stdout, tail(o.stderr))
	}
	if o.sum == nil && (code == exitPass || code == exitFail) {
		t.Fatalf("no summary\n%s", tail(o.stderr))
	}
}

func tail(s string) string {
	if len(s) > 4000 {
		return "…" + s[len(s)-4000:]
	}
	return s
}

// findings lists the ids of findings of a severity or above.
func (o *outcome) findings(least history.Severity) []string {
	var ids []string
	for _, f := range o.sum.Findings {
		if f.Severity >= least {
			ids = append(ids, f.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (o *outcome) has(id string) bool { return slices.Contains(o.findings(history.SeverityNote), id) }

// attempts judges the run again and returns every attempt by its JSON-RPC id.
func (o *outcome) attempts(t *testing.T) map[string]results.Attempt {
	t.Helper()
	file := filepath.Join(t.TempDir(), "attempts.jsonl")
	invoke(t, "", "check", o.dir, "--attempts", file)
	out := map[string]results.Attempt{}
	readLines(t, file, func(b []byte) {
		var a results.Attempt
		if err := json.Unmarshal(b, &a); err != nil {
			t.Fatal(err)
		}
		out[a.ID] = a
	})
	return out
}

// truths reads what really happened, by JSON-RPC id. The target must be
// stopped.
func (s *server) truths(t *testing.T) map[string]target.Truth {
	t.Helper()
	out := map[string]target.Truth{}
	readLines(t, s.truth, func(b []byte) {
		var x target.Truth
		if err := json.Unmarshal(b, &x); err != nil {
			t.Fatal(err)
		}
		out[x.ID] = x
	})
	return out
}

func readLines(t *testing.T, file string, each func([]byte)) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		each(lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}
