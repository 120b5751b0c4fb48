package target

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Defaults of a zero [Config].
const (
	DefaultAddr     = "127.0.0.1:3000"
	DefaultSteps    = 10
	DefaultStepTime = time.Second
	DefaultTailTime = 300 * time.Millisecond
	DefaultSlots    = 8
	DefaultSlotWait = time.Second
	// stopDelaySteps is the default of StopDelay, in steps.
	stopDelaySteps = 5
)

// Limits of a [Config].
const (
	maxSteps     = 1_000_000
	maxFillers   = 5_000
	maxLogBuffer = 1 << 24
)

// Answer is the form in which calls are answered.
type Answer string

// The forms. AnswerAuto streams when the request carries a progress token and
// answers plain JSON otherwise; AnswerMixed draws one of the two for each
// request from the seed and its id.
const (
	AnswerAuto  Answer = ""
	AnswerJSON  Answer = "json"
	AnswerSSE   Answer = "sse"
	AnswerMixed Answer = "mixed"
)

// Config is a target's settings. The zero value is a healthy server with the
// default tool, no log and no truth file.
type Config struct {
	// Steps of work in a call of build_report. 0: DefaultSteps.
	Steps int
	// StepTime is how long a step takes. 0: DefaultStepTime.
	StepTime time.Duration
	// TailTime is the time from the e-mail to the result. 0: DefaultTailTime;
	// negative: none.
	TailTime time.Duration
	// StopDelay is how long the fault slow-stop works on. 0: five steps' time.
	StopDelay time.Duration
	// Answer is the form of answers.
	Answer Answer
	// NoProgress keeps the tool quiet: no progress even where it is asked for.
	NoProgress bool
	// PageSize is how many tools a page of tools/list holds. 0: all of them.
	PageSize int
	// Fillers is how many tools that do nothing are listed after build_report,
	// to give tools/list something to page through.
	Fillers int
	// Seed decides which requests have a fault of a share, and mixed answers.
	Seed uint64
	// Faults are switched on. None: a healthy server. Each kind at most once.
	Faults []Fault
	// Slots is how many cancelled calls slot-leak can keep before calls are
	// refused. 0: DefaultSlots.
	Slots int
	// SlotWait is how long a call waits for a slot. 0: DefaultSlotWait.
	SlotWait time.Duration
	// Log gets the log lines; nil: none. The target writes to it from one
	// goroutine at a time.
	Log io.Writer
	// LogBuffer is the size in bytes of the block in which the log is held
	// back, as standard output to a file is. 0: every line at once.
	LogBuffer int
	// Truth gets one line of JSON, a [Truth], for every call that ended; nil:
	// none.
	Truth io.Writer
	// Version is what the server says its version is. Empty: "dev".
	Version string
}

// Validate reports every problem of c at once, in one error.
func (c Config) Validate() error {
	var errs []error
	bad := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(c.Steps < 0 || c.Steps > maxSteps, "bad steps %d: want 1 to %d", c.Steps, maxSteps)
	bad(c.StepTime < 0, "bad step time %v: want more than 0", c.StepTime)
	bad(c.StopDelay < 0, "bad stop delay %v: want more than 0", c.StopDelay)
	bad(c.PageSize < 0, "bad page size %d: want 1 or more, or 0 for one page", c.PageSize)
	bad(c.Fillers < 0 || c.Fillers > maxFillers, "bad number of fillers %d: want 0 to %d", c.Fillers, maxFillers)
	bad(c.Slots < 0, "bad slots %d: want 1 or more", c.Slots)
	bad(c.SlotWait < 0, "bad slot wait %v: want more than 0", c.SlotWait)
	bad(c.LogBuffer < 0 || c.LogBuffer > maxLogBuffer, "bad log buffer %d: want 0 to %d bytes", c.LogBuffer, maxLogBuffer)
	switch c.Answer {
	case AnswerAuto, AnswerJSON, AnswerSSE, AnswerMixed:
	default:
		bad(true, "unknown answer form %q: want json, sse or mixed", c.Answer)
	}
	var seen faultSet
	for _, f := range c.Faults {
		if f.Kind >= faultKinds {
			bad(true, "unknown fault number %d: want one of %s", f.Kind, faultNames())
			continue
		}
		bad(!(f.Share >= 0 && f.Share <= 1), "bad share %v of fault %s: want a number over 0 up to 1", f.Share, f.Kind)
		bad(seen.has(f.Kind), "fault %s is given twice: give it once, with one share", f.Kind)
		seen |= 1 << f.Kind
	}
	return errors.Join(errs...)
}

// withDefaults fills in what is 0.
func (c Config) withDefaults() Config {
	fill(&c.Steps, DefaultSteps)
	fill(&c.StepTime, DefaultStepTime)
	fill(&c.TailTime, DefaultTailTime)
	fill(&c.StopDelay, stopDelaySteps*c.StepTime)
	fill(&c.Slots, DefaultSlots)
	fill(&c.SlotWait, DefaultSlotWait)
	fill(&c.Version, "dev")
	c.TailTime = max(c.TailTime, 0)
	return c
}

func fill[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}
