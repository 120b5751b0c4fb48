package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseTools(t *testing.T) {
	page := `{"resultType":"complete","tools":[
		{"name":"a","title":"A","description":"does a","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"destructiveHint":false,"x":1}},
		{"name":"b","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":""}}}},
		{"name":"c"},
		7,
		{"name":"d","inputSchema":{"type":"object"},"annotations":{"idempotentHint":"true"}}
	],"nextCursor":"","ttlMs":5000,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"demo"}}}`
	got, err := ParseTools([]byte(page))
	if err != nil {
		t.Fatal(err)
	}
	yes, no, cursor := true, false, ""
	object := json.RawMessage(`{"type":"object"}`)
	want := ToolList{
		Tools: []Tool{
			{Name: "a", Title: "A", Description: "does a", InputSchema: object, Annotations: Annotations{ReadOnly: &yes, Destructive: &no}},
			{Name: "d", InputSchema: object},
		},
		Dropped: []DroppedTool{
			{"b", `x-mcp-header "" is no header name`},
			{"c", "inputSchema is missing or no object"},
			{"", "a tool without a name"},
		},
		NextCursor: &cursor, TTLMs: 5000, CacheScope: "private", ServerInfo: json.RawMessage(`{"name":"demo"}`),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !got.Tools[0].Annotations.Repeatable() || got.Tools[1].Annotations.Repeatable() {
		t.Error("only a hint that is true makes a tool repeatable")
	}

	want.Dropped = nil
	again, err := ParseTools(want.JSON())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, again); d != "" {
		t.Errorf("read, written and read again (-want +got):\n%s", d)
	}
	if got, err := ParseTools(ToolList{}.JSON()); err != nil || len(got.Tools) != 0 || got.NextCursor != nil {
		t.Errorf("an empty list reads back as %+v, %v", got, err)
	}
	for _, bad := range []string{``, `{}`, `{"tools":{}}`, `{"tools":[`} {
		if got, err := ParseTools([]byte(bad)); err == nil {
			t.Errorf("ParseTools(%s) = %+v, want an error", bad, got)
		}
	}
	if got := string(CursorParams(`a"b`)); got != `{"cursor":"a\"b"}` {
		t.Errorf("CursorParams = %s", got)
	}
}

