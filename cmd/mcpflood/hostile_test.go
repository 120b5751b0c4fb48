package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/results"
	"github.com/mcpflood/mcpflood/target"
)

// hostile is a server that behaves until it has served some calls, and then
// answers every second one by a raw function. What is good is served by a
// reference server inside the test.
type hostile struct {
	ln     net.Listener
	target *target.Server
	log    string
	good   chanListener
	honest int // calls served before it turns
	bad    func(net.Conn, string)
	wg     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	calls int
	ids   map[string]bool // of the calls it was bad to
}

// chanListener hands connections to a server.
type chanListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  *sync.Once
	addr  net.Addr
}

func (l chanListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l chanListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l chanListener) Addr() net.Addr { return l.addr }

// unread is a connection whose first bytes were read already.
type unread struct {
	net.Conn
	first io.Reader
}

func (c *unread) Read(p []byte) (int, error) {
	if c.first != nil {
		n, err := c.first.Read(p)
		if n > 0 {
			return n, nil
		}
		c.first = nil
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
	}
	return c.Conn.Read(p)
}

func startHostile(t *testing.T, honest int, bad func(c net.Conn, id string)) *hostile {
	t.Helper()
	h := &hostile{honest: honest, bad: bad, conns: map[net.Conn]struct{}{}, ids: map[string]bool{}, log: filepath.Join(t.TempDir(), "server.log")}
	log, err := os.Create(h.log)
	if err != nil {
		t.Fatal(err)
	}
	if h.target, err = target.New(target.Config{Steps: 10, StepTime: 50 * time.Millisecond, TailTime: 50 * time.Millisecond, Log: log}); err != nil {
		t.Fatal(err)
	}
	if h.ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	h.good = chanListener{make(chan net.Conn), make(chan struct{}), new(sync.Once), h.ln.Addr()}
	h.wg.Go(func() { _ = h.target.Serve(h.good) })
	h.wg.Go(h.accept)
	t.Cleanup(func() {
		h.ln.Close()
		h.mu.Lock()
		for c := range h.conns {
			c.Close()
		}
		h.mu.Unlock()
		if err := h.target.Close(); err != nil {
			t.Error(err)
		}
		h.wg.Wait()
		log.Close()
	})
	return h
}

func (h *hostile) url() string { return "http://" + h.ln.Addr().String() + target.PathMCP }

func (h *hostile) accept() {
	for {
		c, err := h.ln.Accept()
		if err != nil {
			return
		}
		h.mu.Lock()
		h.conns[c] = struct{}{}
		h.mu.Unlock()
		h.wg.Go(func() { h.serve(c) })
	}
}

func (h *hostile) serve(c net.Conn) {
	var seen bytes.Buffer
	req, err := http.ReadRequest(bufio.NewReaderSize(io.TeeReader(c, &seen), 1))
	if err != nil {
		c.Close()
		return
	}
	var body struct{ ID string }
	_ = json.NewDecoder(io.LimitReader(req.Body, req.ContentLength)).Decode(&body)
	_, _ = io.Copy(io.Discard, req.Body)
	if h.turn(req.Header.Get("Mcp-Method"), body.ID) {
		h.bad(c, body.ID)
		c.Close()
		return
	}
	select {
	case h.good.conns <- &unread{c, &seen}:
	case <-h.good.done:
		c.Close()
	}
}

// fromTheStart, as honest, is a server that is bad to every other question from
// the first one on.
const fromTheStart = -1

// turn reports whether this request gets the bad answer.
func (h *hostile) turn(method, id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if method != "tools/call" && h.honest != fromTheStart {
		return false
	}
	h.calls++
	if h.calls <= h.honest || h.calls%2 == 0 {
		return false
	}
	h.ids[id] = true
	return true
}

