package target

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpflood/mcpflood/internal/mcp"
)

// The paths a target serves; all others are 404.
const (
	PathMCP     = "/mcp"
	PathMetrics = "/metrics"
)

const (
	// maxKeys is how many idempotency keys are remembered; when it is reached
	// the oldest is forgotten, and its e-mail would be sent again.
	maxKeys = 200_000
	// maxFirsts is for how many calls wrong-id remembers the first request.
	maxFirsts = 100_000
	// headerTimeout bounds how long a client may take to send a request head.
	headerTimeout = 10 * time.Second
	// idleTimeout ends connections between requests.
	idleTimeout = 2 * time.Minute
	maxHeader   = 64 << 10
)

// Server is a target. Its methods may be called concurrently.
type Server struct {
	cfg    Config
	script script
	shares shares
	tools  []mcp.Tool
	info   json.RawMessage // serverInfo

	log      logger
	truth    *chronicle
	counters counters
	live     live
	mailed   *memory[digest, struct{}]
	firsts   *memory[digest, mcp.ID]
	leaked   atomic.Int64
	bricked  atomic.Bool

	http *http.Server
	done chan struct{} // closed when the target closes
	mu   sync.Mutex    // guards closing, and adding to jobs against it
	jobs sync.WaitGroup

	closing bool
}

// New makes a target from settings that [Config.Validate] accepts.
func New(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	s := &Server{
		cfg:    cfg,
		script: script{steps: cfg.Steps, stepTime: cfg.StepTime, tailTime: cfg.TailTime, stopDelay: cfg.StopDelay},
		shares: sharesOf(cfg.Faults),
		tools:  toolList(cfg.Fillers),
		info:   serverInfo(cfg.Version),
		log:    logger{w: cfg.Log, block: cfg.LogBuffer},
		mailed: newMemory[digest, struct{}](maxKeys),
		firsts: newMemory[digest, mcp.ID](maxFirsts),
		done:   make(chan struct{}),
	}
	if cfg.Truth != nil {
		s.truth = &chronicle{w: cfg.Truth}
	}
	s.http = &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
	}
	return s, nil
}

// Handler serves [PathMCP] and [PathMetrics]. To end a call without a response
// it panics with [http.ErrAbortHandler], as net/http wants it.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case PathMCP:
			s.serveMCP(w, r)
		case PathMetrics:
			w.Header().Set("Content-Type", metricsType)
			_ = s.counters.write(w, toolName) // a scraper that left is no error
		default:
			http.NotFound(w, r)
		}
	})
}

// Serve takes connections from ln until Close; then it returns nil. It may run
// for several listeners at once. Serve closes ln.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close ends the listeners, the connections and the calls under way (which log
// nothing more: no client of theirs has hung up), waits for them, and writes
// what the log holds back. It returns the first error of log or truth file.
func (s *Server) Close() error {
	s.mu.Lock()
	if !s.closing {
		s.closing = true
		close(s.done)
	}
	s.mu.Unlock()
	err := s.http.Close()
	s.jobs.Wait()
	return errors.Join(err, s.log.close(), s.truth.close())
}

// begin admits a call unless the target is closing; the caller ends it with
// jobs.Done.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.jobs.Add(1)
	}
	return !s.closing
}

// meddles reports whether a fault makes calls meddle with each other.
func (s *Server) meddles() bool { return s.shares[CrossTalk] > 0 || s.kicks() }

// kicks reports whether a fault ends calls whose clients are there.
func (s *Server) kicks() bool { return s.shares[Spurious] > 0 || s.shares[CancelAny] > 0 }

// slot waits for a slot that no cancelled call has kept. The answer is empty,
// or how the call ends because none is left.
func (s *Server) slot(ctx context.Context) End {
	if s.shares[SlotLeak] == 0 || s.leaked.Load() < int64(s.cfg.Slots) {
		return ""
	}
	timer := time.NewTimer(s.cfg.SlotWait)
	defer timer.Stop()
	select {
	case <-s.done:
		return EndShutdown
	case <-ctx.Done():
		return EndCancelled
	case <-timer.C: // kept slots never come back
		return EndRefused
	}
}