func TestHeaderParamRules(t *testing.T) {
	// From the rules of the specification and the tables of the proposal. A
	// schema is given by its properties, or whole where it begins with {"type.
	for _, tt := range []struct{ schema, want string }{
		{`"r":{"type":"string","x-mcp-header":"Region"}`, "Region r string"},
		{`"r":{"type":"string","x-mcp-header":"Method"}`, "Method r string"},
		{`"n":{"type":"integer","x-mcp-header":"B"},"b":{"type":"boolean","x-mcp-header":"A"}`, "A b boolean, B n integer"},
		{`"o":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"R"}}}`, "R o.r string"},
		{`"r":{"type":["string","null"],"x-mcp-header":"R"}`, "R r string"},
		{`"x-mcp-header":{"type":"string"}`, ""},      // a property of that name
		{`"properties":{"type":"string"}`, ""},        // likewise
		{`"r":{"enum":[{"x-mcp-header":"R"}]}`, ""},   // data, not a schema
		{`"r":{"default":{"x-mcp-header":"R"}}`, ""},  // likewise
		{`"r":{"const":{"x-mcp-header":"R"}}`, ""},    // likewise
		{`"r":{"examples":[{"x-mcp-header":1}]}`, ""}, // likewise

		{`"r":{"type":"string","x-mcp-header":""}`, "!no header name"},
		{`"r":{"type":"string","x-mcp-header":7}`, "!no header name"},
		{`"r":{"type":"string","x-mcp-header":"My Region"}`, "!no header name"},
		{`"r":{"type":"string","x-mcp-header":"Region:Primary"}`, "!no header name"},
		{`"r":{"type":"string","x-mcp-header":"Région"}`, "!no header name"},
		{`"r":{"type":"string","x-mcp-header":"Region\t1"}`, "!no header name"},
		{`"a":{"type":"string","x-mcp-header":"Region"},"b":{"type":"string","x-mcp-header":"Region"}`, "!twice"},
		{`"a":{"type":"string","x-mcp-header":"Region"},"b":{"type":"string","x-mcp-header":"REGION"}`, "!twice"},
		{`"r":{"type":"array","x-mcp-header":"R"}`, "!type \"array\""},
		{`"r":{"type":"object","x-mcp-header":"R"}`, "!type \"object\""},
		{`"r":{"type":"null","x-mcp-header":"R"}`, "!type \"null\""},
		{`"r":{"type":"number","x-mcp-header":"R"}`, "!type \"number\""},
		{`"r":{"x-mcp-header":"R"}`, "!type"},
		{`"r":{"type":["string","integer"],"x-mcp-header":"R"}`, "!type"},
		{`"r":{"type":"array","items":{"type":"string","x-mcp-header":"R"}}`, "!properties alone"},
		{`"r":{"type":"array","items":{"properties":{"q":{"type":"string","x-mcp-header":"R"}}}}`, "!properties alone"},
		{`"r":{"anyOf":[{"type":"string","x-mcp-header":"R"}]}`, "!properties alone"},
		{`"r":{"not":{"type":"string","x-mcp-header":"R"}}`, "!properties alone"},
		{`"r":{"if":{},"then":{"properties":{"q":{"type":"string","x-mcp-header":"R"}}}}`, "!properties alone"},
		{`{"type":"object","$defs":{"d":{"type":"string","x-mcp-header":"R"}}}`, "!properties alone"},
		{`{"type":"object","patternProperties":{"d":{"type":"string","x-mcp-header":"R"}}}`, "!properties alone"},
		{`{"type":"object","additionalProperties":{"type":"string","x-mcp-header":"R"}}`, "!properties alone"},
		{`{"type":"object","x-mcp-header":"R"}`, "!properties alone"},
		{`"r":` + strings.Repeat(`{"properties":{"r":`, 70) + `{}` + strings.Repeat(`}}`, 70), "!deeper than 64"},
		{manyHeaders(maxHeaderParams + 1), "!more than 128"},
	} {
		schema := tt.schema
		if !strings.HasPrefix(schema, `{"type`) {
			schema = `{"type":"object","properties":{` + schema + `}}`
		}
		tool, err := ParseTool([]byte(`{"name":"t","inputSchema":` + schema + `}`))
		if wantErr, bad := strings.CutPrefix(tt.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), wantErr) || tool.Name != "t" {
				t.Errorf("%.120s: %v, want an error with %q and the tool's name", schema, err, wantErr)
			}
			continue
		}
		var got []string
		for _, p := range tool.HeaderParams {
			got = append(got, fmt.Sprint(p.Header, " ", strings.Join(p.Path, "."), " ", p.Type))
		}
		if err != nil || strings.Join(got, ", ") != tt.want {
			t.Errorf("%s: %q, %v, want %q", schema, got, err, tt.want)
		}
	}
}

func manyHeaders(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(`"p%d":{"type":"string","x-mcp-header":"H%d"}`, i, i))
	}
	return strings.Join(out, ",")
}

