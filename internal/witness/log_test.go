package witness

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpflood/mcpflood/history"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is an Appender that keeps what it gets.
type memory struct {
	mu   sync.Mutex
	recs []history.Record
}

func (m *memory) Append(r history.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recs = append(m.recs, r)
}

func (m *memory) evidence() []history.Evidence {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []history.Evidence
	for _, r := range m.recs {
		if r.Evidence != nil {
			out = append(out, *r.Evidence)
		}
	}
	return out
}

func (m *memory) gaps() []history.Gap {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []history.Gap
	for _, r := range m.recs {
		if r.Gap != nil {
			out = append(out, *r.Gap)
		}
	}
	return out
}

// until waits for cond, for longer than any machine should take.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if cond() {
			return
		}
	}
	t.Fatalf("timed out waiting for %s", what)
}

// numbered looks for "n=1", "n=2", … in step.
func numbered(spec string, stdin io.Reader) LogConfig {
	return LogConfig{Source: 3, Spec: spec, Work: []string{`n=(?P<step>\d+)`}, Clock: history.NewClock(), Nonce: ours, Stdin: stdin}
}

func startLog(t *testing.T, cfg LogConfig) (*Log, *memory) {
	t.Helper()
	l, err := NewLog(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := &memory{}
	if err := l.Start(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Stop(context.Background()) })
	return l, m
}

// wantSteps holds the evidence to be the steps from..to, each once, in order.
func wantSteps(t *testing.T, m *memory, from, to int) {
	t.Helper()
	have := m.evidence()
	for i, e := range have {
		if e.Step != from+i || e.Line != int64(i)+have[0].Line || e.Source != 3 {
			t.Fatalf("record %d is step %d at line %d of source %d; want step %d", i, e.Step, e.Line, e.Source, from+i)
		}
	}
	if len(have) != to-from+1 {
		t.Fatalf("%d records, want %d", len(have), to-from+1)
	}
}

// logFile appends numbered lines to a file.
type logFile struct {
	t    *testing.T
	path string
	f    *os.File
	n    int
}

func newLogFile(t *testing.T) *logFile {
	l := &logFile{t: t, path: filepath.Join(t.TempDir(), "server.log")}
	l.open()
	t.Cleanup(func() { l.f.Close() })
	return l
}

func (l *logFile) open() {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		l.t.Fatal(err)
	}
	l.f = f
}

func (l *logFile) text(s string) {
	if _, err := l.f.WriteString(s); err != nil {
		l.t.Fatal(err)
	}
}

func (l *logFile) lines(count int) {
	for range count {
		l.n++
		l.text(fmt.Sprintf("step n=%d done\n", l.n))
	}
}

func TestFileFromItsEnd(t *testing.T) {
	file := newLogFile(t)
	file.text("old n=99\nbegun before n=98")
	l, m := startLog(t, numbered(file.path, nil))
	file.text(" n=97\n")
	file.lines(3)
	file.text("half a line n=50")
	until(t, "three steps", func() bool { return len(m.evidence()) == 3 })
	l.Stop(t.Context())
	wantSteps(t, m, 1, 3)
	if g := m.gaps(); len(g) != 0 {
		t.Errorf("gaps %+v, want none", g)
	}
	if s := l.Stats(); s.Read != 3 || !s.Seen(history.Work) || s.Kinds[history.Work].Unattributed != 3 || s.Last == 0 {
		t.Errorf("stats %+v", s)
	}
	l.Stop(t.Context())
}

// Lines written up to the rename, and after it by a writer that was not told
// yet, are all read; the stop reads what is there.
func TestFileRotated(t *testing.T) {
	file := newLogFile(t)
	l, m := startLog(t, numbered(file.path, nil))
	for i := range 6 {
		file.lines(50)
		if err := os.Rename(file.path, fmt.Sprintf("%s.%d", file.path, i)); err != nil {
			t.Fatal(err)
		}
		file.lines(50)
		file.f.Close()
		file.open()
		file.lines(50)
		until(t, "the lines of the new file", func() bool { return len(m.evidence()) >= file.n-50 })
	}
	file.lines(1000)
	l.Stop(t.Context())
	wantSteps(t, m, 1, file.n)
	if g := m.gaps(); len(g) != 0 {
		t.Errorf("gaps %+v, want none", g)
	}
}

func TestFileTruncated(t *testing.T) {
	file := newLogFile(t)
	l, m := startLog(t, numbered(file.path, nil))
	file.lines(20)
	until(t, "the first lines", func() bool { return len(m.evidence()) == 20 })
	if err := file.f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	until(t, "the truncation to be seen", func() bool { file.lines(1); return len(m.gaps()) > 0 })
	l.Stop(t.Context())
	wantSteps(t, m, 1, file.n)
	if g := m.gaps(); len(g) != 1 || !strings.Contains(g[0].Reason, "truncated") || g[0].To == 0 || g[0].From > g[0].To {
		t.Errorf("gaps %+v, want one of the truncation", g)
	}
}

