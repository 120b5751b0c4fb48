package probe

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/mcp"
	"github.com/mcpflood/mcpflood/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// question is what a server was asked.
type question struct {
	id, method string
	cursor     string
	header     http.Header
}

// server answers every connection by a raw function: it writes what it likes
// and closes by returning.
type server struct {
	t      *testing.T
	ln     net.Listener
	answer func(c net.Conn, q question)
	done   sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func serve(t *testing.T, answer func(c net.Conn, q question)) *server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, ln: ln, answer: answer, conns: map[net.Conn]struct{}{}}
	s.done.Go(s.accept)
	t.Cleanup(s.close)
	return s
}

func (s *server) accept() {
	for {
		c, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[c] = struct{}{}
		s.mu.Unlock()
		s.done.Go(func() {
			defer c.Close()
			if q, err := ask(c); err == nil {
				s.answer(c, q)
			}
		})
	}
}

func (s *server) close() {
	s.ln.Close()
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.done.Wait()
}

// ask reads one request.
func ask(c net.Conn) (question, error) {
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return question{}, err
	}
	var body struct {
		ID     string
		Method string
		Params struct{ Cursor string }
	}
	err = json.NewDecoder(req.Body).Decode(&body)
	return question{body.ID, body.Method, body.Params.Cursor, req.Header}, err
}

