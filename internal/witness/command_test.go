package witness

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestCommandOrder(t *testing.T) {
	l, m := startLog(t, numbered(`exec:for i in 1 3 5; do echo n=$i; echo n=$((i+1)) >&2; done; exec sleep 1000`, nil))
	until(t, "six steps", func() bool { return len(m.evidence()) == 6 })
	if pid := l.PID(); pid <= 0 || syscall.Kill(pid, 0) != nil {
		t.Errorf("process id %d is not alive", pid)
	}
	l.Stop(t.Context())
	wantSteps(t, m, 1, 6)
	if g := m.gaps(); len(g) != 0 {
		t.Errorf("gaps %+v: a stop is none", g)
	}
}

func TestCommandDies(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "go")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	l, m := startLog(t, numbered("exec:echo n=1; cat "+fifo+" >/dev/null; echo connection lost >&2; exit 7", nil))
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	until(t, "the gap", func() bool { return len(m.gaps()) == 1 })
	g := m.gaps()[0]
	for _, want := range []string{"exit status 7", "n=1 | connection lost"} {
		if !strings.Contains(g.Reason, want) {
			t.Errorf("reason %q lacks %q", g.Reason, want)
		}
	}
	if g.To != 0 || g.From == 0 || l.Stats().Trouble == "" {
		t.Errorf("gap %+v, want one to the end; trouble %q", g, l.Stats().Trouble)
	}
	l.Stop(t.Context())
}

func TestCommandEndsAtOnce(t *testing.T) {
	for cmd, want := range map[string]string{
		"exec:no-such-command-here": "exit status 127",
		"exec:echo done":            "exit status 0",
		"exec:true":                 "printed nothing",
	} {
		l, err := NewLog(numbered(cmd, nil))
		if err != nil {
			t.Fatal(err)
		}
		l.source.(*command).early = 20 * time.Second
		err = l.Start(t.Context(), &memory{})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "run on") {
			t.Errorf("start of %s = %v, want %q", cmd, err, want)
		}
		l.Stop(t.Context())
	}
}

// No child is left: neither one in the background, nor one that ignores the
// request to end, nor one whose shell ended by itself.
func TestCommandLeavesNothing(t *testing.T) {
	for name, script := range map[string]string{
		"background":    `sleep 1000 & echo pid=$!; wait`,
		"ignores":       `trap '' TERM; sleep 1000 & echo pid=$!; while :; do wait; done`,
		"silent helper": `sleep 1000 >/dev/null 2>&1 & echo pid=$!; read x <&-; exec >&- 2>&-; wait`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := numbered("exec:"+script, nil)
			cfg.Work = []string{`pid=(?P<step>\d+)`}
			l, m := startLog(t, cfg)
			until(t, "the child", func() bool { return len(m.evidence()) == 1 })
			child := m.evidence()[0].Step
			shell := l.PID()
			l.Stop(t.Context())
			for _, pid := range []int{child, shell} {
				until(t, "process "+strconv.Itoa(pid)+" to end", func() bool { return dead(pid) })
			}
		})
	}
}

// dead reports whether a process is gone or only waits for its parent to ask.
func dead(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(after, "Z")
}

func TestCommandHardStop(t *testing.T) {
	l, err := NewLog(numbered("exec:trap '' TERM; while :; do sleep 1; done", nil))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := l.Start(ctx, &memory{}); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-l.done
	if !dead(l.PID()) {
		t.Error("the shell outlived its context")
	}
	l.Stop(t.Context())
}

func TestCommandGarbage(t *testing.T) {
	l, m := startLog(t, numbered(`exec:echo n=1; head -c 3000000 /dev/urandom; echo; head -c 5000000 /dev/zero | tr '\0' x; echo; echo n=2; exec sleep 1000`, nil))
	until(t, "the step after the garbage", func() bool {
		e := m.evidence()
		return len(e) > 0 && strings.HasPrefix(e[len(e)-1].Text, "n=2")
	})
	for _, s := range l.Unmatched() {
		if len(s) > 4*maxShown || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
			t.Errorf("an unmatched line is not fit to print: %q", s)
		}
	}
	l.Stop(t.Context())
}