// look runs a follower by hand: nothing is left to timing.
func handFollower(t *testing.T, file *logFile) (*follower, *memory) {
	l, err := NewLog(numbered(file.path, nil))
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{}
	l.out.start(m)
	f := l.source.(*follower)
	if err := f.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, t := range f.files {
			t.f.Close()
		}
	})
	return f, m
}

// A file that was truncated and has grown past where we were is told by its
// bytes, not by its size.
func TestFileTruncatedAndRegrown(t *testing.T) {
	file := newLogFile(t)
	f, m := handFollower(t, file)
	file.lines(5)
	f.look()
	if err := file.f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	file.lines(50)
	f.look()
	wantSteps(t, m, 1, 55)
	if len(m.gaps()) != 1 {
		t.Errorf("gaps %+v, want one", m.gaps())
	}
}

// A writer that keeps its offset over a truncation leaves a hole.
func TestFileTruncatedUnderAnOffset(t *testing.T) {
	file := newLogFile(t)
	file.f.Close()
	var err error
	if file.f, err = os.OpenFile(file.path, os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	f, m := handFollower(t, file)
	file.lines(5)
	f.look()
	if err := file.f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	file.lines(5)
	f.look()
	wantSteps(t, m, 1, 10)
}

func TestFileVanished(t *testing.T) {
	file := newLogFile(t)
	f, m := handFollower(t, file)
	file.lines(1)
	f.look()
	if err := os.Rename(file.path, file.path+".away"); err != nil {
		t.Fatal(err)
	}
	file.lines(1)
	f.look()
	f.blind(f.clear+vanishGrace/2, "away")
	f.sighted(f.clear + vanishGrace/2)
	if g := m.gaps(); len(g) != 0 {
		t.Fatalf("gaps within the grace: %+v", g)
	}
	f.look()
	from := f.blindFrom
	f.blind(from+vanishGrace+1, "away")
	file.open()
	file.lines(1)
	f.look()
	wantSteps(t, m, 1, 3)
	if g := m.gaps(); len(g) != 1 || g[0].From != from || g[0].To == 0 || !strings.Contains(g[0].Reason, "away") {
		t.Errorf("gaps %+v, want one from %v on", g, from)
	}
}

func TestFileRotatedTooFast(t *testing.T) {
	file := newLogFile(t)
	f, m := handFollower(t, file)
	for i := range maxRotated + 2 {
		file.lines(1)
		if i > 0 {
			f.findRotated(0) // sees the new file, reads nothing
		}
		if err := os.Rename(file.path, fmt.Sprintf("%s.%d", file.path, i)); err != nil {
			t.Fatal(err)
		}
		file.f.Close()
		file.open()
	}
	f.look()
	if g := m.gaps(); len(g) == 0 || !strings.Contains(g[0].Reason, "faster") {
		t.Errorf("gaps %+v, want one: rotated faster than read", g)
	}
	if n := len(f.files); n > maxRotated+1 {
		t.Errorf("%d files held, want at most %d", n, maxRotated+1)
	}
}

func TestFileChecks(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"server.log", "serve.txt", "zzz"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]string{
		filepath.Join(dir, "sever.log"): `no such file; nearest: "server.log"`,
		filepath.Join(dir, "no", "x"):   "nor its directory",
		dir:                             "directory",
		fifo:                            "exec:cat",
		"-":                             "no standard input",
		"exec: ":                        "has no command",
		"exec:echo 'open":               "exit status",
	} {
		l, err := NewLog(numbered(spec, nil))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Check(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("check of %s = %v, want %q", spec, err, want)
		}
		l.Stop(t.Context())
	}
}

func TestLongLines(t *testing.T) {
	file := newLogFile(t)
	l, m := startLog(t, numbered(file.path, nil))
	file.lines(1)
	for range 5 {
		file.n++
		file.text(fmt.Sprintf("n=%d ", file.n) + strings.Repeat("x", 3*MaxLine) + "\n")
	}
	file.lines(1)
	until(t, "all lines", func() bool { return len(m.evidence()) == 7 })
	l.Stop(t.Context())
	wantSteps(t, m, 1, 7)
	for _, e := range m.evidence() {
		if len(e.Text) > history.MaxText {
			t.Errorf("a text of %d bytes is kept", len(e.Text))
		}
	}
	g := m.gaps()
	if len(g) == 0 || !strings.Contains(g[0].Reason, "lines cut") || g[0].To < g[0].From {
		t.Errorf("gaps %+v, want lines cut", g)
	}
	if s := l.Stats(); s.Failed != 5 {
		t.Errorf("%d lines cut, want 5", s.Failed)
	}
}

