package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// asHeader is what a server gets of the fields of a request.
func asHeader(fields []Field) http.Header {
	h := http.Header{}
	for _, f := range fields {
		h.Add(f.Name, f.Value)
	}
	return h
}

func TestHeaderValues(t *testing.T) {
	// From the tables of the specification and of the proposal behind it.
	for _, tt := range []struct{ value, wire string }{
		{"us-west1", "us-west1"},
		{"us west 1", "us west 1"},
		{"file:///path/to/file%20name.txt", "file:///path/to/file%20name.txt"},
		{"", ""},
		{"a\tb", "a\tb"},
		{"Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="},
		{"日本語", "=?base64?5pel5pys6Kqe?="},
		{" padded ", "=?base64?IHBhZGRlZCA=?="},
		{" us-west1", "=?base64?IHVzLXdlc3Qx?="},
		{"us-west1 ", "=?base64?dXMtd2VzdDEg?="},
		{"\tindented", "=?base64?CWluZGVudGVk?="},
		{"line1\nline2", "=?base64?bGluZTEKbGluZTI=?="},
		{"line1\r\nline2", "=?base64?bGluZTENCmxpbmUy?="},
		{"=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="},
	} {
		if got := EncodeHeaderValue(tt.value); got != tt.wire {
			t.Errorf("EncodeHeaderValue(%q) = %q, want %q", tt.value, got, tt.wire)
		}
		if got, err := DecodeHeaderValue(tt.wire); got != tt.value || err != nil {
			t.Errorf("DecodeHeaderValue(%q) = %q, %v, want %q", tt.wire, got, err, tt.value)
		}
	}
	for _, tt := range []struct{ wire, value string }{
		{" foo ", "foo"}, // HTTP may trim, and so do we
		{"SGVsbG8=", "SGVsbG8="},
		{"=?base64?SGVsbG8=", "=?base64?SGVsbG8="},
		{"SGVsbG8=?=", "SGVsbG8=?="},
		{"=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="}, // the mark is exact
		{"=?base64??=", ""},
		{"=?base64?=", "=?base64?="}, // too short to be both marks
	} {
		if got, err := DecodeHeaderValue(tt.wire); got != tt.value || err != nil {
			t.Errorf("DecodeHeaderValue(%q) = %q, %v, want %q", tt.wire, got, err, tt.value)
		}
	}
	for _, wire := range []string{
		"=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "=?base64?SGVsbG9=?=", "=?base64?SGVs\tbG8=?=",
		"=?base64?/w==?=", "a\x00b", "日本", "a\x7f", "a\r\nb",
	} {
		if got, err := DecodeHeaderValue(wire); err == nil {
			t.Errorf("DecodeHeaderValue(%q) = %q, want an error", wire, got)
		}
	}
}

func checkHeaderValue(t interface{ Fatalf(string, ...any) }, s string) {
	wire := EncodeHeaderValue(s)
	if !legalHeaderValue(wire) || wire != strings.Trim(wire, " \t") {
		t.Fatalf("EncodeHeaderValue(%q) = %q: not fit for a header", s, wire)
	}
	if got, err := DecodeHeaderValue(wire); got != string([]rune(s)) || err != nil {
		t.Fatalf("%q comes back as %q, %v", s, got, err)
	}
}

func TestIDs(t *testing.T) {
	if StringID("1") == IntID(1) || StringID("") == (ID{}) || StringID("x") != StringID(strings.ToLower("X")) {
		t.Error(`ids compare by type and text: "1" is not 1, "" is an id`)
	}
	for _, tt := range []struct {
		in    string
		want  ID
		valid bool
	}{
		{`"a"`, StringID("a"), true},
		{`"\u0061"`, StringID("a"), true},
		{`-12`, IntID(-12), true},
		{`123456789012345678901234567890`, ID{"123456789012345678901234567890", idInteger}, true},
		{`null`, ID{}, true},
		{`1.0`, ID{}, false},
		{`1e3`, ID{}, false},
		{`true`, ID{}, false},
		{`{}`, ID{}, false},
	} {
		var got ID
		err := json.Unmarshal([]byte(tt.in), &got)
		if got != tt.want || (err == nil) != tt.valid {
			t.Errorf("id %s = %+v, %v; want %+v", tt.in, got, err, tt.want)
		}
	}
}

