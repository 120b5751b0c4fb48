package flood

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/drive"
	"github.com/mcpflood/mcpflood/internal/mcp"
	"github.com/mcpflood/mcpflood/internal/wire"
)

var reportTool = func() mcp.Tool {
	tool, err := mcp.ParseTool(json.RawMessage(`{"name":"build_report","inputSchema":{"type":"object","properties":{
		"month":{"type":"string"},"count":{"type":"integer"},"deep":{"type":"boolean"},"tags":{"type":"array"},"key":{"type":"string"},
		"share":{"type":"number"},"region":{"type":"string","x-mcp-header":"Region"}},"required":["month"]}}`))
	if err != nil {
		panic(err)
	}
	return tool
}()

// sent is a request as a server reads it.
type sent struct {
	header http.Header
	host   string
	path   string
	id     string
	meta   map[string]any
	args   map[string]any
	params map[string]any
}

func read(t *testing.T, b []byte) sent {
	t.Helper()
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
	if err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		t.Fatal(err)
	}
	if _, rpc := mcp.ValidateRequest(req.Header, raw); rpc != nil {
		t.Errorf("a server refuses the request: %v\n%s", rpc, b)
	}
	var body struct {
		ID     string
		Params map[string]any
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatal(err)
	}
	s := sent{header: req.Header, host: req.Host, path: req.URL.Path, id: body.ID, params: body.Params}
	s.meta, _ = body.Params["_meta"].(map[string]any)
	s.args, _ = body.Params["arguments"].(map[string]any)
	return s
}

