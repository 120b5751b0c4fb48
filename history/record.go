package history

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Record is one line of a history: when it was appended and exactly one fact.
type Record struct {
	// T is when the record was appended; it never decreases along a history.
	T time.Duration `json:"t_ns"`

	Run      *Run      `json:"run,omitempty"`
	Witness  *Witness  `json:"witness,omitempty"`
	Budget   *Budget   `json:"budget,omitempty"`
	Start    *Start    `json:"start,omitempty"`
	End      *End      `json:"end,omitempty"`
	Call     *Call     `json:"call,omitempty"`
	Evidence *Evidence `json:"evidence,omitempty"`
	Sample   *Sample   `json:"sample,omitempty"`
	Gap      *Gap      `json:"gap,omitempty"`
	Event    *Event    `json:"event,omitempty"`
	Dropped  *Dropped  `json:"dropped,omitempty"`
	Canary   *Canary   `json:"canary,omitempty"`
	Driver   *Driver   `json:"driver,omitempty"`
	Stage    *Stage    `json:"stage,omitempty"`
	Close    *Close    `json:"close,omitempty"`
}

// Run opens a history: what the run is and the settings that judging needs.
type Run struct {
	Schema   string        `json:"schema"`
	ID       string        `json:"id"`
	Nonce    Nonce         `json:"nonce"`
	Seed     uint64        `json:"seed"`
	Started  time.Time     `json:"started"` // wall clock at T 0
	Version  string        `json:"version"`
	Targets  []string      `json:"targets"`
	Tool     string        `json:"tool"`
	Protocol string        `json:"protocol"`
	HTTP     string        `json:"http"`
	Scenario string        `json:"scenario,omitempty"`
	Profile  string        `json:"profile,omitempty"`
	Cuts     []string      `json:"cuts"` // the plan's clauses as text; Planned.Clause indexes them
	Clean    int           `json:"clean"`
	Watch    time.Duration `json:"watch_ns"`
	Notice   time.Duration `json:"notice_within_ns,omitempty"` // 0: no bound set
	Streams  int           `json:"streams,omitempty"`          // closed model: how many; 0: open model
}

// Witness declares a source of evidence before it is read. Source 0 is always
// the wire itself.
type Witness struct {
	Source int    `json:"source"`
	What   string `json:"kind"` // log, metrics, trace, meter, effects, process, wire
	Name   string `json:"name"` // a file, a URL, a command; free of secrets
	Grade  Grade  `json:"grade"`
	Shows  []Kind `json:"shows"` // the kinds its patterns or metrics can show
	// ByAttempt holds when its records name attempts (id, trace), ByCall when
	// they name calls (marker). Neither: its records are claims about the whole.
	ByAttempt bool          `json:"by_attempt,omitempty"`
	ByCall    bool          `json:"by_call,omitempty"`
	Timed     bool          `json:"timed,omitempty"` // its records carry the source's own time
	Gauge     bool          `json:"gauge,omitempty"` // it samples an aggregate in-flight gauge
	Poll      time.Duration `json:"poll_ns,omitempty"`
}

// Budget is what the clean calls before the load fixed.
type Budget struct {
	StopWithin  time.Duration      `json:"stop_within_ns"`
	Given       bool               `json:"given,omitempty"` // set by the user, not derived
	CleanMedian time.Duration      `json:"clean_median_ns"`
	Gap         time.Duration      `json:"gap_ns"`      // median between two successive work records
	TailGap     time.Duration      `json:"tail_gap_ns"` // median last event to result
	Events      int                `json:"events"`      // events before the result
	Units       float64            `json:"units"`       // median work units of a clean attempt
	Baselines   map[string]float64 `json:"baselines,omitempty"`
}

// Planned is the cut that the plan holds for an attempt.
type Planned struct {
	Clause int    `json:"clause"`
	Style  Style  `json:"style"`
	Moment string `json:"moment"`          // resolved: "after(1.52s)", "event(3)", "sent"
	Phase  Phase  `json:"phase,omitempty"` // asked for by name
	Code   uint32 `json:"code,omitempty"`  // of a stream-reset
}

