// Command go is an MCP server made with the official Go SDK, as its users
// make one: stateless streamable HTTP at /mcp, one slow tool, a log and
// Prometheus metrics at /metrics. The end-to-end tests of mcpflood flood it.
//
// The SDK runs a tool to its end when the client hangs up. With --propagate
// the server sets StreamableHTTPOptions.PropagateRequestCancellation, and the
// tool stops.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// readHeaderTimeout ends connections that never complete a request head.
const readHeaderTimeout = 10 * time.Second

type config struct {
	addr      string
	portFile  string
	logFile   string
	propagate bool
	untilEOF  bool
	report    reportConfig
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := parseFlags(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(ctx, cfg)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func parseFlags(args []string) (config, error) {
	var cfg config
	fs := flag.NewFlagSet("peer", flag.ContinueOnError)
	fs.StringVar(&cfg.addr, "addr", "127.0.0.1:0", "loopback `address` to listen on; port 0 picks a free one")
	fs.StringVar(&cfg.portFile, "port-file", "", "write host:port to this `file` once listening")
	fs.StringVar(&cfg.logFile, "log", "", "append the log to this `file` (default standard output)")
	fs.BoolVar(&cfg.propagate, "propagate", false, "set PropagateRequestCancellation: a hang-up cancels the tool")
	fs.BoolVar(&cfg.untilEOF, "until-eof", false, "end when standard input ends, so that no peer outlives a test")
	fs.IntVar(&cfg.report.steps, "steps", 10, "steps of a report")
	fs.DurationVar(&cfg.report.stepTime, "step-time", time.Second, "time of a step")
	fs.DurationVar(&cfg.report.tailTime, "tail-time", 300*time.Millisecond, "time between the effect and the result")
	if err := fs.Parse(args); err != nil {
		return config{}, err
	}
	if fs.NArg() > 0 {
		return config{}, fmt.Errorf("unexpected argument %q: this server takes flags only", fs.Arg(0))
	}
	if cfg.report.steps < 1 || cfg.report.stepTime < 0 || cfg.report.tailTime < 0 {
		return config{}, errors.New("--steps must be at least 1 and times not negative")
	}
	return cfg, nil
}

// run serves until ctx is done.
func run(ctx context.Context, cfg config) error {
	ln, err := listenLoopback(cfg.addr)
	if err != nil {
		return err
	}
	defer ln.Close()
	log, err := openLog(cfg.logFile)
	if err != nil {
		return err
	}
	defer log.Close()
	if cfg.untilEOF {
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		defer stop()
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}

	srv := &http.Server{Handler: newHandler(cfg, log), ReadHeaderTimeout: readHeaderTimeout}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	if err := announce(cfg.portFile, ln.Addr().String()); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return srv.Close()
	}
}

func newHandler(cfg config, log io.Writer) http.Handler {
	report := newReport(cfg.report, log)
	server := mcp.NewServer(&mcp.Implementation{Name: "mcpflood-peer-go", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{
		Name:        toolName,
		Description: "Builds the report of a month step by step and e-mails it to the team, once per idempotency key.",
		Annotations: &mcp.ToolAnnotations{IdempotentHint: true},
	}, report.call)

	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{
			Stateless:                    true,
			PropagateRequestCancellation: cfg.propagate,
		}))
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = io.WriteString(w, report.metrics())
	})
	return mux
}

// listenLoopback refuses every address that other machines could reach.
func listenLoopback(addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	if tcp, ok := ln.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		ln.Close()
		return nil, fmt.Errorf("--addr %s is not a loopback address: use 127.0.0.1:PORT or [::1]:PORT", addr)
	}
	return ln, nil
}

// openLog opens path for appending, or standard output if path is empty.
func openLog(path string) (io.WriteCloser, error) {
	if path == "" {
		return os.Stdout, nil
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}

// announce tells where the server listens. The port file appears whole: it is
// written under another name and renamed.
func announce(portFile, addr string) error {
	fmt.Fprintf(os.Stderr, "peer: listening on http://%s/mcp, metrics on http://%s/metrics\n", addr, addr)
	if portFile == "" {
		return nil
	}
	tmp := filepath.Join(filepath.Dir(portFile), "."+filepath.Base(portFile)+".tmp")
	if err := os.WriteFile(tmp, []byte(addr), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, portFile)
}