// mirrored is a tool that asks for every kind of header.
func mirrored(t interface{ Fatal(...any) }) Tool {
	tool, err := ParseTool([]byte(`{"name":"t","inputSchema":{"type":"object","properties":{
		"s":{"type":"string","x-mcp-header":"S"},"i":{"type":"integer","x-mcp-header":"I"},"b":{"type":"boolean","x-mcp-header":"B"},
		"o":{"type":"object","properties":{"s":{"type":"string","x-mcp-header":"O"}}},"plain":{"type":"string"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func TestParamHeaders(t *testing.T) {
	tool := mirrored(t)
	for _, tt := range []struct{ args, want string }{
		{``, ""},
		{`{}`, ""},
		{`{"plain":"x","other":1}`, ""},
		{`{"s":null,"i":null,"o":null}`, ""},
		{`{"s":"us-west1","i":42,"b":true,"o":{"s":"x"}}`, "B: true|I: 42|O: x|S: us-west1"},
		{`{"s":"","i":-7,"b":false}`, "B: false|I: -7|S: "},
		{`{"s":"日本語"}`, "S: =?base64?5pel5pys6Kqe?="},
		{`{"s":"a\u000ab"}`, "S: =?base64?YQpi?="},
		{`{"i":42.0}`, "I: 42"},
		{`{"i":1e3}`, "I: 1000"},
		{`{"i":-0}`, "I: 0"},
		{`{"i":9007199254740991}`, "I: 9007199254740991"},
		{`{"i":9007199254740992}`, `!argument "i"`},
		{`{"i":1.5}`, `!argument "i"`},
		{`{"i":1e999}`, `!argument "i"`},
		{`{"o":{"s":[1]}}`, `!argument "o.s"`},
		{`{"o":7}`, ""},
		{`{`, "!no JSON"},
	} {
		fields, err := tool.ParamHeaders([]byte(tt.args))
		if want, bad := strings.CutPrefix(tt.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("ParamHeaders(%s) = %v, %v, want an error with %q", tt.args, fields, err, want)
			}
			continue
		}
		var got []string
		for _, f := range fields {
			got = append(got, strings.TrimPrefix(f.Name, "Mcp-Param-")+": "+f.Value)
		}
		if err != nil || strings.Join(got, "|") != tt.want {
			t.Errorf("ParamHeaders(%s) = %q, %v, want %q", tt.args, got, err, tt.want)
		}
		if rpc := tool.CheckParamHeaders(asHeader(fields), ID{}, []byte(tt.args)); rpc != nil {
			t.Errorf("a server refuses the fields of %s: %v", tt.args, rpc)
		}
	}
}

func TestCheckParamHeaders(t *testing.T) {
	tool := mirrored(t)
	for _, tt := range []struct {
		name, args string
		fields     []Field
		ok         bool
	}{
		{"the mark around a plain text", `{"s":"Hello"}`, []Field{{"mcp-param-s", "=?base64?SGVsbG8=?="}}, true},
		{"a field that no schema names", `{"s":"x"}`, []Field{{"Mcp-Param-S", "x"}, {"Mcp-Param-Other", "\xff"}}, true},
		{"an integer written another way", `{"i":42}`, []Field{{"Mcp-Param-I", "42.0"}}, true},
		{"likewise in the body", `{"i":42.0}`, []Field{{"Mcp-Param-I", "42"}}, true},
		{"without the mark it is a plain text", `{"s":"SGVsbG8="}`, []Field{{"Mcp-Param-S", "SGVsbG8="}}, true},
		{"an argument of the wrong type is the tool's matter", `{"s":[1]}`, nil, true},
		{"missing", `{"s":"x"}`, nil, false},
		{"another value", `{"s":"x"}`, []Field{{"Mcp-Param-S", "y"}}, false},
		{"another integer", `{"i":42}`, []Field{{"Mcp-Param-I", "43"}}, false},
		{"no integer", `{"i":42}`, []Field{{"Mcp-Param-I", "0x2a"}}, false},
		{"bad padding", `{"s":"Hello"}`, []Field{{"Mcp-Param-S", "=?base64?SGVsbG8?="}}, false},
		{"illegal characters", `{"s":"日本"}`, []Field{{"Mcp-Param-S", "日本"}}, false},
		{"twice", `{"s":"x"}`, []Field{{"Mcp-Param-S", "x"}, {"Mcp-Param-S", "x"}}, false},
		{"there, without its argument", `{}`, []Field{{"Mcp-Param-S", "x"}}, false},
		{"there, with null", `{"s":null}`, []Field{{"Mcp-Param-S", "null"}}, false},
	} {
		rpc := tool.CheckParamHeaders(asHeader(tt.fields), IntID(1), []byte(tt.args))
		if (rpc == nil) != tt.ok || rpc != nil && (rpc.Code != CodeHeaderMismatch || rpc.HTTPStatus != 400 || rpc.ID != IntID(1)) {
			t.Errorf("%s: %v, want accepted %v", tt.name, rpc, tt.ok)
		}
	}
}

const argsSchema = `{"type":"object","properties":{
	"s":{"type":"string"},"i":{"type":"integer"},"n":{"type":"number"},"b":{"type":"boolean"},
	"list":{"type":"array","items":{"type":"string"}},"obj":{"type":"object"},
	"color":{"type":"string","enum":["red","green"]},"level":{"enum":[1,2,"max",null]},"fixed":{"const":"x"},
	"maybe":{"type":["integer","null"]},"text":{"type":["string","null"]},"either":{"type":["string","integer"]},
	"opt":{"anyOf":[{"type":"number"},{"type":"null"}]},"ref":{"$ref":"#/$defs/Size"},"deep":{"allOf":[{"$ref":"#/$defs/Size"}]},
	"loop":{"$ref":"#/$defs/Loop"},"far":{"$ref":"https://example.com/s.json"},"free":{},"any":true,"month":{"type":"string","description":"YYYY-MM"}
},"$defs":{"Size":{"type":"string","enum":["S","L"]},"Loop":{"anyOf":[{"$ref":"#/$defs/Loop"},{"$ref":"#/$defs/Loop"},{"type":"integer"}]}}}`

func TestTypedArgs(t *testing.T) {
	tool := Tool{Name: "t", InputSchema: json.RawMessage(argsSchema)}
	for _, tt := range []struct{ arg, want string }{
		{"s=3", `"3"`}, {"s=", `""`}, {"s=true", `"true"`}, {`s="x"`, `"\"x\""`}, {"s=é\n", `"é\n"`},
		{"i=3", `3`}, {"i=-3", `-3`}, {"i= 3 ", `3`},
		{"i=12345678901234567890123", `12345678901234567890123`},
		{"n=1.5", `1.5`}, {"n=3", `3`}, {"n=1e3", `1e3`},
		{"b=true", `true`}, {"b=false", `false`},
		{`list=["a","b"]`, `["a","b"]`}, {"list=[]", `[]`}, {`obj={"a":{"b":1}}`, `{"a":{"b":1}}`},
		{"color=red", `"red"`}, {"level=2", `2`}, {"level=max", `"max"`}, {"level=null", `null`}, {"fixed=x", `"x"`},
		{"maybe=3", `3`}, {"maybe=null", `null`}, {"text=x", `"x"`}, {"text=null", `null`}, {"either=3", `3`}, {"either=x", `"x"`},
		{"opt=1.5", `1.5`}, {"opt=null", `null`}, {"ref=S", `"S"`}, {"deep=L", `"L"`}, {"loop=3", `3`},
		{"far=3", `3`}, {"far=x y", `"x y"`}, {`free={"a":1}`, `{"a":1}`}, {"free={", `"{"`}, {"any=null", `null`},

		{"i=x", `!argument "i": "x" does not fit, want an integer like 3`},
		{"i=1.5", `!argument "i": "1.5" does not fit, want an integer like 3`},
		{"i=1e3", "!integer"}, {"i=03", "!integer"}, {"i=", "!integer"}, {"i=NaN", "!integer"},
		{"n=Infinity", "!a number like 1.5"}, {"n=0x10", "!number"},
		{"b=yes", `!argument "b": "yes" does not fit, want true or false`}, {"b=1", "!true or false"}, {"b=True", "!true or false"},
		{"list=a,b", `!want an array as JSON like ["a","b"]`}, {"obj=[]", `!want an object as JSON`},
		{"color=blue", "!want one of red, green"}, {"color=\"red\"x", "!one of red, green"}, {"level=3", "!one of 1, 2, max, null"},
		{"fixed=y", "!one of x"}, {"maybe=x", "!want an integer like 3, or null"}, {"ref=M", "!one of S, L"}, {"loop=x", "!integer"},
		{"mnth=2026-09", `!argument "mnth": tool "t" has none of that name, did you mean "month"?`},
		{"Month=2026-09", `!did you mean "month"?`},
		{"entirely-unlike=1", `!argument "entirely-unlike": tool "t" has none of that name, only any, b, color, deep, either, far, fixed, free, ...`},
	} {
		name, value, _ := strings.Cut(tt.arg, "=")
		got, err := tool.TypedArgs(map[string]string{name: value})
		if want, bad := strings.CutPrefix(tt.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), want) || got != nil {
				t.Errorf("%s: %s, %v; want an error with %q", tt.arg, got, err, want)
			}
			continue
		}
		if want := fmt.Sprintf(`{%q:%s}`, name, tt.want); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", tt.arg, got, err, want)
		}
	}
}

func TestTypedArgsWhole(t *testing.T) {
	for _, tt := range []struct {
		name, schema string
		kv           map[string]string
		want         string
	}{
		{"none", `{"type":"object"}`, nil, `{}`},
		{"sorted", `{"properties":{"b":{"type":"integer"},"a":{"type":"string"}}}`, map[string]string{"b": "1", "a": "x"}, `{"a":"x","b":1}`},
		{"an open schema", `{"type":"object"}`, map[string]string{"x": "1"}, `{"x":1}`},
		{"others allowed", `{"properties":{},"additionalProperties":true}`, map[string]string{"x": "a b"}, `{"x":"a b"}`},
		{"others of a type", `{"properties":{},"additionalProperties":{"type":"string"}}`, map[string]string{"x": "1"}, `{"x":"1"}`},
		{"others by pattern", `{"properties":{},"patternProperties":{"^x":{}}}`, map[string]string{"x": "1"}, `{"x":1}`},
		{"others refused", `{"additionalProperties":false}`, map[string]string{"x": "1"}, `!argument "x": tool "t" takes none`},
		{"no arguments", `{"properties":{}}`, map[string]string{"x": "1"}, `!argument "x": tool "t" takes none`},
		{"required", `{"properties":{"a":{"type":"integer"},"b":{}},"required":["a","b",7]}`, map[string]string{"b": "1"},
			`!argument "a" is required: give a=VALUE, want an integer like 3`},
		{"all at once", `{"properties":{"a":{"type":"integer"},"b":{"type":"boolean"},"c":{}},"required":["c"]}`, map[string]string{"b": "x", "a": "y", "z": "1"},
			"!argument \"a\": \"y\" does not fit, want an integer like 3\n" +
				"argument \"b\": \"x\" does not fit, want true or false\n" +
				"argument \"z\": tool \"t\" has none of that name, only a, b, c\n" +
				"argument \"c\" is required: give c=VALUE, want any value"},
		{"a schema that is none", `{`, nil, "!not JSON"},
	} {
		got, err := Tool{Name: "t", InputSchema: json.RawMessage(tt.schema)}.TypedArgs(tt.kv)
		if want, bad := strings.CutPrefix(tt.want, "!"); bad {
			if err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s: %s, %v; want the error %s", tt.name, got, err, want)
			}
			continue
		}
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.name, got, err, tt.want)
		}
	}
}

// Whatever arguments are made of whatever texts, they are JSON, and their
// headers are those that a server wants.
func TestArgsAndHeadersAgree(t *testing.T) {
	tool := mirrored(t)
	rapid.Check(t, func(t *rapid.T) {
		kv := map[string]string{}
		for _, name := range []string{"s", "plain"} {
			if rapid.Bool().Draw(t, "with "+name) {
				kv[name] = rapid.String().Draw(t, name)
			}
		}
		kv["i"] = fmt.Sprint(rapid.Int64Range(-maxSafeInteger, maxSafeInteger).Draw(t, "i"))
		kv["b"] = fmt.Sprint(rapid.Bool().Draw(t, "b"))
		args, err := tool.TypedArgs(kv)
		if err != nil {
			t.Fatal(err)
		}
		var back map[string]any
		if err := json.Unmarshal(args, &back); err != nil || len(back) != len(kv) {
			t.Fatalf("%v makes %s: %v", kv, args, err)
		}
		fields, err := tool.ParamHeaders(args)
		if err != nil {
			t.Fatal(err)
		}
		if rpc := tool.CheckParamHeaders(asHeader(fields), ID{}, args); rpc != nil {
			t.Fatalf("a server refuses %v for %s: %v", fields, args, rpc)
		}
		for i := range fields {
			less := append(append([]Field{}, fields[:i]...), fields[i+1:]...)
			if tool.CheckParamHeaders(asHeader(less), ID{}, args) == nil {
				t.Fatalf("a server accepts %s without %v", args, fields[i])
			}
		}
	})
}

func FuzzTool(f *testing.F) {
	f.Add([]byte(`{"name":"t","inputSchema":`+argsSchema+`}`), "color", "red", []byte(`{"s":1}`))
	f.Add([]byte(`{"name":"t","inputSchema":{"properties":{"a":{"type":"integer","x-mcp-header":"A"}}}}`), "a", "7", []byte(`{"a":7.0}`))
	f.Fuzz(func(t *testing.T, raw []byte, name, value string, args []byte) {
		tool, err := ParseTool(raw)
		if err != nil {
			return
		}
		if made, err := tool.TypedArgs(map[string]string{name: value}); err == nil && !json.Valid(made) {
			t.Fatalf("%q=%q makes %s", name, value, made)
		}
		if fields, err := tool.ParamHeaders(args); err == nil {
			if rpc := tool.CheckParamHeaders(asHeader(fields), ID{}, args); rpc != nil {
				t.Fatalf("a server refuses %v for %s: %v", fields, args, rpc)
			}
		}
	})
}