func TestTextsAreBounded(t *testing.T) {
	long := strings.Repeat("é", MaxText)
	body := func(format string) []byte { return fmt.Appendf(nil, format, long) }
	for name, read := range map[string]func(m Message) string{
		`{"jsonrpc":"2.0","error":{"code":1,"message":"%s"}}`:                                func(m Message) string { return m.Err.Message },
		`{"jsonrpc":"2.0","id":"%s","result":{}}`:                                            func(m Message) string { return m.ID.String() },
		`{"jsonrpc":"2.0","method":"%s"}`:                                                    func(m Message) string { return m.Method },
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"message":"%s"}}`:      func(m Message) string { return m.Progress.Message },
		`{"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":[{"text":"%s"}]}}`:       func(m Message) string { return m.Result.Text },
		`{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"%s"}}`:              func(m Message) string { return m.Result.TaskID },
		`{"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":[{"text":"\u00e9%s"}]}}`: func(m Message) string { return m.Result.Text },
	} {
		m, err := DecodeMessage(body(name))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := read(m); len(got) != MaxText || !utf8.ValidString(got) {
			t.Errorf("%s: a text of %d bytes is kept, want %d of valid UTF-8", name, len(got), MaxText)
		}
	}
	m, err := DecodeMessage([]byte(`{"jsonrpc":"2.0","result":` + strings.Repeat(" ", MaxMessage) + `{}}`))
	if err == nil {
		t.Errorf("a message over the limit gives %+v, want an error", m)
	}
	m, err = DecodeMessage([]byte(`{"jsonrpc":"2.0","result":` + strings.Repeat("[", 1<<20)))
	if err == nil {
		t.Errorf("a million brackets give %+v, want an error", m)
	}
}

func TestValidateRequestLimits(t *testing.T) {
	for _, tt := range []struct {
		name   string
		body   []byte
		status int
		code   int
	}{
		{"not UTF-8", []byte("{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}"), 400, CodeParse},
		{"too large", make([]byte, MaxMessage+1), 413, CodeInvalidRequest},
		{"a long id", fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"%s","method":"ping"}`, strings.Repeat("x", MaxText)), 400, CodeInvalidRequest},
		{"nothing", nil, 400, CodeParse},
	} {
		if _, rpc := ValidateRequest(http.Header{}, tt.body); rpc == nil || rpc.HTTPStatus != tt.status || rpc.Code != tt.code {
			t.Errorf("%s: %+v, want %d %d", tt.name, rpc, tt.status, tt.code)
		}
	}
	c := Call{ID: IntID(1), Method: MethodDiscover}
	h := asHeader(c.Headers())
	h.Add(HeaderMethod, MethodDiscover)
	if _, rpc := ValidateRequest(h, c.Body()); rpc == nil || rpc.Code != CodeHeaderMismatch {
		t.Errorf("a field that is there twice: %v, want %d", rpc, CodeHeaderMismatch)
	}
}

