package flood

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mcpflood/mcpflood/chaos"
	"github.com/mcpflood/mcpflood/internal/load"
	"github.com/mcpflood/mcpflood/internal/mcp"
	"github.com/mcpflood/mcpflood/internal/metric"
	"github.com/mcpflood/mcpflood/internal/stream"
	"github.com/mcpflood/mcpflood/internal/wire"
)

// Config is everything that decides a run. The zero value of a field means its
// default; Validate reports every problem at once. The tags name the command
// line's flag and its help; [Config.Text] prints what [ParseConfig] reads back.
//
// Durations are given in Go's notation. A field tagged secret never leaves the
// process: Text masks it.
type Config struct {
	URL string `flag:"url"` // positional on the command line

	Tool     string   `flag:"tool" group:"call" usage:"the tool to call"`
	Args     []string `flag:"arg" group:"call" usage:"argument k=v, typed by the tool's inputSchema; {{.Call}} {{.Marker}} {{.Seq}} are filled in per call"`
	ArgsJSON string   `flag:"args-json" group:"call" usage:"all arguments as one JSON object; the same templates are filled in"`
	Headers  []string `flag:"header" group:"call" usage:"HTTP header 'K: V' of every request; {{.Attempt}} too is filled in"`
	Bearer   string   `flag:"bearer" group:"call" secret:"true" usage:"bearer token of every request; never written to any file"`
	Protocol string   `flag:"protocol" group:"call" usage:"protocol revision: auto or 2026-07-28" default:"auto"`
	HTTP     string   `flag:"http" group:"call" usage:"HTTP version: 1.1" default:"1.1"`
	Insecure bool     `flag:"insecure" group:"call" usage:"accept any TLS certificate"`

	Rate       string        `flag:"rate" group:"load" usage:"open model: calls started per second, 50/s, or 300/m"`
	Streams    int           `flag:"streams" group:"load" usage:"closed model: calls held at once (default 10 if no --rate)"`
	Duration   time.Duration `flag:"duration" group:"load" usage:"how long calls are started (default 30s if no --calls)"`
	Calls      int           `flag:"calls" group:"load" usage:"how many calls to start"`
	Ramp       time.Duration `flag:"ramp" group:"load" usage:"time to reach the full rate or number of streams"`
	MaxStreams int           `flag:"max-streams" group:"load" usage:"open model: most calls at once; arrivals beyond it are dropped and counted (default 10000, less if the open-file limit is lower)"`
	Seed       uint64        `flag:"seed" group:"load" usage:"seed of every random decision (default: drawn and printed)"`

	Cuts      []string      `flag:"cut" group:"cut" usage:"STYLE@MOMENT[:SHARE], repeatable; or none (default fin@part(0.1,0.9):50%)"`
	Profile   string        `flag:"profile" group:"cut" usage:"a named mixture of cuts and re-issues: see mcpflood profiles; flags given beside it win"`
	TailDelay time.Duration `flag:"tail-delay" group:"cut" usage:"tail: how long after the last progress event (default half the clean gap to the result)"`

	Reissue int    `flag:"reissue" group:"re-issue" usage:"attempts a lost call may get beyond its first"`
	Backoff string `flag:"backoff" group:"re-issue" usage:"none, fixed(1s) or full-jitter(100ms,5s)" default:"full-jitter(100ms,5s)"`
	// ReissueSource changes the path of a call that was lost.
	ReissueSource bool `flag:"reissue-source" group:"re-issue" usage:"re-issue from another loopback address, as after a change of network"`

	Metrics         string        `flag:"metrics" group:"witness" usage:"URL of the server's Prometheus metrics"`
	Metric          []string      `flag:"metric" group:"witness" usage:"what a metric means: work|inflight|stopped|done|effects=NAME or NAME{label=\"v\"}"`
	MetricsInterval time.Duration `flag:"metrics-interval" group:"witness" usage:"time between scrapes" default:"1s"`
	Log             []string      `flag:"log" group:"witness" usage:"the server's log: a FILE, - for stdin, or exec:COMMAND"`
	LogWork         []string      `flag:"log-work" group:"witness" usage:"pattern of a line for a unit of work; groups (?P<id>) (?P<marker>) (?P<trace>) (?P<step>) (?P<units>) (?P<time>)"`
	LogStop         []string      `flag:"log-stop" group:"witness" usage:"pattern of a line that says a call was cancelled"`
	LogDone         []string      `flag:"log-done" group:"witness" usage:"pattern of a line that says a call ran to its end"`
	LogEffect       []string      `flag:"log-effect" group:"witness" usage:"pattern of a line for a side effect"`

	Clean          int           `flag:"clean" group:"judge" usage:"uncut calls before and after the load that calibrate the judge" default:"3"`
	StopWithin     time.Duration `flag:"stop-within" group:"judge" usage:"how soon work must stop after a hang-up (default 1.5 times the clean gap between two units)"`
	NoticeWithin   time.Duration `flag:"notice-within" group:"judge" usage:"how soon a vanished or stalled client must be noticed (default: no bound)"`
	Watch          time.Duration `flag:"watch" group:"judge" usage:"how long each cut call is watched" default:"15s"`
	Drain          time.Duration `flag:"drain" group:"judge" usage:"how long open calls may go on at the end (default twice the clean median, at most --watch)"`
	Timeout        time.Duration `flag:"timeout" group:"judge" usage:"per attempt (default ten times the clean median, at least 30s)"`
	ConnectTimeout time.Duration `flag:"connect-timeout" group:"judge" usage:"per connection" default:"10s"`
	Strict         bool          `flag:"strict" group:"judge" usage:"notes and warnings fail the run too"`
	Thresholds     []string      `flag:"threshold" group:"judge" usage:"'METRIC: EXPR', for example 'mcp_ran_on: count==0' or 'mcp_time_to_stop: p(99)<1000' (milliseconds)"`

	Prices     []string `flag:"price" group:"price" usage:"UNIT=AMOUNT for step, second, token or call"`
	PriceTable string   `flag:"price-table" group:"price" usage:"JSON file {\"currency\": \"USD\", \"prices\": {\"step\": 0.002}}"`
	Currency   string   `flag:"currency" group:"price" usage:"currency of the prices" default:"USD"`

	AllowHosts   []string `flag:"allow-host" group:"safety" usage:"a host beside loopback that may be flooded; only your own servers"`
	AllowEffects bool     `flag:"allow-effects" group:"safety" usage:"call the tool although it is neither read-only nor idempotent"`

	Dir string `flag:"output" short:"o" group:"out" usage:"run directory (default results/<time>-<id>)"`
}