// again writes s again and again, until the client has left.
func again(c net.Conn, s string) {
	for b := bytes.Repeat([]byte(s), 1+(64<<10)/len(s)); ; {
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

func status(code int, more string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n%s\r\nsorry", code, http.StatusText(code), more)
}

const (
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
	chunkHead  = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	jsonHead   = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
	gigabyte   = 1 << 30
)

func say(s string) func(net.Conn, string) {
	return func(c net.Conn, _ string) {
		_, _ = io.WriteString(c, s)
	}
}

// sayAndWait says something and waits for the client to leave.
func sayAndWait(s string) func(net.Conn, string) {
	return func(c net.Conn, _ string) {
		_, _ = io.WriteString(c, s)
		_, _ = io.Copy(io.Discard, c)
	}
}

// endless says something first, then something else without an end.
func endless(first, then string) func(net.Conn, string) {
	return func(c net.Conn, _ string) {
		_, _ = io.WriteString(c, first)
		again(c, then)
	}
}

// long says something, then a gigabyte made up as it goes, then the end of it.
func long(first, last string) func(net.Conn, string) {
	return func(c net.Conn, _ string) {
		_, _ = io.WriteString(c, first)
		b := bytes.Repeat([]byte("x"), 1<<16)
		for range gigabyte / len(b) {
			if _, err := c.Write(b); err != nil {
				return
			}
		}
		_, _ = io.WriteString(c, last)
	}
}

// misdeed is one way to misbehave and what must come of it.
type misdeed struct {
	name    string
	bad     func(c net.Conn, id string)
	outcome history.Outcome
	err     string // part of the attempt's error
	// exit is the run's code; some misdeeds are a server's right, others are
	// found.
	exit int
	find string
	args []string
}

var misdeeds = []misdeed{
	{name: "garbage", bad: say("\x00\x01\x02SSH-2.0\r\n\r\n"), outcome: history.Refused, err: "not an HTTP response"},
	{name: "garbage in the framing", bad: say(chunkHead + "zzz\r\n"), outcome: history.Refused, err: "where a chunk size must be"},
	{name: "never answers", bad: sayAndWait(""), outcome: history.Cut, err: "no answer within 2s"},
	{name: "a head, then nothing", bad: sayAndWait(streamHead), outcome: history.Cut, err: "no answer within 2s"},
	{name: "closes at once", bad: say(""), outcome: history.Broken, err: "closed the stream before any response", exit: exitFail, find: "spurious-cancel"},
	{name: "resets at once", bad: func(c net.Conn, _ string) { _ = c.(*net.TCPConn).SetLinger(0) }, outcome: history.Broken, err: "reset", exit: exitFail, find: "spurious-cancel"},
	{name: "a line of a gigabyte", bad: long(streamHead+"data: ", "\n\n"), outcome: history.Refused, err: "an event longer than"},
	{name: "lines of a gigabyte", bad: endless(streamHead, "data: x\n"), outcome: history.Refused, err: "an event longer than"},
	{name: "an answer of a gigabyte", bad: long(jsonHead+`{"x":"`, `"}`), outcome: history.Refused, err: "an answer longer than"},
	{name: "an error of a gigabyte", bad: long("HTTP/1.1 500 Oops\r\nContent-Type: text/html\r\n\r\n", ""), outcome: history.Refused, err: "an answer longer than"},
	{name: "a wrong content type", bad: say("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi"), outcome: history.Refused, err: `content type "text/html"`},
	{name: "JSON that is none", bad: say(jsonHead + "\x1b[2Jhi"), outcome: history.Refused, err: "no JSON-RPC answer"},
	{name: "401", bad: say(status(401, "")), outcome: history.Refused, err: "status 401: sorry"},
	{name: "429", bad: say(status(429, "Retry-After: 1\r\n")), outcome: history.Refused, err: "status 429: sorry", args: []string{"--reissue", "1"}},
	{name: "429 for ever", bad: say(status(429, "Retry-After: 999999999\r\n")), outcome: history.Refused, err: "status 429: sorry", args: []string{"--reissue", "1"}},
	{name: "redirect", bad: say(status(307, "Location: http://192.0.2.1/\r\n")), outcome: history.Refused, err: "redirects to"},
	{name: "an endless head", bad: endless("HTTP/1.1 200 OK\r\n", "X-More: yes\r\n"), outcome: history.Refused, err: "its head is over"},
	{name: "endless 1xx", bad: endless("", "HTTP/1.1 103 Early Hints\r\n\r\n"), outcome: history.Refused, err: "not an HTTP response"},
	{name: "an endless chunk size", bad: endless(chunkHead, "0"), outcome: history.Refused, err: "chunk size of over"},
	{name: "an endless chunk extension", bad: endless(chunkHead+"1;", "x"), outcome: history.Refused, err: "chunk-size line of over"},
	{name: "an endless chunk", bad: endless(chunkHead+"ffffffffffff\r\ndata: ", "x"), outcome: history.Refused, err: "an event longer than"},
	{name: "endless trailers", bad: endless(chunkHead+"0\r\n", "X: y\r\n"), outcome: history.Refused, err: "trailers"},
	{name: "endless comments", bad: endless(streamHead, ": still here\n\n"), outcome: history.Cut, err: "no answer within 2s"},
	{name: "endless events", bad: endless(streamHead, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n"), outcome: history.Cut, args: []string{"--cut", "none"}},
	{name: "endless events, cut in every way", bad: endless(streamHead, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n"), outcome: history.Cut,
		args: []string{"--cut", "fin@event(2):25%", "--cut", "stall@event(20):25%", "--cut", "vanish@after(100ms):25%", "--cut", "half-close@event(2):25%"}},
	{name: "endless events of others", bad: endless(streamHead, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"mft-aaaaaaaaaaaaa-1-1\",\"progress\":1}}\n\n"),
		outcome: history.Cut, exit: exitFail, find: "stray-message"},
	{name: "half an event", bad: say(streamHead + "data: {\"jsonrpc\":\"2.0\","), outcome: history.Broken, err: "inside an event", exit: exitFail, find: "spurious-cancel"},
	{name: "less than its length", bad: say("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"), outcome: history.Broken, err: "without a result", exit: exitFail, find: "spurious-cancel"},
	{name: "another's answer", bad: say(streamHead + "data: {\"jsonrpc\":\"2.0\",\"id\":\"mf-aaaaaaaaaaaaa-1-1\",\"result\":{}}\n\n"), outcome: history.Broken, exit: exitFail, find: "wrong-id"},
}

const (
	// hostileLimit is how long a run against a hostile server may take; its load
	// takes about 5 s.
	hostileLimit = 60 * time.Second
	hostileRSS   = 200 << 20
	hostileDisk  = 20 << 20
)

// TestHostile floods servers that turn hostile under load: the run ends in
// bounded time and memory, and every bad answer is a counted outcome.
func TestHostile(t *testing.T) {
	mcpflood(t)
	slots := make(chan struct{}, 4)
	for _, m := range misdeeds {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			m.run(t)
		})
	}
}

func (m misdeed) run(t *testing.T) {
	h := startHostile(t, 10, m.bad)
	begun := time.Now()
	o := h.flood(t, m.args...)
	if took := time.Since(begun); took > hostileLimit {
		t.Errorf("it took %s", took)
	}
	if rss := maxRSS(o.process); rss > hostileRSS {
		t.Errorf("it took %d MB of memory", rss>>20)
	}
	if info, err := os.Stat(results.HistoryPath(o.dir)); err != nil || info.Size() > hostileDisk {
		t.Errorf("the history: %v, %d bytes", err, info.Size())
	}
	if !slices.Contains([]int{exitPass, exitUnknown, exitFail}, o.code) || o.sum == nil {
		t.Fatalf("exit code %d, summary %v\n%s\n%s", o.code, o.sum != nil, o.stdout, tail(o.stderr))
	}
	if m.exit != 0 && o.code != m.exit || m.find != "" && !o.has(m.find) {
		t.Errorf("exit code %d, findings %v, want %d and %s\n%s", o.code, o.findings(history.SeverityNote), m.exit, m.find, o.stdout)
	}
	if m.exit == 0 && o.code == exitFail {
		t.Errorf("what is a server's right is held against it: findings %v\n%s", o.findings(history.SeverityFail), o.stdout)
	}
	for _, s := range []string{o.stdout, o.stderr} {
		if strings.ContainsAny(s, "\x1b\x00") {
			t.Errorf("control characters of the server reach the terminal: %q", s)
		}
	}
	m.check(t, h, o)
}

// flood runs the binary against h; what is cut does not matter here.
func (h *hostile) flood(t *testing.T, args ...string) *outcome {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	all := append([]string{"run", h.url(), "--tool", "build_report", "--arg", "month=2026-09", "-o", dir, "--seed", "7",
		"--streams", "8", "--calls", "40", "--duration", "12s", "--watch", "1s", "--timeout", "2s",
		"--log", h.log, "--log-work", targetWork, "--log-stop", targetStop, "--log-done", targetDone, "--log-effect", targetEffect}, args...)
	if !slices.Contains(all, "--cut") {
		all = append(all, "--cut", "fin@event(2):20%")
	}
	return invoke(t, dir, all...)
}

// check compares the record with what the server did.
func (m misdeed) check(t *testing.T, h *hostile, o *outcome) {
	nonce, ends := readEnds(t, o.dir)
	counts := map[string]int{}
	bad := 0
	for _, e := range ends {
		counts[e.Outcome.String()]++
		if !h.ids[nonce.ID(e.Ref)] || e.Outcome == history.Drained {
			continue
		}
		bad++
		if e.Outcome != m.outcome || !strings.Contains(e.Error, m.err) {
			t.Errorf("attempt %s: %s by %s, error %.200q, want %s with %q", e.Ref, e.Outcome, e.Origin, e.Error, m.outcome, m.err)
		}
		if e.Origin == history.Us && e.Cut == nil {
			t.Errorf("attempt %s: we are blamed for it: %s, %s", e.Ref, e.Outcome, e.Error)
		}
	}
	t.Logf("exit code %d, findings %v, outcomes %v, %d of them bad, %d MB", o.code, o.findings(history.SeverityNote), counts, bad, maxRSS(o.process)>>20)
	if bad < 5 {
		t.Errorf("only %d attempts met the bad answer", bad)
	}
	load := 0
	for _, e := range ends {
		if e.Ref.Role == history.Load {
			load++
		}
	}
	if load != o.sum.Counts.Attempts {
		t.Errorf("%d attempts counted, %d ended", o.sum.Counts.Attempts, load)
	}
	if again := invoke(t, "", "check", o.dir); again.code != o.code {
		t.Errorf("check: exit code %d, want %d", again.code, o.code)
	}
}

func readEnds(t *testing.T, dir string) (nonce history.Nonce, ends []history.End) {
	t.Helper()
	r, err := history.Open(results.HistoryPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nonce, ends
		}
		if err != nil {
			t.Fatal(err)
		}
		if rec.Run != nil {
			nonce = rec.Run.Nonce
		}
		if rec.End != nil {
			ends = append(ends, *rec.End)
		}
	}
}

// maxRSS is the most memory a process has held, in bytes.
func maxRSS(p *os.ProcessState) int64 {
	u, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10
}

// TestHostileFromTheStart holds what a run says when nothing can be made of the
// server before the load.
func TestHostileFromTheStart(t *testing.T) {
	mcpflood(t)
	answer := func(code int, body string) func(net.Conn, string) {
		return func(c net.Conn, id string) {
			body := strings.ReplaceAll(body, "{id}", id)
			fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", code, http.StatusText(code), len(body), body)
		}
	}
	for _, tt := range []struct {
		name string
		bad  func(net.Conn, string)
		args []string
		code int
		want string
	}{
		{"garbage", say("SSH-2.0-OpenSSH\r\n"), nil, exitUsage, "no MCP server answers at"},
		{"silence", sayAndWait(""), []string{"--timeout", "300ms"}, exitUnreachable, "no answer within 300ms"},
		{"a head, then silence", sayAndWait(jsonHead), []string{"--timeout", "300ms"}, exitUnreachable, "no answer within 300ms"},
		{"closes at once", say(""), nil, exitUnreachable, "no answer"},
		{"401", say(status(401, "")), nil, exitUsage, "--bearer"},
		{"401 with escapes", answer(401, `{"jsonrpc":"2.0","id":"{id}","error":{"code":1,"message":"\u001b[2Jgo away"}}`), nil, exitUsage, `\x1b[2Jgo away: give the server's token with --bearer`},
		{"legacy only", answer(400, `{"jsonrpc":"2.0","id":"{id}","error":{"code":-32000,"message":"Bad Request: Server not initialized"}}`), nil, exitUsage, "speaks an older revision of MCP only"},
		{"HTML", say("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi"), nil, exitUsage, "not an MCP answer"},
		{"404", say(status(404, "")), nil, exitUsage, "no MCP endpoint at this path"},
		{"redirect", say(status(308, "Location: http://127.0.0.1:1/mcp\r\n")), nil, exitUsage, `to "http://127.0.0.1:1/mcp": give the final URL`},
		{"an endless head", endless("HTTP/1.1 200 OK\r\n", "X-More: yes\r\n"), nil, exitUsage, "its head is over"},
		{"an endless body", endless(jsonHead, "["), nil, exitUsage, "an answer of more than"},
		{"an endless event", endless(streamHead+"data: ", "x"), nil, exitUsage, "an event of more than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := startHostile(t, fromTheStart, tt.bad)
			dir := filepath.Join(t.TempDir(), "run")
			begun := time.Now()
			o := invoke(t, dir, append([]string{"run", h.url(), "--tool", "build_report", "--arg", "month=2026-09", "-o", dir}, tt.args...)...)
			if o.code != tt.code || !strings.Contains(o.stderr, tt.want) {
				t.Errorf("exit code %d, stderr %q, want %d and %q", o.code, o.stderr, tt.code, tt.want)
			}
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
			if strings.Contains(o.stderr, "\x1b") || strings.Contains(o.stderr, "goroutine ") {
				t.Errorf("stderr %q", o.stderr)
			}
			if rss := maxRSS(o.process); rss > 100<<20 {
				t.Errorf("it took %d MB of memory", rss>>20)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("a run directory was made although nothing was run")
			}
		})
	}
}

// TestServerDies holds that a server that is gone under load is a finding, not
// an unreachable target.
func TestServerDies(t *testing.T) {
	mcpflood(t)
	var h *hostile
	h = startHostile(t, 30, func(net.Conn, string) { h.ln.Close() })
	o := h.flood(t, "--cut", "fin@event(2):50%", "--calls", "100")
	o.want(t, exitFail)
	if !o.has("server-down") {
		t.Errorf("no finding server-down; findings %v\n%s", o.findings(history.SeverityNote), o.stdout)
	}
	_, ends := readEnds(t, o.dir)
	failed := 0
	for _, e := range ends {
		if e.Outcome == history.Failed {
			// Reset: it was queued at the listener as that closed.
			if failed++; e.Origin == history.Us || !strings.Contains(e.Error, "refused") && !strings.Contains(e.Error, "reset") {
				t.Errorf("attempt %s: failed by %s: %s", e.Ref, e.Origin, e.Error)
			}
		}
	}
	if failed < 10 {
		t.Errorf("%d attempts failed", failed)
	}
}

func TestClosedPort(t *testing.T) {
	mcpflood(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + ln.Addr().String() + "/mcp"
	ln.Close()
	o := invoke(t, "", "run", url, "--tool", "build_report")
	if o.code != exitUnreachable || !strings.Contains(o.stderr, "connection refused") || !strings.Contains(o.stderr, url) {
		t.Errorf("exit code %d, stderr %q, want %d, the URL and that the connection was refused", o.code, o.stderr, exitUnreachable)
	}
}

// TestHostileCleanCalls holds that a server whose tool cannot be called ends the
// run before its load, with the server's words.
func TestHostileCleanCalls(t *testing.T) {
	mcpflood(t)
	for _, tt := range []struct {
		name string
		bad  func(net.Conn, string)
		want string
	}{
		{"401", say(status(401, "")), "--bearer"},
		{"garbage", say("hello\r\n"), "not an HTTP response"},
		{"never answers", sayAndWait(""), "no answer within 1s"},
		{"closes", say(""), "closed the stream before any response"},
		{"500", say("HTTP/1.1 500 Oops\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n\r\n\x1b[2Joh!"), `status 500: \x1b[2Joh!`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := startHostile(t, 0, tt.bad)
			dir := filepath.Join(t.TempDir(), "run")
			o := invoke(t, dir, "run", h.url(), "--tool", "build_report", "--arg", "month=2026-09", "-o", dir, "--timeout", "1s")
			if o.code != exitUsage || !strings.Contains(o.stderr, tt.want) || !strings.Contains(o.stderr, "clean calls") && tt.name != "401" {
				t.Errorf("exit code %d, stderr %q, want %d and %q", o.code, o.stderr, exitUsage, tt.want)
			}
			if strings.Contains(o.stderr, "\x1b") {
				t.Errorf("stderr %q", o.stderr)
			}
		})
	}
}