// Variants of a request. The default asks for progress, so that servers stream.
const (
	VariantJSON = "json" // no progress token: servers may answer plain JSON
	VariantGzip = "gzip" // compressed answers are accepted
)

// Probes: attempts that another client meddles with, on purpose.
const (
	ProbeCancelAny = "cancel-any" // another client posts a cancel for this one's id
	ProbeSharedID  = "shared-id"  // another client uses the same id at the same time
)

// Start is written when an attempt begins: just before it dials.
type Start struct {
	Ref      Ref           `json:"ref"`
	Tool     string        `json:"tool,omitempty"` // empty: the run's
	Instance int           `json:"instance,omitempty"`
	Variant  string        `json:"variant,omitempty"` // of the request
	HTTP     string        `json:"http,omitempty"`    // empty: the run's
	Probe    string        `json:"probe,omitempty"`
	Intended time.Duration `json:"intended_ns"` // planned start; for a re-issue the end of its backoff
	Begun    time.Duration `json:"begun_ns"`
	Planned  *Planned      `json:"planned,omitempty"`
}

// CutDone is a cut that was carried out.
type CutDone struct {
	Style    Style         `json:"style"`
	Phase    Phase         `json:"phase"`
	Cause    string        `json:"cause"`              // plan, timeout
	Due      time.Duration `json:"due_ns"`             // when it should have happened
	C0       time.Duration `json:"c0_ns"`              // just before the system call
	C1       time.Duration `json:"c1_ns"`              // just after it
	Fallback Style         `json:"fallback,omitempty"` // what was done where the style cannot be: vanish → stall
}

// After is what the wire showed of an attempt after its cut.
type After struct {
	Messages int           `json:"messages,omitempty"` // complete JSON-RPC messages
	Bytes    int64         `json:"bytes,omitempty"`
	Result   time.Duration `json:"result_ns,omitempty"` // a result arrived: when
	IsError  bool          `json:"is_error,omitempty"`  // it was an error or an isError result
	PeerEnd  time.Duration `json:"peer_end_ns,omitempty"`
	How      string        `json:"how,omitempty"`              // eof, reset
	Dropped  int           `json:"dropped_segments,omitempty"` // vanish: what the server still sent, in segments
}

// End is an attempt's life as the client saw it, written when nothing more of
// it can be seen: at a fin or reset cut, at the result, or, for cuts that keep
// the socket, once it is settled. Moments are 0 where they did not come.
type End struct {
	Ref        Ref           `json:"ref"`
	Outcome    Outcome       `json:"outcome"`
	Origin     Origin        `json:"origin,omitempty"`
	Begun      time.Duration `json:"begun_ns"`
	Connected  time.Duration `json:"connected_ns,omitempty"`
	Sent       time.Duration `json:"sent_ns,omitempty"` // last byte of the request written
	FirstByte  time.Duration `json:"first_byte_ns,omitempty"`
	Headers    time.Duration `json:"headers_ns,omitempty"`
	FirstEvent time.Duration `json:"first_event_ns,omitempty"` // JSON: first body byte
	LastEvent  time.Duration `json:"last_event_ns,omitempty"`  // before the result
	Result     time.Duration `json:"result_ns,omitempty"`      // the result was read
	Ended      time.Duration `json:"ended_ns"`
	Events     int           `json:"events,omitempty"` // before the result
	Bytes      int64         `json:"bytes,omitempty"`
	Form       string        `json:"form,omitempty"` // sse, json
	Status     int           `json:"status,omitempty"`
	Code       int           `json:"code,omitempty"` // JSON-RPC error code
	IsError    bool          `json:"is_error,omitempty"`
	Cancelled  bool          `json:"cancelled,omitempty"` // the error or isError text says "cancelled"
	RetryAfter time.Duration `json:"retry_after_ns,omitempty"`
	Error      string        `json:"error,omitempty"`
	Truncated  bool          `json:"truncated,omitempty"` // the stream ended inside an event
	Planned    *Planned      `json:"planned,omitempty"`
	Cut        *CutDone      `json:"cut,omitempty"`
	Missed     bool          `json:"missed,omitempty"` // a planned cut whose moment never came
	After      *After        `json:"after,omitempty"`
}