func maker(t *testing.T, c Config) (*requests, error) {
	t.Helper()
	c.URL, c.Tool = "http://127.0.0.1:3000/mcp", reportTool.Name
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	e, err := wire.ParseEndpoint(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	return newRequests(c.withDefaults(), history.Nonce{1}, e, reportTool)
}

func make1(t *testing.T, r *requests, ref history.Ref, state json.RawMessage) sent {
	t.Helper()
	b, err := r.bytes(drive.Ask{Ref: ref, ID: ref, State: state})
	if err != nil {
		t.Fatal(err)
	}
	return read(t, b)
}

func TestRequest(t *testing.T) {
	r, err := maker(t, Config{
		Args:    []string{"month=2026-09", "count=3", "deep=true", `tags=["a","b"]`, "key={{.Marker}}", "share=0.5", "region=eu"},
		Bearer:  "tok",
		Headers: []string{"X-Try: {{.Attempt}} of {{.Call}}", "X-Seq:{{ .Seq }}", "Host: reports.example"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ref := history.Ref{Call: 7, Attempt: 2}
	nonce := history.Nonce{1}
	got := make1(t, r, ref, nil)
	wantArgs := map[string]any{"month": "2026-09", "count": 3.0, "deep": true, "tags": []any{"a", "b"}, "key": nonce.Marker(ref), "share": 0.5, "region": "eu"}
	if diff := cmp.Diff(wantArgs, got.args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if got.id != nonce.ID(ref) || got.path != "/mcp" || got.host != "reports.example" {
		t.Errorf("id %q, path %q, host %q", got.id, got.path, got.host)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer tok", "X-Try": "2 of 7", "X-Seq": "7", "Mcp-Method": "tools/call", "Mcp-Name": "build_report", "Mcp-Param-Region": "eu",
		"Mcp-Protocol-Version": "2026-07-28", "Traceparent": nonce.Traceparent(ref), "Baggage": "mcpflood.call=" + nonce.Marker(ref),
	} {
		if v := got.header.Values(name); len(v) != 1 || v[0] != want {
			t.Errorf("header %s = %q, want %q once", name, v, want)
		}
	}
	for key, want := range map[string]string{"progressToken": nonce.Token(ref), "traceparent": nonce.Traceparent(ref), "baggage": "mcpflood.call=" + nonce.Marker(ref)} {
		if got.meta[key] != want {
			t.Errorf("_meta %s = %v, want %q", key, got.meta[key], want)
		}
	}
	// The next round of an input_required answer gives the state back.
	if again := make1(t, r, ref.Next(), json.RawMessage(`"opaque \u00e9"`)); again.params["requestState"] != "opaque é" || cmp.Diff(wantArgs, again.args) != "" {
		t.Errorf("with a state: params %v", again.params)
	}
}

// TestSameOverAttempts holds that the arguments of a call stay the same over
// its attempts, while the identities change, and differ from call to call.
func TestSameOverAttempts(t *testing.T) {
	for _, c := range []Config{
		{Args: []string{"month=2026-09", "key={{.Call}} {{.Marker}} {{.Seq}} {{Marker}}"}, Headers: []string{"X: {{.Attempt}}"}},
		{ArgsJSON: `{"month":"2026-09","key":"{{.Call}} {{.Marker}} {{.Seq}} {{Marker}}","count":{{.Seq}}}`, Headers: []string{"X: {{.Attempt}}"}},
		{ArgsJSON: ` {"month":"fixed","nested":{"a":{"b":1}}} `, Headers: []string{"X: {{.Attempt}}"}},
	} {
		r, err := maker(t, c)
		if err != nil {
			t.Fatal(err)
		}
		ref := history.Ref{Call: 3, Attempt: 1}
		first := make1(t, r, ref, nil)
		for a := uint32(2); a < 5; a++ {
			ref.Attempt = a
			next := make1(t, r, ref, nil)
			if diff := cmp.Diff(first.args, next.args); diff != "" {
				t.Errorf("arguments of attempt %d (-first +this):\n%s", a, diff)
			}
			if next.id == first.id || next.meta["progressToken"] == first.meta["progressToken"] || next.header.Get("Traceparent") == first.header.Get("Traceparent") || next.header.Get("X") == first.header.Get("X") {
				t.Errorf("attempt %d passes for the first", a)
			}
			if next.header.Get("Baggage") != first.header.Get("Baggage") {
				t.Errorf("attempt %d is not linked to its call", a)
			}
		}
		other := make1(t, r, history.Ref{Call: 4, Attempt: 1}, nil)
		if r.fixed == nil && cmp.Equal(first.args, other.args) || r.fixed != nil && !cmp.Equal(first.args, other.args) {
			t.Errorf("arguments of two calls: %v and %v", first.args, other.args)
		}
		if key, ok := first.args["key"]; ok {
			marker := history.Nonce{1}.Marker(ref)
			if want := "3 " + marker + " 3 " + marker; key != want {
				t.Errorf("key = %q, want %q", key, want)
			}
		}
	}
}

func TestRequestErrors(t *testing.T) {
	for _, tt := range []struct {
		c    Config
		want string
	}{
		{Config{}, `argument "month" is required`},
		{Config{Args: []string{"month=x", "count=many"}}, `argument "count"`},
		{Config{Args: []string{"month=x", "mont=y"}}, `did you mean "month"`},
		{Config{ArgsJSON: `[1]`}, "--args-json is no JSON object"},
		{Config{ArgsJSON: `{"month":`}, "--args-json is no JSON object"},
		{Config{ArgsJSON: `{"month":{{.Call}}x}`}, "--args-json is no JSON object"},
	} {
		if _, err := maker(t, tt.c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.c, err, tt.want)
		}
	}
}

// TestCleanCallText holds that a placeholder names calls of every role apart.
func TestCleanCallText(t *testing.T) {
	r, err := maker(t, Config{Args: []string{"month={{.Call}}"}})
	if err != nil {
		t.Fatal(err)
	}
	for role, want := range map[history.Role]string{history.Load: "1", history.Clean: "k1", history.Closing: "z1"} {
		if got := make1(t, r, history.Ref{Role: role, Call: 1, Attempt: 1}, nil); got.args["month"] != want {
			t.Errorf("{{.Call}} of %v = %v, want %s", role, got.args["month"], want)
		}
	}
}
