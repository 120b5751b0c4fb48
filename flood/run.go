package flood

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpflood/mcpflood/chaos"
	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/drive"
	"github.com/mcpflood/mcpflood/internal/mcp"
	"github.com/mcpflood/mcpflood/internal/probe"
	"github.com/mcpflood/mcpflood/internal/stream"
	"github.com/mcpflood/mcpflood/internal/wire"
	"github.com/mcpflood/mcpflood/results"
)

// Hooks are how a run talks to whoever started it. All are optional; they are
// called from one goroutine at a time.
type Hooks struct {
	Stdin    io.Reader      // for --log -
	Notice   func(string)   // one line for people
	Progress func(Snapshot) // once a second
}

// Outcome is a finished run.
type Outcome struct {
	Dir         string
	Summary     *results.Summary
	Interrupted bool
}

// run is one run under way.
type run struct {
	cfg   Config
	hooks Hooks

	id       string
	seed     uint64
	clock    history.Clock
	nonce    history.Nonce
	plan     chaos.Plan
	history  *history.Writer
	manifest results.Manifest

	endpoint wire.Endpoint
	dialer   *wire.Dialer
	redialer *wire.Dialer // for re-issues
	alarm    *drive.Alarm
	client   *probe.Client
	server   probe.Server
	tool     mcp.Tool
	requests *requests
	eyes     []*eye
	budget   history.Budget

	direct               Director // nil: the load is the configuration's
	progress             *progress
	dropped, droppedKept atomic.Int64 // arrivals that could not start: not yet, and already in the record
}

// Run carries a configuration out and judges the result. The first end of ctx
// stops new calls; everything begun is settled and written all the same. An
// error means that there is no result: see the Err variables for the kinds.
func Run(ctx context.Context, cfg Config, hooks Hooks) (*Outcome, error) {
	return RunDirected(ctx, cfg, hooks, nil)
}