// A request of ours is one that a server must accept, and it reads back.
func TestRequestsReadBack(t *testing.T) {
	text := rapid.StringN(1, 40, 100)
	rapid.Check(t, func(t *rapid.T) {
		args, err := json.Marshal(rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "args"))
		if err != nil {
			t.Fatal(err)
		}
		name := text.Draw(t, "name")
		c := Call{
			ID:     rapid.OneOf(rapid.Map(rapid.String(), StringID), rapid.Map(rapid.Int64(), IntID)).Draw(t, "id"),
			Method: MethodToolsCall, Name: name, Params: ToolCall(name, args),
			Meta: Meta{
				ProgressToken: text.Draw(t, "token"), Traceparent: text.Draw(t, "trace"), Baggage: text.Draw(t, "baggage"),
				Tracestate: text.Draw(t, "state"), LogLevel: rapid.SampledFrom(append(logLevels, "")).Draw(t, "level"),
			},
		}
		state := text.Draw(t, "state")
		c.Params = Retry(c.Params, appendQuoted(nil, state), nil)
		body := c.AppendBody([]byte("x"))[1:]
		r, rpc := ValidateRequest(asHeader(c.Headers()), body)
		if rpc != nil {
			t.Fatalf("a server refuses\n%v\n%s\nwith %v", c.Headers(), body, rpc)
		}
		want := ServerRequest{ID: c.ID, Method: c.Method, Name: name, Meta: ServerMeta{
			Version: Version, ProgressToken: StringID(c.Meta.ProgressToken), Traceparent: c.Meta.Traceparent,
			Tracestate: c.Meta.Tracestate, Baggage: c.Meta.Baggage, LogLevel: c.Meta.LogLevel}}
		var got struct{ Params struct{ RequestState string } }
		if err := json.Unmarshal(body, &got); err != nil || got.Params.RequestState != state {
			t.Fatalf("the state %q comes back as %q, %v", state, got.Params.RequestState, err)
		}
		if string(r.Arguments) != string(args) || string(r.Meta.Capabilities) != "{}" || r.RequestState == nil {
			t.Fatalf("arguments %s, want %s", r.Arguments, args)
		}
		r.Arguments, r.Meta.Capabilities, r.Params, r.RequestState = nil, nil, nil, nil
		if d := cmp.Diff(want, r, cmp.AllowUnexported(ID{})); d != "" {
			t.Fatalf("(-sent +read):\n%s", d)
		}
	})
}

func TestRetry(t *testing.T) {
	params := json.RawMessage(" { } ")
	for _, tt := range []struct{ state, responses, want string }{
		{"", "", `{}`},
		{`"a"`, "", `{"requestState":"a"}`},
		{"", `{"q":{"action":"decline"}}`, `{"inputResponses":{"q":{"action":"decline"}}}`},
		{`"a"`, `{}`, `{"inputResponses":{},"requestState":"a"}`},
	} {
		if got := Retry(params, json.RawMessage(tt.state), json.RawMessage(tt.responses)); strings.ReplaceAll(string(got), " ", "") != tt.want {
			t.Errorf("Retry(%s, %s) = %s, want %s", tt.state, tt.responses, got, tt.want)
		}
	}
}

// What a server of ours writes is what a client of ours reads.
func TestAnswersReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.Map(rapid.String(), StringID), rapid.Map(rapid.Int64(), IntID)).Draw(t, "id")
		text := rapid.String().Draw(t, "text")
		number := rapid.Float64().Filter(func(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) })
		p := Progress{Token: id, Progress: number.Draw(t, "progress"), HasTotal: rapid.Bool().Draw(t, "has total"), Message: text}
		if p.HasTotal {
			p.Total = number.Draw(t, "total")
		}
		m, err := DecodeMessage(AppendProgress(nil, p))
		if err != nil || m.Kind != Notification || m.Progress != p {
			t.Fatalf("progress %+v reads back as %+v, %v", p, m, err)
		}
		r := CallResult{Text: text, IsError: true, Structured: json.RawMessage(`{"a":[1]}`), ServerInfo: json.RawMessage(`{"name":"x","version":"1"}`)}
		m, err = DecodeMessage(AppendResult(nil, id, r.JSON()))
		if err != nil || m.Kind != ResultResponse || m.ID != id || m.Result.Type != ResultComplete || !m.Result.IsError || m.Result.Text != text {
			t.Fatalf("result %+v reads back as %+v, %v", r, m, err)
		}
		m, err = DecodeMessage(AppendResult(nil, id, InputRequired(text, nil)))
		if err != nil || m.Result.Type != ResultInputRequired || unquote(m.Result.RequestState, len(m.Result.RequestState)) != text {
			t.Fatalf("state %q reads back as %+v, %v", text, m, err)
		}
		e := InvalidParams(id, "%s", text)
		m, err = DecodeMessage(e.Body())
		if err != nil || m.Kind != ErrorResponse || m.ID != id || m.Err.Code != e.Code || m.Err.Message != text {
			t.Fatalf("error %+v reads back as %+v, %v", e, m, err)
		}
	})
}