// NoCuts as the only cut turns cuts off.
const NoCuts = "none"

// Defaults that have no place in a tag.
const (
	DefaultCut        = "fin@part(0.1,0.9):50%"
	defaultStreams    = 10
	defaultDuration   = 30 * time.Second
	defaultMaxStreams = 10000
)

// withDefaults fills in what was left open.
func (c Config) withDefaults() Config {
	c = c.withProfile()
	setDefaults(&c)
	if c.Rate == "" && c.Streams == 0 {
		c.Streams = defaultStreams
	}
	if c.Duration == 0 && c.Calls == 0 {
		c.Duration = defaultDuration
	}
	switch {
	case len(c.Cuts) == 0:
		c.Cuts = []string{DefaultCut}
	case len(c.Cuts) == 1 && c.Cuts[0] == NoCuts:
		c.Cuts = nil
	}
	return c
}

// withProfile fills in what the profile says and no flag does. An unknown
// profile is left to Validate.
func (c Config) withProfile() Config {
	p, err := chaos.FindProfile(c.Profile)
	if err != nil {
		return c
	}
	if len(c.Cuts) == 0 {
		c.Cuts = p.Cuts
	}
	if c.Reissue == 0 {
		c.Reissue = p.Reissue
	}
	if c.Backoff == "" {
		c.Backoff = p.Backoff
	}
	c.ReissueSource = c.ReissueSource || p.NewSource
	return c
}

// plan parses the cuts.
func (c Config) plan() (chaos.Plan, error) {
	p := chaos.Plan{Seed: c.Seed, TailDelay: -1}
	if c.TailDelay > 0 {
		p.TailDelay = c.TailDelay
	}
	var errs []error
	for _, text := range c.Cuts {
		clause, err := chaos.ParseClause(text)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.Clauses = append(p.Clauses, clause)
	}
	return p, errors.Join(append(errs, p.Validate())...)
}

// ParseRate reads "50/s", "300/m", "2/h" or a bare number of calls a second.
func ParseRate(s string) (perSecond float64, err error) {
	num, unit, has := strings.Cut(s, "/")
	v, err := strconv.ParseFloat(num, 64)
	per, ok := map[string]float64{"s": 1, "m": 60, "h": 3600}[unit]
	switch {
	case !has:
		per = 1
	case !ok:
		return 0, fmt.Errorf("bad rate %q: want 50/s, 300/m or 2/h", s)
	}
	perSecond = v / per
	if err != nil || !(perSecond > 0 && perSecond <= load.MaxRate) { // also NaN
		return 0, fmt.Errorf("bad rate %q: want a number above 0 and up to %g a second, like 50/s", s, load.MaxRate)
	}
	return perSecond, nil
}