// RunDirected is Run with a load that direct makes call by call; rates, streams
// and cuts of the configuration do not count then.
func RunDirected(ctx context.Context, cfg Config, hooks Hooks, direct Director) (*Outcome, error) {
	if direct != nil {
		cfg.Cuts = []string{NoCuts}
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r, err := prepare(cfg.withDefaults(), hooks)
	if err != nil {
		return nil, err
	}
	r.direct = direct
	defer r.alarm.Close()
	if err := r.meet(ctx); err != nil {
		return nil, err
	}
	if err := r.open(); err != nil {
		return nil, err
	}
	reason, err := r.calls(ctx)
	if cerr := r.history.Close(reason); cerr != nil && err == nil {
		err = fmt.Errorf("%w: the record of the run is incomplete, so nothing is judged; free space, or choose another -o", cerr)
	}
	if err != nil {
		return nil, err
	}
	summary, err := results.Judge(r.cfg.Dir, results.Options{})
	if err != nil {
		return nil, err
	}
	return &Outcome{Dir: r.cfg.Dir, Summary: summary, Interrupted: reason == reasonInterrupted}, nil
}

const reasonInterrupted = "interrupted"

func prepare(cfg Config, hooks Hooks) (*run, error) {
	if hooks.Notice == nil {
		hooks.Notice = func(string) {}
	}
	r := &run{cfg: cfg, hooks: hooks, seed: cfg.Seed, nonce: history.NewNonce()}
	for r.seed == 0 {
		r.seed = rand.Uint64() >> 32 // short enough to type
	}
	r.cfg.Seed = r.seed
	var err error
	if r.plan, err = r.cfg.plan(); err != nil {
		return nil, err
	}
	if r.endpoint, err = wire.ParseEndpoint(cfg.URL); err != nil {
		return nil, err
	}
	if r.dialer, err = r.newDialer(netip.Addr{}); err != nil {
		return nil, err
	}
	r.redialer = r.dialer
	if r.cfg.ReissueSource {
		if r.redialer, err = r.newDialer(otherPath); err != nil {
			return nil, err
		}
	}
	r.clock = history.NewClock()
	r.id = r.nonce.String()[:6]
	if r.cfg.Dir == "" {
		r.cfg.Dir = results.DefaultDir(r.clock.Started(), r.id)
	}
	if r.alarm, err = drive.NewAlarm(r.clock); err != nil {
		return nil, err
	}
	r.client = &probe.Client{Dialer: r.dialer, Endpoint: r.endpoint, Headers: r.plainHeaders(), Nonce: r.nonce, Timeout: cfg.Timeout}
	return r, nil
}

// otherPath is where a client that has changed its network calls from.
var otherPath = netip.AddrFrom4([4]byte{127, 0, 0, 2})

// newDialer holds the safety rule: only loopback, unless a host was allowed by
// name.
func (r *run) newDialer(from netip.Addr) (*wire.Dialer, error) {
	conf := wire.DialConfig{Local: from, Timeout: r.cfg.ConnectTimeout, Insecure: r.cfg.Insecure, LoopbackOnly: true}
	for _, host := range r.cfg.AllowHosts {
		if strings.EqualFold(host, r.endpoint.Host) {
			conf.LoopbackOnly = false
		}
	}
	return wire.NewDialer(conf)
}

// plainHeaders are the user's headers for requests beside the load: templates
// are filled in as for a call 0.
func (r *run) plainHeaders() []mcp.Field {
	out := authHeaders(r.cfg)
	for i := range out {
		out[i].Value = placeholder.ReplaceAllString(out[i].Value, "0")
	}
	return out
}

// meet asks the server what it is and checks that the call can be made.
func (r *run) meet(ctx context.Context) error {
	if r.dialerIsLocal() {
		if ok, err := wire.Loopback(ctx, r.endpoint.Host); err == nil && !ok {
			return fmt.Errorf("%s is not a loopback address: only flood servers that are yours; then add --allow-host %s", r.endpoint.Host, r.endpoint.Host)
		}
	}
	var err error
	if r.server, err = r.client.Discover(ctx); err != nil {
		return r.explain(ctx, err)
	}
	if r.tool, err = r.client.Tool(ctx, r.cfg.Tool, r.notice); err != nil {
		return r.explain(ctx, err)
	}
	if !r.cfg.AllowEffects && !r.tool.Annotations.Repeatable() {
		return fmt.Errorf("tool %s says neither that it is read-only nor that it is idempotent: flooding it may do real things many times; if that is fine here, add --allow-effects", r.tool.Name)
	}
	r.requests, err = newRequests(r.cfg, r.nonce, r.endpoint, r.tool)
	return err
}

func (r *run) dialerIsLocal() bool {
	for _, host := range r.cfg.AllowHosts {
		if strings.EqualFold(host, r.endpoint.Host) {
			return false
		}
	}
	return true
}

// explain sorts an error of discovery into its kind.
func (r *run) explain(ctx context.Context, err error) error {
	var status *probe.StatusError
	switch {
	case ctx.Err() != nil:
		return &kindError{ErrInterrupted, "interrupted before the load; nothing was run"}
	case errors.As(err, &status) && (status.Status == 401 || status.Status == 403):
		return fmt.Errorf("%w: give the server's token with --bearer TOKEN", err)
	case errors.Is(err, probe.ErrNoAnswer):
		return &kindError{ErrUnreachable, fmt.Sprintf("%s: %v", r.endpoint, err)}
	}
	return err
}

func (r *run) notice(format string, args ...any) { r.hooks.Notice(fmt.Sprintf(format, args...)) }

// open makes the run directory and begins the history.
func (r *run) open() error {
	if err := results.Prepare(r.cfg.Dir); err != nil {
		return err
	}
	var err error
	if r.history, err = history.Create(results.HistoryPath(r.cfg.Dir), r.clock); err != nil {
		return err
	}
	command := r.cfg.Command()
	r.manifest = results.Manifest{
		ID: r.id, Seed: r.seed, Nonce: r.nonce, Started: r.clock.Started(), Command: command,
		Config: strings.Split(strings.TrimSpace(r.cfg.Text()), "\n"), Version: Version(), Go: runtime.Version(),
		Host:    results.Host{CPUs: runtime.GOMAXPROCS(0), OS: runtime.GOOS + "/" + runtime.GOARCH},
		Targets: []string{r.endpoint.String()}, HTTP: r.cfg.HTTP, Protocol: mcp.Version,
		Era:        results.Era{Versions: r.server.Versions, Server: r.server.Name},
		Thresholds: r.cfg.Thresholds, Strict: r.cfg.Strict,
	}
	if r.manifest.Prices, err = r.cfg.prices(); err != nil {
		return err
	}
	r.history.Append(history.Record{Run: &history.Run{
		Schema: history.Schema, ID: r.id, Nonce: r.nonce, Seed: r.seed, Started: r.clock.Started(), Version: Version(),
		Targets: r.manifest.Targets, Tool: r.tool.Name, Protocol: mcp.Version, HTTP: r.cfg.HTTP, Cuts: r.plan.Texts(),
		Profile: r.cfg.Profile, Clean: r.cfg.Clean, Watch: r.cfg.Watch, Notice: r.cfg.NoticeWithin, Streams: r.cfg.Streams,
	}})
	return results.WriteManifest(r.cfg.Dir, r.manifest)
}

// calls is everything between the first witness and the last: it returns why
// the run ended.
func (r *run) calls(ctx context.Context) (reason string, err error) {
	reason = "error"
	// Witnesses and the canary outlive an interrupt: what was begun is settled.
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if err := r.openEyes(inner); err != nil {
		return reason, err
	}
	defer r.closeEyes()
	r.progress = r.newProgress()
	defer r.progress.stop()

	if err := r.calibrate(ctx); err != nil {
		return reason, err
	}
	if err := r.checkFit(); err != nil {
		return reason, err
	}
	// A record that cannot be written ends the load: nothing could be judged.
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	sampler := r.startSampler(giveUp)
	defer sampler.stop()
	canary := r.startCanary(inner)
	defer canary()
	return r.load(ctx, inner), nil
}

// caller makes a Caller for one part of the run. Only load calls are issued
// again: the others measure and confirm, and a server's Retry-After must not
// hold up the run.
func (r *run) caller(role history.Role, timeout time.Duration) *drive.Caller {
	again := stream.Reissue{}
	if role == history.Load {
		again.Max = r.cfg.Reissue
		again.Backoff, _ = stream.ParseBackoff(r.cfg.Backoff) // validated
	}
	return drive.NewCaller(drive.Config{
		Clock: r.clock, History: r.history, Dialer: r.dialer, Redialer: r.redialer, Endpoint: r.endpoint, Alarm: r.alarm,
		Request: r.requests.bytes, Signal: r.requests.signal, Plan: r.plan, Clean: r.clean(),
		Reissue: again,
		Stream:  stream.Config{Nonce: r.nonce, History: r.history, Timeout: timeout, Hold: r.cfg.Watch + r.lag()},
	})
}

func (r *run) clean() chaos.Clean {
	return chaos.Clean{Median: r.budget.CleanMedian, TailGap: r.budget.TailGap, Events: r.budget.Events}
}

func (r *run) stage(name string) {
	r.history.Append(history.Record{Stage: &history.Stage{Name: name}})
	r.progress.stage(name)
}

// droppedTotal is for the live view: what is not yet in the record included.
func (r *run) droppedTotal() int64 { return r.dropped.Load() + r.droppedKept.Load() }
