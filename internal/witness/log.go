package witness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// drainLimit bounds the last look of a witness that is stopped.
const drainLimit = 2 * time.Second

// LogConfig says which log to read and what to look for.
type LogConfig struct {
	Source int // from 1
	// Spec is where the log is: a FILE, followed through rotation; "-" for
	// Stdin; "exec:CMD" for what a shell command prints.
	Spec string
	// Regular expressions with the named groups id, marker, trace, step, units
	// and time; effects also key. At least one is needed.
	Work, Stop, Done, Effect []string
	Clock                    history.Clock
	Nonce                    history.Nonce
	// Stdin is read for "-". An [os.File] is waited for without reading and is
	// never left in a Read; any other reader is left behind in its Read when the
	// witness stops before that returns.
	Stdin io.Reader
	// Secrets are replaced by "***" in all text that is kept.
	Secrets []string
}

// Log is a log as a witness.
type Log struct {
	spec    string
	name    string
	out     *output
	matcher *matcher
	intake  *intake
	source  source

	mu      sync.Mutex
	started bool
	kill    context.CancelFunc
	once    sync.Once
	stop    chan struct{}
	done    chan struct{}
}

// source is where lines come from.
type source interface {
	check(ctx context.Context) error
	// open makes the source ready: what it holds now is not read.
	open() error
	// run feeds the intake until the source ends or stop is closed, then reads
	// what has already arrived; at the end of ctx it returns at once. It frees
	// what open took.
	run(ctx context.Context, stop <-chan struct{})
	// settle waits a moment for a source that ends as soon as it begins, and
	// returns why it did.
	settle(ctx context.Context) error
	poll() time.Duration // how often it looks; 0: it is told
}

// NewLog makes the witness of one log. Its error names everything that is wrong
// with the configuration.
func NewLog(cfg LogConfig) (*Log, error) {
	m, err := newMatcher(cfg)
	if cfg.Spec == "" {
		err = errors.Join(errors.New("--log is empty: want a FILE, - or exec:CMD"), err)
	}
	if err != nil {
		return nil, err
	}
	l := &Log{spec: cfg.Spec, matcher: m, stop: make(chan struct{}), done: make(chan struct{})}
	l.out = newOutput(cfg.Source, cfg.Clock, cfg.Secrets)
	l.intake = &intake{out: l.out, matcher: m}
	command, isCommand := strings.CutPrefix(cfg.Spec, "exec:")
	switch {
	case isCommand:
		l.name = "exec:" + safeCommand(l.out.secrets.Replace(command))
		l.source = newCommand(command, l.name, l.intake)
	case cfg.Spec == "-":
		l.name = "stdin"
		l.source = &stdin{from: cfg.Stdin, in: l.intake}
	default:
		l.name = cfg.Spec
		l.source = &follower{path: cfg.Spec, in: l.intake}
	}
	return l, nil
}

// Declare describes the log. A log whose patterns can read an identity, but
// whose records so far carried none of ours, is one without identities.
func (l *Log) Declare() history.Witness {
	w := history.Witness{
		Source: l.out.source, What: "log", Name: l.name, Grade: history.GradeC,
		ByAttempt: l.matcher.has(groupID, groupTrace), ByCall: l.matcher.has(groupMarker),
		Timed: l.matcher.has(groupTime), Poll: l.source.poll(),
	}
	if attempt, call, seen := l.out.names(); seen {
		w.ByAttempt, w.ByCall = w.ByAttempt && attempt, w.ByCall && call
	}
	for _, k := range []history.Kind{history.Work, history.Stop, history.Completion, history.Effect} {
		if slices.ContainsFunc(l.matcher.patterns, func(p *pattern) bool { return p.kind == k }) {
			w.Shows = append(w.Shows, k)
		}
	}
	return w
}

// Check tells whether the file can be read, or the command be parsed.
func (l *Log) Check(ctx context.Context) error {
	if err := l.source.check(ctx); err != nil {
		return fmt.Errorf("--log %s: %v", l.name, err)
	}
	return nil
}