// Strings agree with encoding/json, both ways.
func TestStringsAgreeWithEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		var got string
		if err := json.Unmarshal(appendQuoted(nil, s), &got); err != nil || got != string([]rune(s)) {
			t.Fatalf("appendQuoted(%q) = %s, which reads %q, %v", s, appendQuoted(nil, s), got, err)
		}
		parts := rapid.SliceOf(rapid.SampledFrom([]string{`\ud83d`, `\uDE00`, `\u0041`, `\n`, `\"`, `\\`, `\/`, "a", "é", "\xff", `\u0000`})).Draw(t, "parts")
		literal := []byte(`"` + strings.Join(parts, "") + `"`)
		var want string
		if err := json.Unmarshal(literal, &want); err != nil {
			t.Fatal(err)
		}
		if got := unquote(literal, len(literal)*3); got != want {
			t.Fatalf("unquote(%s) = %q, encoding/json reads %q", literal, got, want)
		}
	})
}

func TestCheckOrigin(t *testing.T) {
	for _, tt := range []struct {
		origin string
		ok     bool
	}{
		{"", true}, {"http://localhost:3000", true}, {"http://127.0.0.1", true}, {"http://[::1]:8", true},
		{"https://app.example.com", true}, {"https://evil.example", false}, {"http://localhost.evil.example", false},
		{"null", false}, {"http://192.168.0.1", false}, {"://", false},
	} {
		h := http.Header{}
		if tt.origin != "" {
			h.Set("Origin", tt.origin)
		}
		rpc := CheckOrigin(h, "https://app.example.com")
		if (rpc == nil) != tt.ok || rpc != nil && (rpc.HTTPStatus != http.StatusForbidden || !rpc.ID.IsZero()) {
			t.Errorf("CheckOrigin(%q) = %v, want allowed %v", tt.origin, rpc, tt.ok)
		}
	}
}

func TestDiscover(t *testing.T) {
	d := Discover{
		Versions: []string{Version}, Capabilities: json.RawMessage(`{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`),
		Instructions: "ask \"nicely\"", TTLMs: 60000, CacheScope: "private", ServerInfo: json.RawMessage(`{"name":"demo","version":"1.2"}`),
	}
	got, err := ParseDiscover(d.JSON())
	if err != nil {
		t.Fatal(err)
	}
	d.Server = "demo 1.2"
	if diff := cmp.Diff(d, got); diff != "" {
		t.Errorf("(-sent +read):\n%s", diff)
	}
	if !got.HasCapability("tools") || !got.HasCapability("extensions", "io.modelcontextprotocol/tasks") || got.HasCapability("prompts") || got.HasCapability("tools", "x") {
		t.Error("capabilities are not found by their path")
	}
	if _, err := ParseDiscover([]byte(`{"supportedVersions":[]}`)); err == nil {
		t.Error("a result without versions must be an error")
	}
}