func TestUnmatchedAndAbsent(t *testing.T) {
	file := newLogFile(t)
	cfg := numbered(file.path, nil)
	cfg.Stop = []string{"cancelled"}
	cfg.Secrets = []string{"hunter22"}
	l, m := startLog(t, cfg)
	if a := l.Absent(); len(a) != 2 {
		t.Errorf("absent before any line: %v, want both patterns", a)
	}
	file.text("one\ntwo\nthree hunter22\n\x1b[31mfour\nn=1 hunter22\n")
	until(t, "the step", func() bool { return len(m.evidence()) == 1 })
	l.Stop(t.Context())
	want := `two|three ***|\x1b[31mfour`
	if got := strings.Join(l.Unmatched(), "|"); got != want {
		t.Errorf("unmatched %q, want %q", got, want)
	}
	if a := l.Absent(); len(a) != 1 || a[0].Kind != history.Stop || a[0].String() != `--log-stop "cancelled"` {
		t.Errorf("absent %v, want the stop pattern", a)
	}
	if e := m.evidence()[0]; e.Text != "n=1 ***" {
		t.Errorf("text %q keeps a secret", e.Text)
	}
}

// A log whose ids are not ours is declared as one without ids once that is
// seen.
func TestLogDeclare(t *testing.T) {
	file := newLogFile(t)
	cfg := numbered(file.path, nil)
	cfg.Work = []string{`n=\d+ id=(?P<id>\S+) m=(?P<marker>\S+) t=(?P<time>\S+)`}
	cfg.Stop = []string{"cancelled"}
	l, m := startLog(t, cfg)
	if w := l.Declare(); !w.ByAttempt || !w.ByCall || !w.Timed || w.Grade != history.GradeC || len(w.Shows) != 2 || w.Poll != followEvery {
		t.Errorf("declared %+v before any line", w)
	}
	file.text("n=1 id=7 m=x t=1\n")
	until(t, "a record", func() bool { return len(m.evidence()) == 1 })
	if w := l.Declare(); w.ByAttempt || w.ByCall {
		t.Errorf("declared %+v after a record that names nobody", w)
	}
	file.text("n=1 id=7 m=" + ours.Marker(ref) + " t=1\n")
	until(t, "a record", func() bool { return len(m.evidence()) == 2 })
	if w := l.Declare(); w.ByAttempt || !w.ByCall {
		t.Errorf("declared %+v after a record by marker", w)
	}
}

func TestStdin(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for name, tc := range map[string]struct {
		from io.Reader
		to   io.WriteCloser
	}{"file": {r, w}, "reader": pipe()} {
		t.Run(name, func(t *testing.T) {
			l, m := startLog(t, numbered("-", tc.from))
			fmt.Fprint(tc.to, "n=1\nn=")
			fmt.Fprint(tc.to, "2\nn=3\nunfinished n=4")
			until(t, "three steps", func() bool { return len(m.evidence()) == 3 })
			tc.to.Close()
			until(t, "the end", func() bool { return len(m.gaps()) == 2 })
			l.Stop(t.Context())
			wantSteps(t, m, 1, 3)
			if g := m.gaps(); !strings.Contains(g[0].Reason+g[1].Reason, "standard input ended") {
				t.Errorf("gaps %+v, want the end of standard input", g)
			}
		})
	}
}

func pipe() (p struct {
	from io.Reader
	to   io.WriteCloser
}) {
	p.from, p.to = io.Pipe()
	return p
}

// A stop does not wait for a writer that stays silent.
func TestStdinStops(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	l, m := startLog(t, numbered("-", r))
	fmt.Fprint(w, "n=1\nn=2\n")
	l.Stop(t.Context())
	wantSteps(t, m, 1, 2)
	if g := m.gaps(); len(g) != 0 {
		t.Errorf("gaps %+v, want none", g)
	}
}

func TestHardStop(t *testing.T) {
	file := newLogFile(t)
	l, err := NewLog(numbered(file.path, nil))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := l.Start(ctx, &memory{}); err != nil {
		t.Fatal(err)
	}
	if err := l.Start(ctx, &memory{}); err == nil {
		t.Error("a second start is no error")
	}
	cancel()
	<-l.done
	l.Stop(t.Context())
}

func TestFloodKeepsMemory(t *testing.T) {
	l, m := startLog(t, numbered("exec:yes 'a line of a log that says nothing at all, again and again'", nil))
	before := liveHeap()
	until(t, "a flood of lines", func() bool { return l.Stats().Read > 300_000 })
	if grown := liveHeap() - before; grown > 8<<20 {
		t.Errorf("the heap grew by %d bytes in a flood", grown)
	}
	l.Stop(t.Context())
	if s := l.Stats(); s.Read != s.Unmatched || len(m.evidence()) != 0 {
		t.Errorf("stats %+v", s)
	}
}

// liveHeap is the smallest of some measurements: what is allocated between the
// collection and the measurement is not alive.
func liveHeap() int64 {
	least := int64(1) << 62
	for range 5 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		least = min(least, int64(m.HeapAlloc))
	}
	return least
}
