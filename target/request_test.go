package target

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpflood/mcpflood/internal/mcp"
)

// post sends a hand-written request and gives the status, the error code in
// the body (0: none) and the body.
func (r *rig) post(method, path, head, body string) (status, code int, text string) {
	r.t.Helper()
	c := dial(r.t, r.addr)
	defer c.Close()
	fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:3000\r\n%sContent-Length: %d\r\n\r\n%s", method, path, head, len(body), body)
	resp, text := c.response()
	var e struct {
		Error struct{ Code int } `json:"error"`
	}
	_ = json.Unmarshal([]byte(text), &e)
	return resp.StatusCode, e.Error.Code, text
}

func TestRequests(t *testing.T) {
	const (
		std  = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
		list = std + "Mcp-Method: tools/list\r\n"
		call = std + "Mcp-Method: tools/call\r\nMcp-Name: build_report\r\n"
		meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	)
	rpc := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":2,"method":"` + method + `","params":{` + params + meta + `}}`
	}
	tool := func(name, args string) string { return rpc("tools/call", `"name":"`+name+`","arguments":`+args+`,`) }
	cfg := quick()
	cfg.StepTime, cfg.Fillers, cfg.PageSize = time.Millisecond, 2, 2
	for _, faults := range [][]Fault{nil, {{Kind: DeafBody}}, {{Kind: DeafBody, Share: 0.5}}} {
		cfg.Faults = faults
		r := newRig(t, cfg)
		for _, tt := range []struct {
			name, method, path, head, body string
			status, code                   int
			has                            string
		}{
			{"a call", "POST", "/mcp", call, tool("build_report", `{"month":"2026-09"}`), 200, 0, `"resultType":"complete"`},
			{"a call with a line end", "POST", "/mcp", call, tool("build_report", `{"month":"2026-09"}`) + "\n", 200, 0, `"id":2`},
			{"trace and marker", "POST", "/mcp", call + "traceparent: 00-0123456789abcdef0123456789abcdef-0123456789abcdef-01\r\nbaggage: mcpflood.call=head\r\n", tool("build_report", `{"month":"2026-09"}`), 200, 0, `"id":2`},
			{"discover", "POST", "/mcp", std + "Mcp-Method: server/discover\r\n", rpc("server/discover", ""), 200, 0, `"supportedVersions":["2026-07-28"]`},
			{"list", "POST", "/mcp", list, rpc("tools/list", ""), 200, 0, `"nextCursor":"after-2"`},
			{"list is no replay", "POST", "/mcp", list + "Last-Event-ID: 42\r\nMcp-Session-Id: s\r\n", rpc("tools/list", ""), 200, 0, `"name":"build_report"`},
			{"second page", "POST", "/mcp", list, rpc("tools/list", `"cursor":"after-2",`), 200, 0, `"name":"filler_2"`},
			{"bad cursor", "POST", "/mcp", list, rpc("tools/list", `"cursor":"after-3",`), 400, -32602, ""},
			{"empty cursor", "POST", "/mcp", list, rpc("tools/list", `"cursor":"",`), 400, -32602, ""},
			{"cursor of a wrong type", "POST", "/mcp", list, rpc("tools/list", `"cursor":7,`), 400, -32602, ""},
			{"filler", "POST", "/mcp", std + "Mcp-Method: tools/call\r\nMcp-Name: filler_2\r\n", tool("filler_2", `{}`), 200, 0, "nothing was done"},
			{"no such filler", "POST", "/mcp", std + "Mcp-Method: tools/call\r\nMcp-Name: filler_3\r\n", tool("filler_3", `{}`), 400, -32602, ""},
			{"unknown tool", "POST", "/mcp", std + "Mcp-Method: tools/call\r\nMcp-Name: x\r\n", tool("x", `{}`), 400, -32602, "unknown tool"},
			{"no month", "POST", "/mcp", call, tool("build_report", `{}`), 400, -32602, "month"},
			{"null month", "POST", "/mcp", call, tool("build_report", `{"month":null}`), 400, -32602, "month"},
			{"month of a wrong type", "POST", "/mcp", call, tool("build_report", `{"month":9}`), 400, -32602, "month"},
			{"key of a wrong type", "POST", "/mcp", call, tool("build_report", `{"month":"","idempotency_key":1}`), 400, -32602, "idempotency_key"},
			{"arguments of a wrong type", "POST", "/mcp", call, tool("build_report", `[]`), 400, -32602, ""},
			{"unknown method", "POST", "/mcp", std + "Mcp-Method: initialize\r\n", rpc("initialize", ""), 404, -32601, ""},
			{"other name in the header", "POST", "/mcp", std + "Mcp-Method: tools/call\r\nMcp-Name: other\r\n", tool("build_report", `{"month":"x"}`), 400, -32020, ""},
			{"other method in the header", "POST", "/mcp", list, rpc("server/discover", ""), 400, -32020, ""},
			{"no _meta", "POST", "/mcp", list, `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`, 400, -32602, ""},
			{"not JSON", "POST", "/mcp", list, `{"jsonrpc`, 400, -32700, ""},
			{"no body", "POST", "/mcp", list, "", 400, -32700, ""},
			{"one byte", "POST", "/mcp", list, "{", 400, -32700, ""},
			{"notification", "POST", "/mcp", std + "Mcp-Method: notifications/cancelled\r\n", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, 202, 0, ""},
			{"GET", "GET", "/mcp", "", "", 405, 0, ""},
			{"DELETE", "DELETE", "/mcp", "", "", 405, 0, ""},
			{"own origin", "POST", "/mcp", list + "Origin: http://127.0.0.1:3000\r\n", rpc("tools/list", ""), 200, 0, ""},
			{"local origin", "POST", "/mcp", list + "Origin: http://localhost:8080\r\n", rpc("tools/list", ""), 200, 0, ""},
			{"foreign origin", "POST", "/mcp", list + "Origin: http://evil.example\r\n", rpc("tools/list", ""), 403, -32600, ""},
			{"null origin", "POST", "/mcp", list + "Origin: null\r\n", rpc("tools/list", ""), 403, -32600, ""},
			{"too big", "POST", "/mcp", list, strings.Repeat(" ", mcp.MaxMessage+1), 413, 0, ""},
			{"other path", "POST", "/", list, rpc("tools/list", ""), 404, 0, "not found"},
		} {
			t.Run(fmt.Sprint(faults, tt.name), func(t *testing.T) {
				status, code, text := r.post(tt.method, tt.path, tt.head, tt.body)
				if status != tt.status || code != tt.code || !strings.Contains(text, tt.has) {
					t.Errorf("status %d, code %d, want %d, %d and %q; body:\n%s", status, code, tt.status, tt.code, tt.has, text)
				}
			})
		}
		if !strings.Contains(r.log.String(), " id=2 marker=head trace=0123456789abcdef0123456789abcdef user=- t=") {
			t.Errorf("no identity from headers in the log:\n%s", r.log.String())
		}
	}
}

