package target

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpflood/mcpflood/internal/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait; reaching it fails the test.
const patience = 10 * time.Second

// text is a buffer for the log or the truth that may be read while written.
type text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *text) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *text) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// rig is a target on loopback with its log and truth at hand.
type rig struct {
	t          *testing.T
	s          *Server
	addr       string
	log, truth text
}

func newRig(t *testing.T, cfg Config) *rig {
	t.Helper()
	r := &rig{t: t}
	cfg.Log, cfg.Truth = &r.log, &r.truth
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.s, r.addr = s, ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve() = %v", err)
		}
	})
	return r
}

// until waits for a condition.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("waited in vain for %s; log:\n%s", what, r.log.String())
		}
	}
}

// ended waits for the truth of one call.
func (r *rig) ended(id string) Truth {
	r.t.Helper()
	var found Truth
	r.until("the end of "+id, func() bool {
		for line := range strings.Lines(r.truth.String()) {
			var tr Truth
			if err := json.Unmarshal([]byte(line), &tr); err != nil {
				r.t.Fatalf("bad line of truth %q: %v", line, err)
			}
			if tr.ID == id {
				found = tr
				return true
			}
		}
		return false
	})
	return found
}

// logged waits for n log lines of a call that contain some text.
func (r *rig) logged(id, with string, n int) {
	r.t.Helper()
	r.until(fmt.Sprintf("%d lines %q of %s", n, with, id), func() bool { return r.lines(id, with) >= n })
}

func (r *rig) lines(id, with string) (n int) {
	for line := range strings.Lines(r.log.String()) {
		if strings.Contains(line, with) && strings.Contains(line, " id="+id+" ") {
			n++
		}
	}
	return n
}

// events is what a call's log lines say, in order, without identity.
func (r *rig) events(id string) string {
	var out []string
	for line := range strings.Lines(r.log.String()) {
		what, who, _ := strings.Cut(strings.TrimPrefix(line, toolName+" "), " id=")
		if strings.HasPrefix(who, id+" ") {
			out = append(out, what)
		}
	}
	return strings.Join(out, ", ")
}

// gauge reads one number from /metrics.
func (r *rig) metric(name string) string {
	r.t.Helper()
	c := dial(r.t, r.addr)
	defer c.Close()
	fmt.Fprintf(c, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	resp, body := c.response()
	if resp.StatusCode != 200 {
		r.t.Fatalf("/metrics: %s", resp.Status)
	}
	m := regexp.MustCompile(`(?m)^` + name + `\{tool="build_report"\} (.*)$`).FindStringSubmatch(body)
	if m == nil {
		r.t.Fatalf("no %s in:\n%s", name, body)
	}
	return m[1]
}

// client is one connection.
type client struct {
	net.Conn
	t  *testing.T
	br *bufio.Reader
}

func dial(t *testing.T, addr string) *client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(patience))
	return &client{c, t, bufio.NewReader(c)}
}

// ask is one request; its zero value is a build_report without a token.
type ask struct {
	id, method, token, args, user, meta string
	params                              string // instead of those of a tools/call
	head                                string // further header lines
	chunked                             bool
}

func (a ask) body() string {
	if a.method == "" {
		a.method = mcp.MethodToolsCall
	}
	if a.args == "" {
		a.args = `{"month":"2026-09"}`
	}
	if a.params == "" && a.method == mcp.MethodToolsCall {
		a.params = `"name":"build_report","arguments":` + a.args + `,`
	}
	if a.token != "" {
		a.meta += `,"progressToken":"` + a.token + `"`
	}
	return `{"jsonrpc":"2.0","id":"` + a.id + `","method":"` + a.method + `","params":{` + a.params +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}` + a.meta + `}}}`
}

// send writes the request.
func (c *client) send(a ask) *client {
	c.t.Helper()
	body := a.body()
	method := a.method
	head := "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n" +
		"MCP-Protocol-Version: 2026-07-28\r\n" + a.head
	if method == "" {
		method = mcp.MethodToolsCall
		head += "Mcp-Name: build_report\r\n"
	}
	head += "Mcp-Method: " + method + "\r\n"
	if a.user != "" {
		head += "Authorization: Bearer " + a.user + "\r\n"
	}
	if a.chunked {
		head += "Transfer-Encoding: chunked\r\n\r\n"
		body = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	} else {
		head += fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))
	}
	if _, err := io.WriteString(c, head+body); err != nil {
		c.t.Fatal(err)
	}
	return c
}

// call opens a connection for one request.
func (r *rig) call(a ask) *client { return dial(r.t, r.addr).send(a) }

// response reads all of an answer; a stream that breaks off gives what came.
func (c *client) response() (*http.Response, string) {
	c.t.Helper()
	resp, err := http.ReadResponse(c.br, nil)
	if err != nil {
		c.t.Fatalf("no response: %v", err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp, string(body)
}

// answered reads the messages of an answer, streamed or not.
func (c *client) answered() []mcp.Message {
	c.t.Helper()
	resp, body := c.response()
	var texts []string
	if resp.Header.Get("Content-Type") == "text/event-stream" {
		for line := range strings.Lines(body) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				texts = append(texts, data)
			}
		}
	} else {
		texts = append(texts, body)
	}
	var out []mcp.Message
	for _, s := range texts {
		m, err := mcp.DecodeMessage([]byte(s))
		if err != nil {
			c.t.Fatalf("bad message %q: %v", s, err)
		}
		out = append(out, m)
	}
	return out
}

// quick is a target fast enough for tests and slow enough to be cut.
func quick(faults ...FaultKind) Config {
	c := Config{Steps: 4, StepTime: 40 * time.Millisecond, TailTime: 20 * time.Millisecond, SlotWait: 20 * time.Millisecond}
	for _, k := range faults {
		c.Faults = append(c.Faults, Fault{Kind: k})
	}
	return c
}

// Where and how a client leaves: the phases of a call, as far as this server
// can tell them apart.
type leave struct {
	sent bool // before the first byte; else after the second step
	json bool
}

// cut makes a call, leaves it, and returns what became of it.
func (r *rig) cut(a ask, l leave) Truth {
	r.t.Helper()
	if !l.json && a.token == "" {
		a.token = "p" + a.id
	}
	c := r.call(a)
	if l.sent {
		r.until("the call", func() bool { return r.s.counters.inFlight.Load() > 0 })
	} else {
		r.logged(a.id, "step 2 of", 1)
	}
	c.Close()
	return r.ended(a.id)
}