// Validate reports every problem of the configuration at once. It reads the
// price table, if there is one, and asks nobody.
func (c Config) Validate() error {
	c = c.withDefaults()
	_, plan := c.plan()
	_, backoff := stream.ParseBackoff(c.Backoff)
	_, prices := c.prices()
	return errors.Join(c.validateTarget(), c.validateCall(), c.validateLoad(), prefixed("--cut", plan), prefixed("--backoff", backoff),
		c.validateWitness(), c.validateJudge(), prices)
}

// prefixed puts the flag in front of an error.
func prefixed(flag string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", flag, err)
}

func (c Config) validateTarget() error {
	if c.URL == "" {
		return errors.New("no target: give the URL of the MCP endpoint, http://127.0.0.1:3000/mcp")
	}
	if u, err := url.Parse(c.URL); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("bad target %q: want http://HOST:PORT/PATH or https://…", Redact(c.URL))
	}
	_, err := wire.ParseEndpoint(c.URL)
	return err
}

func (c Config) validateCall() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Tool == "" {
		bad("no tool: give --tool NAME")
	}
	for _, kv := range c.Args {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			bad("bad --arg %q: want name=value", kv)
		}
		errs = append(errs, checkPlaceholders("--arg "+k, v, false))
	}
	errs = append(errs, checkPlaceholders("--args-json", c.ArgsJSON, false))
	if c.ArgsJSON != "" && len(c.Args) > 0 {
		bad("--arg and --args-json exclude each other: put everything into one of them")
	}
	sound := Config{Bearer: c.Bearer}
	for _, h := range c.Headers {
		if !strings.Contains(h, ":") || headerName(h) == "" {
			bad("bad --header %q: want 'Name: value'", headerName(h))
			continue
		}
		sound.Headers = append(sound.Headers, h)
		if strings.EqualFold(headerName(h), "Authorization") && c.Bearer != "" {
			bad("--bearer and --header Authorization exclude each other")
		}
	}
	for _, f := range authHeaders(sound) {
		errs = append(errs, wire.CheckField(wire.Field(f)), checkPlaceholders("--header "+f.Name, f.Value, true))
	}
	if c.Protocol != "auto" && c.Protocol != mcp.Version {
		bad("--protocol %s: this version speaks %s (or auto)", c.Protocol, mcp.Version)
	}
	if c.HTTP != "1.1" {
		bad("--http %s: this version speaks HTTP 1.1", c.HTTP)
	}
	return errors.Join(errs...)
}

func (c Config) validateLoad() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Rate != "" {
		if c.Streams > 0 {
			bad("--rate and --streams exclude each other: --rate starts calls at a pace, --streams holds a number of them")
		}
		_, err := ParseRate(c.Rate)
		errs = append(errs, prefixed("--rate", err))
	}
	for _, f := range c.Fields() {
		switch v := f.Value.Interface().(type) {
		case int:
			if v < 0 {
				bad("--%s %d: want 0 or more", f.Name, v)
			}
		case time.Duration:
			if v < 0 {
				bad("--%s %s: want a positive duration", f.Name, v)
			}
		}
	}
	if most := load.MaxStreams; max(c.Streams, c.MaxStreams) > most {
		bad("--streams and --max-streams: want at most %d", most)
	}
	if c.Duration > 0 && c.Ramp > c.Duration {
		bad("--ramp %s is longer than --duration %s", c.Ramp, c.Duration)
	}
	return errors.Join(errs...)
}

func (c Config) validateWitness() error {
	var errs []error
	patterns := len(c.LogWork) + len(c.LogStop) + len(c.LogDone) + len(c.LogEffect)
	if len(c.Log) > 0 && patterns == 0 {
		errs = append(errs, errors.New("--log without a pattern: add --log-work RE (and --log-stop, --log-done, --log-effect)"))
	}
	if len(c.Log) == 0 && patterns > 0 {
		errs = append(errs, errors.New("--log-work, --log-stop, --log-done and --log-effect need --log FILE, --log - or --log exec:COMMAND"))
	}
	if c.Metrics != "" && len(c.Metric) == 0 {
		errs = append(errs, errors.New("--metrics without a metric: add --metric work=NAME or inflight=NAME"))
	}
	if c.Metrics == "" && len(c.Metric) > 0 {
		errs = append(errs, errors.New("--metric needs --metrics URL"))
	}
	return errors.Join(errs...)
}

func (c Config) validateJudge() error {
	var errs []error
	if c.StopWithin > 0 && c.Watch <= c.StopWithin {
		errs = append(errs, fmt.Errorf("--watch %s is not longer than --stop-within %s", c.Watch, c.StopWithin))
	}
	for _, text := range c.Thresholds {
		_, err := metric.ParseThreshold(text)
		errs = append(errs, prefixed("--threshold", err))
	}
	return errors.Join(errs...)
}
