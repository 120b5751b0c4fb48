package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpflood/mcpflood/chaos"
	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/drive"
	"github.com/mcpflood/mcpflood/internal/mcp"
	"github.com/mcpflood/mcpflood/internal/stream"
	"github.com/mcpflood/mcpflood/internal/wire"
)

// cutWithin is the span of the random cut moments, after settling.
const (
	settleTime = 3 * time.Second
	cutWithin  = 5 * time.Second
)

// client is one kind of client under measurement.
type client interface {
	hold(n int, d time.Duration) error // prints its RSS in bytes
	cut(n int) error                   // prints lateness p50, p99, p99.9 in µs
}

func newClient(name, url string) (client, error) {
	if name == "net/http" {
		return &plain{url: url}, nil
	}
	return &ours{url: url}, nil
}

func body(nonce history.Nonce, ref history.Ref) mcp.Call {
	return mcp.Call{ID: mcp.StringID(nonce.ID(ref)), Method: mcp.MethodToolsCall, Name: "build_report",
		Params: mcp.ToolCall("build_report", json.RawMessage(`{"month":"2026-09"}`)), Meta: mcp.Meta{ProgressToken: nonce.Token(ref)}}
}

// ours is mcpflood's driver, with its history on.
type ours struct{ url string }

func (o *ours) caller(plan chaos.Plan, record history.Appender, clock history.Clock, alarm *drive.Alarm) (*drive.Caller, error) {
	endpoint, err := wire.ParseEndpoint(o.url)
	if err != nil {
		return nil, err
	}
	dialer, err := wire.NewDialer(wire.DialConfig{})
	if err != nil {
		return nil, err
	}
	nonce := history.NewNonce()
	return drive.NewCaller(drive.Config{Clock: clock, History: record, Dialer: dialer, Endpoint: endpoint, Alarm: alarm, Plan: plan,
		Request: func(ask drive.Ask) ([]byte, error) {
			c := body(nonce, ask.Ref)
			return wire.AppendRequest(nil, endpoint, c.Headers(), c.Body())
		},
		Stream: stream.Config{Nonce: nonce, History: record, Timeout: time.Hour},
	}), nil
}

func (o *ours) hold(n int, d time.Duration) error {
	dir, err := os.MkdirTemp("", "mcpflood-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	clock := history.NewClock()
	w, err := history.Create(filepath.Join(dir, "history.jsonl.zst"), clock)
	if err != nil {
		return err
	}
	alarm, err := drive.NewAlarm(clock)
	if err != nil {
		return err
	}
	c, err := o.caller(chaos.Plan{}, w, clock, alarm)
	if err != nil {
		return err
	}
	for i := range n {
		go c.Call(history.Ref{Call: uint64(i + 1)}, clock.Now())
	}
	if err := settle(func() int { return int(c.Live().Open.Load()) }, n); err != nil {
		return err
	}
	time.Sleep(d)
	if open := int(c.Live().Open.Load()); open != n {
		return fmt.Errorf("%d of %d streams are left", open, n)
	}
	return printRSS()
}

// lastCuts keeps the ends in memory: they are what cut measures.
type lastCuts struct {
	mu   sync.Mutex
	late []time.Duration
}

func (l *lastCuts) Append(r history.Record) {
	if r.End == nil || r.End.Cut == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = append(l.late, r.End.Cut.C0-r.End.Cut.Due)
}

func (o *ours) cut(n int) error {
	plan, err := chaos.ParsePlan(fmt.Sprintf("seed=%d reset@uniform(%s,%s)", rand.Uint32(), settleTime, settleTime+cutWithin))
	if err != nil {
		return err
	}
	clock := history.NewClock()
	alarm, err := drive.NewAlarm(clock)
	if err != nil {
		return err
	}
	var ends lastCuts
	c, err := o.caller(plan, &ends, clock, alarm)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { c.Call(history.Ref{Call: uint64(i + 1)}, clock.Now()) })
	}
	wg.Wait()
	return printLate(ends.late, n)
}

// plain is what most people write: net/http and a Scanner.
type plain struct {
	url  string
	open atomic.Int64
}

func (p *plain) stream(ctx context.Context, client *http.Client, i int) error {
	call := body(history.Nonce{}, history.Ref{Call: uint64(i + 1), Attempt: 1})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(call.Body()))
	if err != nil {
		return err
	}
	for _, f := range call.Headers() {
		req.Header.Set(f.Name, f.Value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	p.open.Add(1)
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
	}
	return lines.Err()
}

func (p *plain) client() *http.Client { return &http.Client{Transport: &http.Transport{}} }

func (p *plain) hold(n int, d time.Duration) error {
	client := p.client()
	slots := make(chan struct{}, 256)
	for i := range n {
		go func() {
			slots <- struct{}{}
			time.AfterFunc(time.Second, func() { <-slots })
			if err := p.stream(context.Background(), client, i); err != nil {
				fmt.Fprintln(os.Stderr, "bench:", err)
			}
		}()
	}
	if err := settle(func() int { return int(p.open.Load()) }, n); err != nil {
		return err
	}
	time.Sleep(d)
	return printRSS()
}

func (p *plain) cut(n int) error {
	client := p.client()
	late := make([]time.Duration, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			at := settleTime + rand.N(cutWithin)
			due := time.Now().Add(at)
			time.AfterFunc(at, func() {
				late[i] = time.Since(due)
				cancel()
			})
			_ = p.stream(ctx, client, i) // ends by the cancel
		})
	}
	wg.Wait()
	return printLate(late, n)
}

// settleLimit bounds how long opening the streams may take.
const settleLimit = 2 * time.Minute

func settle(open func() int, n int) error {
	limit := time.Now().Add(settleLimit)
	for open() < n {
		if time.Now().After(limit) {
			return fmt.Errorf("only %d of %d streams opened", open(), n)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

func printRSS() error {
	runtime.GC()
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return fmt.Errorf("memory is read from /proc, which this system does not have: %w", err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		return err
	}
	fmt.Println(pages * os.Getpagesize())
	return nil
}

func printLate(late []time.Duration, n int) error {
	if len(late) != n {
		return fmt.Errorf("%d of %d cuts were made", len(late), n)
	}
	slices.Sort(late)
	at := func(q float64) float64 { return float64(late[min(n-1, int(q*float64(n)))].Nanoseconds()) / 1e3 }
	fmt.Println(at(0.50), at(0.99), at(0.999))
	return nil
}
