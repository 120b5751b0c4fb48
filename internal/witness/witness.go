package witness

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// Witness is one source of evidence. Its methods may be called from any
// goroutine, in the order Check, Start, Stop; the rest at any time.
type Witness interface {
	// Declare describes the source. What it shows is known fully only once the
	// clean calls were seen: a label or a log field may turn out to carry our
	// identities or not. Declare it before the first call and again after the
	// clean calls; the later declaration counts.
	Declare() history.Witness
	// Check tells whether the source can be read. It reads no evidence.
	Check(ctx context.Context) error
	// Start begins to read. What the source held before is not evidence. The end
	// of ctx ends the witness at once, without a last look.
	Start(ctx context.Context, to history.Appender) error
	// Stop reads what has already arrived, for two seconds or so at most, less
	// if ctx ends before, and ends the witness. It returns when nothing of it
	// runs any more, and may be called again, or before Start.
	Stop(ctx context.Context)
	// Absent lists what the witness was told to look for and has not met yet.
	Absent() []Absent
	// Unmatched gives up to three samples of what was read and not recognized,
	// the last ones, safe to print.
	Unmatched() []string
	// Stats is a copy of the live counters.
	Stats() Stats
}

var (
	_ Witness = (*Log)(nil)
	_ Witness = (*Metrics)(nil)
)

// Absent is one pattern that matched nothing yet, or one metric that does not
// exist yet.
type Absent struct {
	Kind history.Kind // what it would show
	Name string       // as the user gave it: "--log-work RE", "--metric work=NAME"
	Hint string       // the nearest that does exist; may be empty
}

func (a Absent) String() string {
	if a.Hint == "" {
		return a.Name
	}
	return a.Name + ": " + a.Hint
}

// Count is how often one kind of evidence came.
type Count struct {
	Attributed   int64 // names an attempt or call of this run
	Foreign      int64 // names one of another run
	Unattributed int64 // names none
}

// Stats are the live counters of a witness. They are for people to watch;
// judging counts the history.
type Stats struct {
	Read      int64 // lines, or scrapes that succeeded
	Unmatched int64 // lines that no pattern matched
	Malformed int64 // times, units, steps and values that are none; their record stands without them
	Failed    int64 // lines cut, lines that never ended, scrapes that failed
	Gaps      int64
	Kinds     map[history.Kind]Count
	Last      time.Duration // run time of the last evidence; 0: none yet
	Trouble   string        // what went wrong last; empty: nothing
}

// Seen reports whether any evidence of a kind came that is not another run's.
func (s Stats) Seen(k history.Kind) bool {
	c := s.Kinds[k]
	return c.Attributed+c.Unattributed > 0
}

// Wire declares what the client itself still sees of an attempt: source 0. Its
// records are our own observations on our own clock, so no source is better.
func Wire() history.Witness {
	return history.Witness{
		Source: 0, What: "wire", Name: "wire", Grade: history.GradeA,
		Shows:     []history.Kind{history.Emission, history.Stray, history.WrongID, history.Replayed},
		ByAttempt: true, Timed: true,
	}
}

// output is where a witness puts what it found, and counts it.
type output struct {
	source  int
	clock   history.Clock
	secrets *strings.Replacer

	mu    sync.Mutex
	to    history.Appender // nil before Start
	stats Stats
	by    map[string]bool // the identities that attributed evidence so far
}

func newOutput(source int, clock history.Clock, secrets []string) *output {
	return &output{
		source: source, clock: clock, secrets: newScrubber(secrets),
		stats: Stats{Kinds: map[history.Kind]Count{}}, by: map[string]bool{},
	}
}

func (o *output) start(to history.Appender) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.to = to
}

// evidence appends e. It bounds the text and takes known secrets out of it.
func (o *output) evidence(e history.Evidence) {
	e.Source = o.source
	e.Text = clip(o.secrets.Replace(e.Text), history.MaxText)
	e.Key = clip(o.secrets.Replace(e.Key), maxKey)
	o.mu.Lock()
	c := o.stats.Kinds[e.Kind]
	switch {
	case e.Foreign:
		c.Foreign++
	case e.By != "":
		c.Attributed++
		o.by[e.By] = true
	default:
		c.Unattributed++
	}
	o.stats.Kinds[e.Kind] = c
	o.stats.Last = o.clock.Now()
	to := o.to
	o.mu.Unlock()
	to.Append(history.Record{Evidence: &e})
}

func (o *output) sample(s history.Sample) {
	s.Source = o.source
	o.mu.Lock()
	to := o.to
	o.mu.Unlock()
	to.Append(history.Record{Sample: &s})
}

// gap appends a time in which the source was not seen; to 0: until the end.
func (o *output) gap(from, to time.Duration, reason string) {
	reason = clip(o.secrets.Replace(reason), maxReason)
	o.mu.Lock()
	o.stats.Gaps++
	o.stats.Trouble = printable(reason)
	sink := o.to
	o.mu.Unlock()
	sink.Append(history.Record{Gap: &history.Gap{Source: o.source, From: from, To: to, Reason: reason}})
}

func (o *output) count(f func(*Stats)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f(&o.stats)
}

func (o *output) snapshot() Stats {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.stats
	s.Kinds = maps.Clone(s.Kinds)
	return s
}

// names reports which identities the evidence so far carried, and whether any
// evidence came at all.
func (o *output) names() (attempt, call, any bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.stats.Kinds {
		any = any || c.Attributed+c.Unattributed > 0
	}
	return o.by[byID] || o.by[byTrace], o.by[byMarker], any
}

// stopped waits for done, or until ctx ends, and then calls kill and waits on.
func stopped(ctx context.Context, done <-chan struct{}, kill func()) {
	select {
	case <-done:
	case <-ctx.Done():
	}
	kill()
	<-done
}

// problems makes one error of many, one line each, so that all can be mended at
// once.
func problems(list []string) error {
	if len(list) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(list, "\n"))
}