// Start begins to read at the end of the log. For a command it waits a moment:
// one that ends at once is an error, with its last words.
func (l *Log) Start(ctx context.Context, to history.Appender) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.started {
		return fmt.Errorf("--log %s: started twice", l.name)
	}
	l.out.start(to)
	if err := l.source.open(); err != nil {
		return fmt.Errorf("--log %s: %v", l.name, err)
	}
	l.started = true
	ctx, l.kill = context.WithCancel(ctx)
	go func() {
		defer close(l.done)
		l.source.run(ctx, l.stop)
		l.intake.settle()
	}()
	if err := l.source.settle(ctx); err != nil {
		l.kill()
		<-l.done
		return fmt.Errorf("--log %s: %v", l.name, err)
	}
	return nil
}

// Stop reads what has already arrived and ends the witness, and the whole
// process group of a command.
func (l *Log) Stop(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.once.Do(func() { close(l.stop) })
	if !l.started {
		return
	}
	stopped(ctx, l.done, l.kill)
}

// PID is the process id of a command's shell, which leads its process group; 0
// for other logs and before Start.
func (l *Log) PID() int {
	if c, ok := l.source.(*command); ok {
		return int(c.pid.Load())
	}
	return 0
}

// Absent lists the patterns that have matched no line yet.
func (l *Log) Absent() []Absent {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	var out []Absent
	for i, p := range l.matcher.patterns {
		if !l.matcher.matched[i] {
			out = append(out, Absent{Kind: p.kind, Name: p.String()})
		}
	}
	return out
}

// Unmatched gives the last three lines that no pattern matched.
func (l *Log) Unmatched() []string {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	return l.intake.unmatched.texts(l.out.secrets)
}

// Stats is a copy of the live counters.
func (l *Log) Stats() Stats { return l.out.snapshot() }

// intake makes records of lines. Only the goroutine of its source calls it;
// unmatched and matcher.matched are guarded by the output's lock.
type intake struct {
	out     *output
	matcher *matcher

	n         int64         // lines so far, since the start and over rotations
	seen      time.Duration // when the last line came
	unmatched ring
	last      ring // last words

	lost lostLines
}

// lostLines are lines that could not be read whole, until their gap is written:
// one gap a second stands for all of them.
type lostLines struct {
	from  time.Duration // when the last whole line before them came
	first time.Duration // when the first of them came
	to    time.Duration
	n     int
}

// lostEvery is how long lost lines gather before their gap is written.
const lostEvery = time.Second

// line takes one line, without its end; cut: only its start.
func (in *intake) line(b []byte, cut bool) {
	now := in.out.clock.Now()
	in.n++
	in.last.add(b)
	found := in.matcher.match(b, cut, in.out.clock.Started().Add(now))
	in.out.count(func(s *Stats) {
		s.Read++
		for _, m := range found {
			in.matcher.matched[m.pattern] = true
			s.Malformed += int64(m.malformed)
		}
		if len(found) == 0 {
			s.Unmatched++
			in.unmatched.add(b)
		}
	})
	for _, m := range found {
		m.evidence.Line = in.n
		in.out.evidence(m.evidence)
	}
	if cut {
		in.lose(now)
	}
	in.seen = now
	in.tick(now)
}

// lose notes a line that could not be read whole.
func (in *intake) lose(now time.Duration) {
	if in.lost.n == 0 {
		in.lost.from, in.lost.first = in.seen, now
	}
	in.lost.n++
	in.lost.to = now
	in.out.count(func(s *Stats) { s.Failed++ })
}

// unfinished takes the news that a line will never end. Half a line is never
// matched: half an id names another attempt.
func (in *intake) unfinished(l *lines) {
	if l.reset() {
		in.lose(in.out.clock.Now())
	}
}

// tick writes the gap of lost lines once it is due. Sources call it when idle.
func (in *intake) tick(now time.Duration) {
	if in.lost.n > 0 && now-in.lost.first >= lostEvery {
		in.settle()
	}
}

// settle writes the gap of lost lines now.
func (in *intake) settle() {
	if in.lost.n == 0 {
		return
	}
	l := in.lost
	in.lost = lostLines{}
	in.out.gap(l.from, l.to, fmt.Sprintf("lines cut: %d longer than %d KiB, or never ended", l.n, MaxLine>>10))
}

// lastWords quotes the last lines read, for a source that ended.
func (in *intake) lastWords() string {
	words := in.last.texts(in.out.secrets)
	if len(words) == 0 {
		return "it printed nothing"
	}
	return "its last words: " + strings.Join(words, " | ")
}