func TestReadEra(t *testing.T) {
	rpc := func(code int, data string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":"a","error":{"code":%d,"message":"no","data":%s}}`, code, data)
	}
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   Era
		words  string
	}{
		{"a result", 200, `{"jsonrpc":"2.0","id":"a","result":` + string(Discover{Versions: []string{"2025-11-25", Version}}.JSON()) + `}`, EraModern, "speaks 2026-07-28"},
		{"a result with older versions only", 200, `{"jsonrpc":"2.0","id":"a","result":{"supportedVersions":["2025-11-25"]}}`, EraLegacy, `"2025-11-25"`},
		{"a result of something else", 200, `{"jsonrpc":"2.0","id":"a","result":{}}`, EraUnknown, "supportedVersions"},
		{"another version wanted", 400, rpc(CodeVersion, `{"supported":["2027-01-01"]}`), EraUnknown, `only "2027-01-01"`},
		{"older versions wanted", 400, rpc(CodeVersion, `{"supported":["2025-11-25","2025-06-18"]}`), EraLegacy, `only "2025-11-25", "2025-06-18"`},
		{"no versions named", 400, rpc(CodeVersion, `null`), EraUnknown, "names no other"},
		{"header mismatch", 400, rpc(CodeHeaderMismatch, `null`), EraModern, "-32020"},
		{"missing capability", 400, rpc(CodeMissingCapability, `null`), EraModern, "-32021"},
		{"method unknown, 404", 404, rpc(CodeMethodNotFound, `null`), EraModern, "does not implement server/discover"},
		{"method unknown, 200", 200, rpc(CodeMethodNotFound, `null`), EraLegacy, "older"},
		{"no session", 400, rpc(-32000, `null`), EraLegacy, "older"},
		{"an error behind 401", 401, rpc(-32001, `null`), EraUnknown, "credentials"},
		{"an error behind 503", 503, rpc(-32000, `null`), EraUnknown, "cannot answer now"},
		{"400, nothing", 400, "", EraLegacy, "older"},
		{"401, nothing", 401, "", EraUnknown, "credentials"},
		{"404, a page", 404, "<html>", EraUnknown, "no MCP endpoint at this path"},
		{"405", 405, "", EraUnknown, "no MCP endpoint at this path"},
		{"307", 307, "", EraUnknown, "redirects"},
		{"429", 429, "slow down", EraUnknown, "cannot answer now"},
		{"200, a page", 200, "<html>", EraUnknown, "not an MCP answer"},
	} {
		got, words := ReadEra(tt.status, "text/plain; charset=x", []byte(tt.body))
		if got != tt.want || !strings.Contains(words, tt.words) {
			t.Errorf("%s: %v, %q; want %v and words with %q", tt.name, got, words, tt.want, tt.words)
		}
	}
}

func FuzzHeaderValue(f *testing.F) {
	for _, s := range []string{"", "a b", " x", "=?base64?eA==?=", "日本", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkHeaderValue(t, s)
		if v, err := DecodeHeaderValue(s); err == nil {
			if again, err := DecodeHeaderValue(EncodeHeaderValue(v)); again != v || err != nil {
				t.Fatalf("%q reads %q, which comes back as %q, %v", s, v, again, err)
			}
		}
	})
}

func TestHeaderValueProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkHeaderValue(t, rapid.OneOf(rapid.String(), rapid.StringMatching(`[ \t=?base64]*`)).Draw(t, "value"))
	})
	if _, err := base64.StdEncoding.DecodeString("SGVsbG9="); err != nil {
		t.Error("the test of strict decoding relies on the lenient one to accept this")
	}
}

// FuzzDecodeMessage holds the decoder to encoding/json: the same texts are
// JSON, and the same members are found.
func FuzzDecodeMessage(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":"a","result":{"resultType":"input_required","requestState":"\ud83d\ude00"}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"x","data":{"supported":["2026-07-28"]}}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":4,"progress":1e2,"total":2}}`,
		`[{"a":[{}," \" "]}]`, `{"jsonrpc":"2.0","\u0069d":1.5,"result":{"isError":true,"content":[{"text":"cancelled"}]}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeMessage(b)
		for _, s := range []string{m.ID.String(), m.Method, m.Err.Message, m.Result.Text, m.Result.TaskID, m.Progress.Message} {
			if len(s) > MaxText {
				t.Fatalf("a text of %d bytes is kept", len(s))
			}
		}
		if err != nil {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatalf("%q is a message to us, to encoding/json it is none: %v", b, err)
		}
		for name, got := range map[string]json.RawMessage{"params": m.Params, "result": m.Result.Raw} {
			if got != nil && string(got) != string(want[name]) {
				t.Fatalf("%s of %q = %s, encoding/json finds %s", name, b, got, want[name])
			}
		}
		if m.Kind == ResultResponse && m.ID.Valid() {
			again, err := DecodeMessage(AppendResult(nil, m.ID, m.Result.Raw))
			if d := cmp.Diff(m, again, cmp.AllowUnexported(ID{})); d != "" || err != nil {
				t.Fatalf("written again it is another message: %v\n%s", err, d)
			}
		}
	})
}