func (s *server) client(t *testing.T) *Client {
	t.Helper()
	e, err := wire.ParseEndpoint("http://" + s.ln.Addr().String() + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	d, err := wire.NewDialer(wire.DialConfig{Timeout: 5 * time.Second, LoopbackOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	return &Client{Dialer: d, Endpoint: e, Nonce: history.NewNonce(), Timeout: 10 * time.Second}
}

// httpAnswer is a whole response.
func httpAnswer(status int, contentType, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), contentType, len(body), body)
}

func result(id, result string) string {
	return httpAnswer(200, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":%s}`, id, result))
}

func rpcError(status int, id string, code int, message, data string) string {
	return httpAnswer(status, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"error":{"code":%d,"message":%q%s}}`, id, code, message, data))
}

// silent waits for the client to leave.
func silent(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

const modern = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"reports","version":"2"}}}`

func TestDiscover(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(c net.Conn, q question)
		want   string // name, versions, cheapest
		err    string // part of the error
		is     error
	}{
		{name: "modern", answer: func(c net.Conn, q question) { io.WriteString(c, result(q.id, modern)) },
			want: "reports 2 [2026-07-28] server/discover"},
		{name: "modern, as a stream after a comment and a notification", answer: func(c net.Conn, q question) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hello\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n")
			io.WriteString(c, "data: {\"jsonrpc\":\"2.0\",\"id\":\""+q.id+"\",\"result\":"+modern+"}\n\n")
			silent(c)
		}, want: "reports 2 [2026-07-28] server/discover"},
		{name: "modern, slowly, byte by byte", answer: func(c net.Conn, q question) {
			for b := range strings.SplitSeq(result(q.id, modern), "") {
				io.WriteString(c, b)
			}
		}, want: "reports 2 [2026-07-28] server/discover"},
		{name: "modern, ended by the connection", answer: func(c net.Conn, q question) {
			io.WriteString(c, "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"+`{"jsonrpc":"2.0","id":"`+q.id+`","result":`+modern+`}`)
		}, want: "reports 2 [2026-07-28] server/discover"},
		{name: "dual", answer: func(c net.Conn, q question) {
			io.WriteString(c, result(q.id, `{"supportedVersions":["2025-11-25","2026-07-28","2025-06-18"],"capabilities":{}}`))
		}, want: " [2025-11-25 2026-07-28 2025-06-18] server/discover"},
		{name: "modern, without server/discover", answer: func(c net.Conn, q question) {
			io.WriteString(c, rpcError(404, q.id, mcp.CodeMethodNotFound, "no such method", ""))
		}, want: " [] tools/list"},
		{name: "a later revision only", answer: func(c net.Conn, q question) {
			io.WriteString(c, rpcError(400, q.id, mcp.CodeVersion, "unsupported", `,"data":{"supported":["2027-01-01"]}`))
		}, err: `does not speak 2026-07-28, only "2027-01-01"`},
		{name: "legacy, says its versions", answer: func(c net.Conn, q question) {
			io.WriteString(c, rpcError(400, q.id, mcp.CodeVersion, "unsupported", `,"data":{"supported":["2025-11-25"]}`))
		}, err: `older revision of MCP only: the server does not speak 2026-07-28, only "2025-11-25"; mcpflood needs 2026-07-28`},
		{name: "legacy, wants a session", answer: func(c net.Conn, q question) {
			io.WriteString(c, httpAnswer(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}`))
		}, err: "older revision of MCP only"},
		{name: "legacy, plain 400", answer: func(c net.Conn, q question) { io.WriteString(c, httpAnswer(400, "text/plain", "Missing session")) },
			err: "older revision of MCP only"},
		{name: "legacy, method not found with 200", answer: func(c net.Conn, q question) {
			io.WriteString(c, rpcError(200, q.id, mcp.CodeMethodNotFound, "Method not found", ""))
		}, err: "older revision of MCP only"},
		{name: "not MCP: 404", answer: func(c net.Conn, q question) { io.WriteString(c, httpAnswer(404, "text/plain", "not here")) },
			err: "no MCP server answers at"},
		{name: "not MCP: HTML", answer: func(c net.Conn, q question) { io.WriteString(c, httpAnswer(200, "text/html", "<html>hello</html>")) },
			err: `HTTP 200 ("text/html"): not an MCP answer`},
		{name: "not MCP: JSON", answer: func(c net.Conn, q question) { io.WriteString(c, httpAnswer(200, "application/json", `{"ok":true}`)) },
			err: "not an MCP answer"},
		{name: "401", answer: func(c net.Conn, q question) { io.WriteString(c, httpAnswer(401, "text/plain", "who are you?")) },
			err: "server/discover: the server answers with status 401: who are you?", is: &StatusError{Status: 401}},
		{name: "401, as a JSON-RPC error", answer: func(c net.Conn, q question) { io.WriteString(c, rpcError(401, q.id, -32001, "unauthorized", "")) },
			err: "status 401: unauthorized", is: &StatusError{Status: 401}},
		{name: "403, empty", answer: func(c net.Conn, q question) { io.WriteString(c, httpAnswer(403, "text/plain", "")) },
			err: "server/discover: the server answers with status 403", is: &StatusError{Status: 403}},
		{name: "redirect", answer: func(c net.Conn, q question) {
			io.WriteString(c, "HTTP/1.1 308 Permanent Redirect\r\nLocation: https://example.com/mcp\r\nContent-Length: 0\r\n\r\n")
		}, err: `redirects (status 308) to "https://example.com/mcp"`},
		{name: "503", answer: func(c net.Conn, q question) { io.WriteString(c, httpAnswer(503, "text/plain", "busy")) },
			err: "the server cannot answer now"},
		{name: "garbage", answer: func(c net.Conn, q question) { io.WriteString(c, "SSH-2.0-OpenSSH_9.9\r\n"); silent(c) },
			err: `no MCP server answers at`},
		{name: "an endless head", answer: func(c net.Conn, q question) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			for {
				if _, err := io.WriteString(c, "X-More: "+strings.Repeat("x", 4000)+"\r\n"); err != nil {
					return
				}
			}
		}, err: "its head is over"},
		{name: "an endless body", answer: func(c net.Conn, q question) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
			for {
				if _, err := io.WriteString(c, strings.Repeat("[", 64<<10)); err != nil {
					return
				}
			}
		}, err: "an answer of more than"},
		{name: "an endless event", answer: func(c net.Conn, q question) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ")
			for {
				if _, err := io.WriteString(c, strings.Repeat("x", 64<<10)); err != nil {
					return
				}
			}
		}, err: "an event of more than"},
		{name: "an answer to somebody else", answer: func(c net.Conn, q question) { io.WriteString(c, result("other", modern)) },
			err: `the answer is for id "other"`},
		{name: "a stream that ends without an answer", answer: func(c net.Conn, q question) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 4\r\n\r\n: x\n")
		}, err: "not an MCP answer"},
		{name: "closes at once", answer: func(c net.Conn, q question) {}, err: "no answer", is: ErrNoAnswer},
		{name: "closes inside the head", answer: func(c net.Conn, q question) { io.WriteString(c, "HTTP/1.1 200 OK\r\nCont") },
			err: "no answer", is: ErrNoAnswer},
		{name: "closes inside the body", answer: func(c net.Conn, q question) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
		}, err: "no answer", is: ErrNoAnswer},
		{name: "resets", answer: func(c net.Conn, q question) { _ = c.(*net.TCPConn).SetLinger(0) }, err: "no answer", is: ErrNoAnswer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := serve(t, tt.answer).client(t).Discover(t.Context())
			if tt.err == "" {
				if text := fmt.Sprintf("%s %v %s", got.Name, got.Versions, got.Cheapest); err != nil || text != tt.want {
					t.Fatalf("Discover = %q, %v, want %q", text, err, tt.want)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("Discover = %+v, %v, want an error with %q", got, err, tt.err)
			}
			var status *StatusError
			switch want := tt.is.(type) {
			case *StatusError:
				if !errors.As(err, &status) || status.Status != want.Status {
					t.Errorf("%v is no StatusError %d", err, want.Status)
				}
			default:
				if errors.Is(err, ErrNoAnswer) != (tt.is == ErrNoAnswer) {
					t.Errorf("%v: that nobody answers is %v, want %v", err, errors.Is(err, ErrNoAnswer), tt.is == ErrNoAnswer)
				}
			}
		})
	}
}

func TestDiscoverNobody(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{ln: ln}
	c := s.client(t)
	ln.Close()
	if _, err := c.Discover(t.Context()); !errors.Is(err, ErrNoAnswer) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("Discover at a closed port = %v, want no answer: refused", err)
	}
}

func TestSilence(t *testing.T) {
	c := serve(t, func(c net.Conn, q question) { silent(c) }).client(t)
	c.Timeout = 50 * time.Millisecond
	if _, err := c.Discover(t.Context()); !errors.Is(err, ErrNoAnswer) || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Errorf("Discover = %v, want no answer within 50ms", err)
	}
	c.Timeout = 0
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := c.Discover(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Discover = %v, want cancelled", err)
	}
}

// tools answers tools/list with a page a cursor: "" is followed by "2", "3"…
func tools(pages ...string) func(c net.Conn, q question) {
	return func(c net.Conn, q question) {
		n := 0
		if q.cursor != "" {
			fmt.Sscan(q.cursor, &n)
		}
		next := ""
		if n+1 < len(pages) {
			next = fmt.Sprintf(`,"nextCursor":"%d"`, n+1)
		}
		io.WriteString(c, result(q.id, `{"tools":[`+pages[n]+`]`+next+`}`))
	}
}

func tool(name, more string) string {
	return fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"%s}}`, name, more)
}

func TestTool(t *testing.T) {
	endless := func(c net.Conn, q question) {
		io.WriteString(c, result(q.id, `{"tools":[`+tool("x", "")+`],"nextCursor":"again"}`))
	}
	many := make([]string, 30)
	for i := range many {
		many[i] = tool(fmt.Sprintf("tool-%02d", i), "")
	}
	bad := `{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"not a token"}}}}`
	for _, tt := range []struct {
		name   string
		answer func(c net.Conn, q question)
		err    string // empty: report is found
		warned string
	}{
		{"on the first page", tools(tool("other", "")+","+tool("report", ""), tool("more", "")), "", ""},
		{"on the third page", tools(tool("a", ""), "", tool("report", "")), "", ""},
		{"a bad one is left out with a word", tools(bad + "," + tool("report", "")), "", "bad"},
		{"missing", tools(tool("b", ""), tool("a", "")), `the server has no tool "report"; it has a, b`, ""},
		{"missing among many", tools(strings.Join(many, ",")), "tool-19, …", ""},
		{"none at all", tools(""), `the server has no tool "report", nor any other`, ""},
		{"an endless list", endless, "tools/list does not end: more than 100 pages", ""},
		{"a list that is none", func(c net.Conn, q question) { io.WriteString(c, result(q.id, `{"tools":7}`)) }, "tools/list: ", ""},
		{"an error", func(c net.Conn, q question) { io.WriteString(c, rpcError(500, q.id, -32603, "no database", "")) }, "tools/list: error -32603: no database", ""},
		{"401", func(c net.Conn, q question) { io.WriteString(c, rpcError(401, q.id, -32001, "who?", "")) }, "status 401: who?", ""},
		{"HTML", func(c net.Conn, q question) {
			io.WriteString(c, httpAnswer(200, "text/html", "<html>"+strings.Repeat("x", 5000)))
		}, "tools/list: no JSON; the answer, status 200", ""},
		{"a name that never ends", tools(tool(strings.Repeat("x", 100_000), "")), "it has xxx", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var warned strings.Builder
			got, err := serve(t, tt.answer).client(t).Tool(t.Context(), "report", func(format string, args ...any) { fmt.Fprintf(&warned, format, args...) })
			switch {
			case tt.err == "":
				if err != nil || got.Name != "report" {
					t.Errorf("Tool = %+v, %v, want report", got, err)
				}
			case err == nil || !strings.Contains(err.Error(), tt.err):
				t.Errorf("Tool = %v, %v, want an error with %q", got.Name, err, tt.err)
			case len(err.Error()) > 2000:
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			if !strings.Contains(warned.String(), tt.warned) || (tt.warned == "") != (warned.Len() == 0) {
				t.Errorf("warned %q, want %q", warned.String(), tt.warned)
			}
		})
	}
}

// TestHeaders holds that questions carry the user's headers, on every one.
func TestHeaders(t *testing.T) {
	got := make(chan question, 1)
	c := serve(t, func(c net.Conn, q question) { got <- q; io.WriteString(c, result(q.id, modern)) }).client(t)
	c.Headers = []mcp.Field{{Name: "Authorization", Value: "Bearer s3cret"}, {Name: "X-Team", Value: "blue"}}
	for range 2 {
		if _, err := c.Discover(t.Context()); err != nil {
			t.Fatal(err)
		}
		q := <-got
		if q.header.Get("Authorization") != "Bearer s3cret" || q.header.Get("X-Team") != "blue" || q.header.Get("Mcp-Method") != mcp.MethodDiscover || q.method != mcp.MethodDiscover {
			t.Errorf("asked %s with %v", q.method, q.header)
		}
		if ref, claim := c.Nonce.ReadID(q.id); claim != history.Ours || ref.Role != history.Probe {
			t.Errorf("id %q is no probe's", q.id)
		}
	}
}

// probes collects the canary's records and ends it after n.
type probes struct {
	mu   sync.Mutex
	n    int
	recs []history.Canary
	end  context.CancelFunc
}

func (p *probes) Append(r history.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recs = append(p.recs, *r.Canary)
	if len(p.recs) == p.n {
		p.end()
	}
}

func TestCanary(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(c net.Conn, q question)
		ok     bool
		err    string
	}{
		{"fine", func(c net.Conn, q question) { io.WriteString(c, result(q.id, modern)) }, true, ""},
		{"an error", func(c net.Conn, q question) { io.WriteString(c, rpcError(500, q.id, -32603, "boom", "")) }, false, "error -32603: boom"},
		{"503", func(c net.Conn, q question) { io.WriteString(c, httpAnswer(503, "text/plain", "busy")) }, false, "status 503"},
		{"401", func(c net.Conn, q question) { io.WriteString(c, httpAnswer(401, "text/plain", "")) }, false, "status 401"},
		{"closes", func(c net.Conn, q question) {}, false, "no answer"},
		{"garbage", func(c net.Conn, q question) { io.WriteString(c, "hello\n") }, false, "bad http answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := &probes{n: 2, end: cancel}
			clock := history.NewClock()
			serve(t, tt.answer).client(t).Canary(ctx, mcp.MethodDiscover, clock, p)
			if len(p.recs) != 2 {
				t.Fatalf("%d probes, want 2", len(p.recs))
			}
			for _, r := range p.recs {
				if r.OK != tt.ok || !strings.Contains(r.Error, tt.err) || (r.Error == "") != tt.ok || r.Latency <= 0 || r.Latency > clock.Now() {
					t.Errorf("probe %+v, want ok %v, error %q", r, tt.ok, tt.err)
				}
			}
			if pause := p.recs[1].At - p.recs[0].At; pause < canaryEvery/2 {
				t.Errorf("two probes within %s", pause)
			}
		})
	}
}

// TestCanaryEnds holds that the end of the run, which cuts a probe short, says
// nothing about the server.
func TestCanaryEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := serve(t, func(c net.Conn, q question) { cancel(); silent(c) }).client(t)
	p := &probes{n: 100, end: cancel}
	c.Canary(ctx, mcp.MethodDiscover, history.NewClock(), p)
	if len(p.recs) != 0 {
		t.Errorf("probes %+v, want none", p.recs)
	}
}
