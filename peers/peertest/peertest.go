// Package peertest starts the servers of peers/ for tests of other packages.
// Each start is a process of its own on a free loopback port, with its own
// log file; it ends with the test, and with the test's process however that
// ends.
//
// The Go peer is built with the go command. The TypeScript peer needs Node.js
// 20 and npm; its packages are installed once, where .ci/run has not done so.
// A test that misses a tool fails with the fix, or is skipped under -short.
package peertest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 5 * time.Second
	pollInterval = 10 * time.Millisecond
)

// Peer is a running server.
type Peer struct {
	URL        string // the MCP endpoint
	MetricsURL string // Prometheus text
	LogFile    string // what the server logs, appended line by line

	tb     testing.TB
	cmd    *exec.Cmd
	stdin  io.Closer // the peer ends when this does
	stderr bytes.Buffer
	exited chan struct{} // closed once the process is gone; guards waitErr and stderr
	once   sync.Once

	waitErr error
}

// StartGo builds and starts the server on the official Go SDK. Without flags
// it ignores hang-ups; with "--propagate" it stops at them. Other flags are
// those of peers/README.md.
func StartGo(tb testing.TB, flags ...string) *Peer {
	tb.Helper()
	goCmd := lookPath(tb, "go", "install Go and put it on PATH")
	binary := filepath.Join(tb.TempDir(), "peer")
	build := exec.Command(goCmd, "build", "-buildvcs=false", "-o", binary, ".")
	build.Dir = filepath.Join(peersDir(tb), "go")
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("cannot build the Go peer: %v\n%s\nhint: cd peers/go && go mod download", err, out)
	}
	return start(tb, exec.Command(binary, flags...))
}

// StartTypeScript starts the server on the official TypeScript SDK. Without
// flags it stops at a hang-up; with "--ignore-signal" it works on. Other flags
// are those of peers/README.md.
func StartTypeScript(tb testing.TB, flags ...string) *Peer {
	tb.Helper()
	node := lookPath(tb, "node", "install Node.js 20 or newer")
	dir := filepath.Join(peersDir(tb), "typescript")
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); errors.Is(err, fs.ErrNotExist) {
		install(tb, dir)
	}
	return start(tb, exec.Command(node, append([]string{filepath.Join(dir, "server.mjs")}, flags...)...))
}

// Stop ends the server and waits until it is gone. It is called by the test's
// cleanup in any case, and may be called more than once.
func (p *Peer) Stop() {
	p.once.Do(func() {
		_ = p.stdin.Close()
		select {
		case <-p.exited:
		case <-time.After(stopTimeout):
			_ = p.cmd.Process.Kill()
			<-p.exited
			p.tb.Errorf("the peer did not end within %v of the end of its standard input", stopTimeout)
			return
		}
		if p.waitErr != nil {
			p.tb.Errorf("the peer failed: %v\n%s", p.waitErr, p.stderr.Bytes())
		}
	})
}

// start runs cmd with the flags that every peer has, and waits until it
// listens.
func start(tb testing.TB, cmd *exec.Cmd) *Peer {
	tb.Helper()
	dir := tb.TempDir()
	portFile := filepath.Join(dir, "port")
	p := &Peer{LogFile: filepath.Join(dir, "peer.log"), tb: tb, cmd: cmd, exited: make(chan struct{})}
	cmd.Args = append(cmd.Args, "--addr", "127.0.0.1:0", "--port-file", portFile, "--log", p.LogFile, "--until-eof")
	cmd.Stderr = &p.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	p.stdin = stdin
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		p.waitErr = cmd.Wait()
		close(p.exited)
	}()
	tb.Cleanup(p.Stop)

	addr := p.awaitPort(portFile)
	p.URL = fmt.Sprintf("http://%s/mcp", addr)
	p.MetricsURL = fmt.Sprintf("http://%s/metrics", addr)
	return p
}

func (p *Peer) awaitPort(portFile string) string {
	p.tb.Helper()
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); {
		if addr, err := os.ReadFile(portFile); err == nil {
			return string(addr)
		}
		select {
		case <-p.exited:
			p.tb.Fatalf("the peer ended before it listened: %v\n%s", p.waitErr, p.stderr.Bytes())
		case <-time.After(pollInterval):
		}
	}
	p.tb.Fatalf("the peer did not listen within %v", startTimeout)
	return ""
}

// install fetches the packages of the lock file. Test processes that install
// at the same time do not see half an installation: it is made aside and
// moved into place, and the first one stays.
func install(tb testing.TB, dir string) {
	tb.Helper()
	npm := lookPath(tb, "npm", "install npm, or run npm ci in peers/typescript elsewhere")
	aside, err := os.MkdirTemp(dir, ".install-")
	if err != nil {
		tb.Fatal(err)
	}
	defer os.RemoveAll(aside)
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(aside, name), text, 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	ci := exec.Command(npm, "ci", "--no-audit", "--no-fund")
	ci.Dir = aside
	if out, err := ci.CombinedOutput(); err != nil {
		tb.Fatalf("npm ci for the TypeScript peer: %v\n%s\nhint: cd peers/typescript && npm ci", err, out)
	}
	modules := filepath.Join(dir, "node_modules")
	if err := os.Rename(filepath.Join(aside, "node_modules"), modules); err != nil {
		if _, gone := os.Stat(modules); gone != nil {
			tb.Fatal(err)
		}
	}
}

// lookPath finds a tool, or ends the test with the fix: skipped under -short,
// failed otherwise.
func lookPath(tb testing.TB, name, fix string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if testing.Short() {
		tb.Skipf("%s is missing", name)
	}
	tb.Fatalf("%s is missing: %s, or run the tests with -short", name, fix)
	return ""
}

// peersDir finds peers/ from the directory of the package under test.
func peersDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		peers := filepath.Join(dir, "peers")
		if _, err := os.Stat(filepath.Join(peers, "go", "go.mod")); err == nil {
			return peers
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			tb.Fatal("no peers/ above the working directory: run the tests inside the repository")
		}
		dir = parent
	}
}
