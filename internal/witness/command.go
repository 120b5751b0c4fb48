package witness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// earlyEnd is how long a command is watched for an end at its beginning.
	earlyEnd = 300 * time.Millisecond
	// termGrace is how long a command may take to end when asked to, before it
	// is killed; killGrace is how long its output is awaited after that.
	termGrace = time.Second
	killGrace = 500 * time.Millisecond
	// checkLimit bounds the parsing of the command.
	checkLimit = 5 * time.Second
)

// command reads what a shell command prints. Its standard output and standard
// error are one pipe, as with 2>&1: only so is their order kept, and the order
// of a stop line and an effect line decides a verdict.
type command struct {
	text string
	name string
	in   *intake
	// early is earlyEnd; tests wait longer.
	early time.Duration

	cmd    *exec.Cmd
	pid    atomic.Int64
	out    *os.File
	s      *stream
	status error         // of the shell; set before exited is closed
	exited chan struct{} // the shell ended
	ended  chan struct{} // there is nothing more to read, and why says so
	why    string

	// mu keeps a signal from going to a process id that is free again.
	mu   sync.Mutex
	gone bool
}

func newCommand(text, name string, in *intake) *command {
	return &command{
		text: text, name: name, in: in, early: earlyEnd,
		exited: make(chan struct{}), ended: make(chan struct{}),
	}
}

func (c *command) poll() time.Duration { return 0 }

// check parses the command; only the shell can say whether its words exist.
func (c *command) check(ctx context.Context) error {
	if strings.TrimSpace(c.text) == "" {
		return errors.New("exec: has no command: want exec:CMD, as in --log 'exec:docker logs -f NAME'")
	}
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-n", "-c", c.text)
	var words bytes.Buffer // a shell's complaint quotes a line at most
	cmd.Stderr = &words
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%v: %s", err, printable(clip(strings.TrimSpace(words.String()), maxShown)))
	}
	return nil
}

func (c *command) open() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer w.Close()
	c.cmd = exec.Command("sh", "-c", c.text)
	c.cmd.Stdout, c.cmd.Stderr = w, w
	lead(c.cmd)
	if err := c.cmd.Start(); err != nil {
		r.Close()
		return err
	}
	c.pid.Store(int64(c.cmd.Process.Pid))
	c.out, c.s = r, newStream(r, c.in)
	go func() {
		c.status = c.cmd.Wait()
		// The shell's children have no parent to end them now.
		c.signal(kill)
		c.mu.Lock()
		c.gone = true
		c.mu.Unlock()
		close(c.exited)
	}()
	return nil
}

func (c *command) signal(send func(pid int)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.gone {
		send(c.cmd.Process.Pid)
	}
}

func (c *command) run(ctx context.Context, stop <-chan struct{}) {
	defer func() {
		c.signal(kill)
		<-c.exited
		c.s.r.close()
		c.out.Close()
	}()
	if err := c.s.carry(ctx, stop); err != nil {
		c.finish(ctx)
		return
	}
	if ctx.Err() != nil {
		return
	}
	c.signal(terminate)
	if c.readOut(ctx, termGrace) {
		return
	}
	c.signal(kill)
	c.readOut(ctx, killGrace)
}

// readOut reads until the pipe has no writer any more, at most for limit.
func (c *command) readOut(ctx context.Context, limit time.Duration) (end bool) {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline) && ctx.Err() == nil; {
		if err := c.s.step(idleLook); err != nil && !errors.Is(err, errIdle) {
			return true
		}
	}
	return false
}

// finish says how the command ended: nothing can be read from it any more.
func (c *command) finish(ctx context.Context) {
	at := c.in.out.clock.Now()
	how := "closed its output"
	select {
	case <-c.exited:
		how = "ended (exit status 0)"
		if c.status != nil {
			how = fmt.Sprintf("ended (%v)", c.status)
		}
	case <-time.After(termGrace):
	case <-ctx.Done():
		return
	}
	c.why = fmt.Sprintf("the command %s; %s", how, c.in.lastWords())
	close(c.ended)
	c.in.out.gap(at, 0, c.why)
}

// settle reports a command that ends as soon as it begins.
func (c *command) settle(ctx context.Context) error {
	t := time.NewTimer(c.early)
	defer t.Stop()
	select {
	case <-c.ended:
		return fmt.Errorf("%s: it must run on as the log grows, as tail -F does", c.why)
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