func FuzzValidateRequest(f *testing.F) {
	c := Call{ID: StringID("a"), Method: MethodToolsCall, Name: "t", Params: ToolCall("t", nil), Meta: Meta{ProgressToken: "p"}}
	f.Add(c.Body(), MethodToolsCall, "t", Version)
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"x"}}`), "", "", "")
	f.Add([]byte(`[1`), "ping", "=?base64?eA==?=", "x")
	f.Fuzz(func(t *testing.T, body []byte, method, name, version string) {
		h := asHeader([]Field{{"Content-Type", contentJSON}, {"Accept", "*/*"}, {HeaderMethod, method}, {HeaderName, name}, {HeaderVersion, version}})
		r, rpc := ValidateRequest(h, body)
		if rpc != nil {
			m, err := DecodeMessage(rpc.Body())
			if err != nil || m.Kind != ErrorResponse || m.ID != rpc.ID || rpc.HTTPStatus/100 != 4 {
				t.Fatalf("the answer %s with %d is no error: %+v, %v", rpc.Body(), rpc.HTTPStatus, m, err)
			}
			return
		}
		if !r.IsNotification() && (r.Method != strings.Trim(method, " \t") || r.Meta.Version != Version) {
			t.Fatalf("accepted with fields that differ from the body: %+v", r)
		}
	})
}

func TestAllocations(t *testing.T) {
	c := Call{ID: StringID("mf-abcdefghijkmn-123-1"), Method: MethodToolsCall, Name: "build_report",
		Params: ToolCall("build_report", json.RawMessage(`{"month":"2026-09"}`)),
		Meta:   Meta{ProgressToken: "mft-abcdefghijkmn-123-1", Traceparent: strings.Repeat("0", 55), Baggage: "mcpflood.call=1"}}
	dst := make([]byte, 0, 4096)
	for _, tt := range []struct {
		name string
		max  float64
		f    func()
	}{
		{"AppendBody", 0, func() { dst = c.AppendBody(dst[:0]) }},
		{"Headers", 1, func() { c.Headers() }},
		{"DecodeMessage progress", 1, func() { DecodeMessage(progressMessage) }}, // its token
		{"DecodeMessage result", 1, func() { DecodeMessage(resultMessage) }},     // its id
	} {
		// The least of many runs: under the race detector sync.Pool, which
		// encoding/json uses, forgets things on purpose.
		got := math.Inf(1)
		for range 50 {
			got = min(got, testing.AllocsPerRun(1, tt.f))
		}
		if got > tt.max {
			t.Errorf("%s allocates %v times, want at most %v", tt.name, got, tt.max)
		}
	}
}

var (
	progressMessage = []byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mft-abcdefghijkmn-123-1","progress":3,"total":10}}`)
	resultMessage   = []byte(`{"jsonrpc":"2.0","id":"mf-abcdefghijkmn-123-1","result":{"resultType":"complete","content":[{"type":"text","text":"done"}],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"demo","version":"1.2.0"}}}}`)
)

func BenchmarkDecodeMessage(b *testing.B) {
	large := AppendResult(nil, StringID("a"), CallResult{Text: strings.Repeat("some text, and \"more\" ", 3000)}.JSON())
	for _, bench := range []struct {
		name string
		in   []byte
	}{{"kind=progress", progressMessage}, {"kind=result", resultMessage}, {"kind=result/size=large", large}} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(bench.in)))
			for b.Loop() {
				if _, err := DecodeMessage(bench.in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendBody(b *testing.B) {
	c := Call{ID: StringID("mf-abcdefghijkmn-123-1"), Method: MethodToolsCall, Name: "build_report", Params: ToolCall("build_report", nil), Meta: Meta{ProgressToken: "t"}}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = c.AppendBody(dst[:0])
	}
}