// Tools are what mcp reads them as, on however many pages.
func TestPages(t *testing.T) {
	s, err := New(Config{Fillers: 4, PageSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	var cursor *string
	for range 3 {
		page, ok := s.list(cursor)
		if !ok {
			t.Fatalf("list(%q): not known", *cursor)
		}
		got, err := mcp.ParseTools(page)
		if err != nil || len(got.Dropped) > 0 {
			t.Fatalf("ParseTools: %v, dropped %v", err, got.Dropped)
		}
		for _, tool := range got.Tools {
			names = append(names, tool.Name)
		}
		cursor = got.NextCursor
	}
	if want := []string{"build_report", "filler_1", "filler_2", "filler_3", "filler_4"}; cursor != nil || !slices.Equal(names, want) {
		t.Errorf("tools %v, want %v; next cursor %v", names, want, cursor)
	}
	if _, err := mcp.ParseDiscover(s.discover()); err != nil {
		t.Errorf("ParseDiscover: %v", err)
	}
}

// With a body that is not read to its end net/http hears no hang-up, and that
// is what the fault deaf-body rests on.
func TestDeafBodyIsDeaf(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault FaultKind
		ask   ask
		hears bool
	}{
		{"deaf-body", DeafBody, ask{id: "x", token: "p"}, false},
		{"unknown length", DeafBody, ask{id: "x", token: "p", chunked: true}, true},
		{"run-on", RunOn, ask{id: "x", token: "p"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := quick(tt.fault)
			cfg.NoProgress = true // a failed write would be noticed as well
			r := newRig(t, cfg)
			r.call(tt.ask).Close()
			if tr := r.ended("x"); tr.End != EndFinished || (tr.CutSeen != nil) != tt.hears {
				t.Errorf("truth = %+v, want it finished, the hang-up heard: %v", tr, tt.hears)
			}
		})
	}
}

// A connection goes on after a request whose body was not read to its end.
func TestDeafBodyKeepsAlive(t *testing.T) {
	cfg := quick(DeafBody)
	cfg.StepTime = time.Millisecond
	r := newRig(t, cfg)
	c := dial(t, r.addr)
	defer c.Close()
	for n := range 5 {
		id := fmt.Sprint(n)
		for _, a := range []ask{{id: id, token: "p"}, {id: id}, {id: id, method: mcp.MethodDiscover}} {
			msgs := c.send(a).answered()
			if last := msgs[len(msgs)-1]; last.Kind != mcp.ResultResponse || last.ID != mcp.StringID(id) {
				t.Fatalf("answer %s = %+v, want a result", id, last)
			}
		}
	}
}

// A client that breaks off inside its body has made no request.
func TestTornBody(t *testing.T) {
	for _, faults := range [][]FaultKind{nil, {DeafBody}} {
		r := newRig(t, quick(faults...))
		c := dial(t, r.addr)
		fmt.Fprint(c, "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
		c.Conn.(*net.TCPConn).CloseWrite()
		if got, _ := io.ReadAll(c.br); len(got) > 0 {
			t.Errorf("got %q, want nothing", got)
		}
		c.Close()
		d := r.call(ask{id: "d", method: mcp.MethodDiscover})
		if resp, _ := d.response(); resp.StatusCode != 200 {
			t.Errorf("afterwards: %s, want 200", resp.Status)
		}
		d.Close()
	}
}

func TestIdentify(t *testing.T) {
	const parent = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
	for _, tt := range []struct {
		name              string
		key, trace, bag   string
		auth              string
		marker, id, owner string
	}{
		{"nothing", "", "", "", "", "", "", ""},
		{"all", "k", parent, "mcpflood.call=m", "Bearer alice", "k", "0123456789abcdef0123456789abcdef", "alice"},
		{"baggage", "", "", "a=b;p=1, mcpflood.call = m%20n;q", "bearer  bob ", "m n", "", "bob"},
		{"malformed", "", "00-xyz-1-2", "mcpflood.call", "Basic YTpi", "", "", ""},
		{"capitals", "", strings.ToUpper(parent), "mcpflood.call=%zz", "Bearer", "%zz", "", ""},
	} {
		header := http.Header{}
		if tt.auth != "" {
			header.Set("Authorization", tt.auth)
		}
		got := identify("7", tt.key, tt.trace, tt.bag, header)
		if want := (identity{"7", tt.marker, tt.id, tt.owner}); got != want {
			t.Errorf("%s: identify = %+v, want %+v", tt.name, got, want)
		}
	}
}