// Call is written when a call is over.
type Call struct {
	Ref      Ref           `json:"ref"`     // Attempt 0
	Outcome  string        `json:"outcome"` // delivered, failed, abandoned
	Intended time.Duration `json:"intended_ns"`
	Ended    time.Duration `json:"ended_ns"`
	Attempts int           `json:"attempts"`
	Rounds   int           `json:"rounds,omitempty"` // input_required rounds followed
}

// Evidence is one observation of a witness. T of its record is its arrival.
type Evidence struct {
	Source int    `json:"source"`
	Kind   Kind   `json:"kind"`
	Ref    Ref    `json:"ref,omitzero"` // Attempt 0: only the call is known (marker)
	By     string `json:"by,omitempty"` // id, trace, marker, wire; empty: unattributed
	// Foreign evidence carries an identity of another run: counted, ignored.
	Foreign bool    `json:"foreign,omitempty"`
	Units   float64 `json:"units,omitempty"`
	Unit    string  `json:"unit,omitempty"` // empty: step
	Step    int     `json:"step,omitempty"`
	// Lo and Hi bound the source's own time, on its own clock, as run time.
	// Timed false: the source gave none.
	Timed bool          `json:"timed,omitempty"`
	Lo    time.Duration `json:"lo_ns,omitempty"`
	Hi    time.Duration `json:"hi_ns,omitempty"`
	// Key tells effects apart (an idempotency key), where known.
	Key  string `json:"key,omitempty"`
	Line int64  `json:"line,omitempty"` // where the source counts lines
	Text string `json:"text,omitempty"` // at most MaxText bytes, as the source gave it
}

// MaxText bounds what is kept of any text a server or witness gives.
const MaxText = 4 << 10

// Sample is one scrape of aggregate values; it spans [T0, T1].
type Sample struct {
	Source int                `json:"source"`
	T0     time.Duration      `json:"t0_ns"`
	T1     time.Duration      `json:"t1_ns"`
	Values map[string]float64 `json:"values"` // by role: work, inflight, stopped, done, effects
}

// Gap is a time in which a witness could not see.
type Gap struct {
	Source int           `json:"source"`
	From   time.Duration `json:"from_ns"`
	To     time.Duration `json:"to_ns"` // 0: until the end of the run
	Reason string        `json:"reason"`
}

// Event is one event of a sampled attempt's stream.
type Event struct {
	Ref    Ref           `json:"ref"`
	N      int           `json:"n"` // from 1
	At     time.Duration `json:"at_ns"`
	Offset int64         `json:"offset_bytes"` // of its first byte in the response body
	What   string        `json:"what"`         // progress, message, result, error, comment, other
}

// Dropped counts arrivals of the open model that could not start.
type Dropped struct {
	Count  int    `json:"count"`
	Reason string `json:"reason"`
}

// Canary is one probe on a fresh connection.
type Canary struct {
	At      time.Duration `json:"at_ns"`
	Latency time.Duration `json:"latency_ns"`
	OK      bool          `json:"ok"`
	Error   string        `json:"error,omitempty"`
}

// Driver is mcpflood's own state, once a second.
type Driver struct {
	CPU       float64 `json:"cpu"` // share of the machine's CPUs this process may use, 0 to 1
	Streams   int     `json:"streams"`
	OpenFiles int     `json:"open_files"`
	RSS       int64   `json:"rss_bytes,omitempty"`
	// Trouble names a limit of ours that was met: EMFILE, EADDRNOTAVAIL.
	Trouble string `json:"trouble,omitempty"`
}

// Stage marks the parts of a run: clean, load, drain, settle, closing.
type Stage struct {
	Name string `json:"name"`
}

// Close is the last record of a history that was ended in order.
type Close struct {
	Reason  string `json:"reason"` // duration, calls, interrupted, error
	Records int64  `json:"records"`
	Lost    int64  `json:"lost_records,omitempty"`
}

// Clip cuts a text of others at [MaxText] bytes, never inside a character.
func Clip(s string) string {
	if len(s) <= MaxText {
		return s
	}
	cut := MaxText
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strings.Clone(s[:cut])
}
