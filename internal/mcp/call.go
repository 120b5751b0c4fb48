package mcp

import (
	"encoding/json"
)

// Keys of the _meta of a request (basic, "_meta").
const (
	MetaVersion      = "io.modelcontextprotocol/protocolVersion"
	MetaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaClientInfo   = "io.modelcontextprotocol/clientInfo"
	MetaServerInfo   = "io.modelcontextprotocol/serverInfo"
	MetaLogLevel     = "io.modelcontextprotocol/logLevel"
	MetaToken        = "progressToken"
	MetaTraceparent  = "traceparent"
	MetaTracestate   = "tracestate"
	MetaBaggage      = "baggage"
)

// Methods that this package knows by name.
const (
	MethodDiscover  = "server/discover"
	MethodToolsList = "tools/list"
	MethodToolsCall = "tools/call"
	MethodProgress  = "notifications/progress"
	MethodMessage   = "notifications/message"
	MethodCancelled = "notifications/cancelled"
)

// NameParam is the member of params that the Mcp-Name header of a method
// mirrors; empty where a method has no such header.
func NameParam(method string) string {
	switch method {
	case MethodToolsCall, "prompts/get":
		return "name"
	case "resources/read":
		return "uri"
	case "tasks/get", "tasks/update", "tasks/cancel":
		return "taskId"
	}
	return ""
}

// Meta is what a request says about itself and its client. Fields that are
// empty are left out, but for the two that every request needs.
type Meta struct {
	Version       string          // empty: [Version]
	Capabilities  json.RawMessage // an object; empty: {}
	ClientInfo    json.RawMessage // an object
	ProgressToken string
	Traceparent   string
	Tracestate    string
	Baggage       string
	LogLevel      string
}

// Call is one request of ours, ready to be written.
type Call struct {
	ID     ID
	Method string
	// Name is the value of the Mcp-Name header, not yet encoded: what
	// [NameParam] names. Empty: no such header.
	Name string
	// Params is an object without _meta; empty stands for {}.
	Params json.RawMessage
	Meta   Meta
	// ParamHeaders are the Mcp-Param-* fields, from [Tool.ParamHeaders].
	ParamHeaders []Field
}

// ToolCall is the params of a tools/call. args is an object; empty: {}.
func ToolCall(name string, args json.RawMessage) json.RawMessage {
	dst := make([]byte, 0, len(name)+len(args)+32)
	dst = append(dst, `{"name":`...)
	dst = appendQuoted(dst, name)
	dst = append(dst, `,"arguments":`...)
	dst = append(dst, orEmpty(args)...)
	return append(dst, '}')
}

// Retry is the params of the next round of a request that was answered
// input_required: the first params, the state given back byte for byte (and
// left out if there was none), and the answers, if there are any
// (basic/patterns/mrtr). params is what the first round sent.
func Retry(params json.RawMessage, state, responses json.RawMessage) json.RawMessage {
	dst := make([]byte, 0, len(params)+len(state)+len(responses)+48)
	dst = append(dst, openObject(params)...)
	for _, m := range []struct {
		name string
		val  json.RawMessage
	}{{"inputResponses", responses}, {"requestState", state}} {
		if len(m.val) > 0 {
			dst = appendMember(dst, m.name)
			dst = append(dst, m.val...)
		}
	}
	return append(dst, '}')
}

func orEmpty(object json.RawMessage) json.RawMessage {
	if len(object) == 0 {
		return json.RawMessage("{}")
	}
	return object
}

// openObject is an object of ours without its closing brace.
func openObject(object json.RawMessage) []byte {
	b := trim(orEmpty(object))
	if !isObject(b) || b[len(b)-1] != '}' {
		panic("mcp: invariant: params of a request are an object")
	}
	return trim(b[:len(b)-1])
}

// appendMember begins a member of an object that dst ends in.
func appendMember(dst []byte, name string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = appendQuoted(dst, name)
	return append(dst, ':')
}

// Body is the JSON-RPC request.
func (c Call) Body() []byte {
	return c.AppendBody(make([]byte, 0, 512+len(c.Params)+len(c.Meta.Capabilities)+len(c.Meta.ClientInfo)))
}

// AppendBody appends the JSON-RPC request to dst. Params that are no object
// panic: they are made by us.
func (c Call) AppendBody(dst []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = c.ID.Append(dst)
	dst = append(dst, `,"method":`...)
	dst = appendQuoted(dst, c.Method)
	dst = append(dst, `,"params":`...)
	dst = append(dst, openObject(c.Params)...)
	dst = appendMember(dst, "_meta")
	dst = c.Meta.append(dst)
	return append(dst, "}}"...)
}

func (m Meta) version() string {
	if m.Version == "" {
		return Version
	}
	return m.Version
}

func (m Meta) append(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendMember(dst, MetaVersion)
	dst = appendQuoted(dst, m.version())
	dst = appendMember(dst, MetaCapabilities)
	dst = append(dst, orEmpty(m.Capabilities)...)
	if len(m.ClientInfo) > 0 {
		dst = appendMember(dst, MetaClientInfo)
		dst = append(dst, m.ClientInfo...)
	}
	for _, f := range [...]Field{
		{MetaToken, m.ProgressToken},
		{MetaTraceparent, m.Traceparent},
		{MetaTracestate, m.Tracestate},
		{MetaBaggage, m.Baggage},
		{MetaLogLevel, m.LogLevel},
	} {
		if f.Value != "" {
			dst = appendMember(dst, f.Name)
			dst = appendQuoted(dst, f.Value)
		}
	}
	return append(dst, '}')
}

// Headers are the header fields of the request, in order and ready for the
// wire; Host, Content-Length, Authorization are not among them.
func (c Call) Headers() []Field {
	out := make([]Field, 0, 5+len(c.ParamHeaders))
	out = append(out,
		Field{"Content-Type", contentJSON},
		Field{"Accept", contentJSON + ", " + contentSSE},
		Field{HeaderVersion, c.Meta.version()},
		Field{HeaderMethod, c.Method})
	if c.Name != "" {
		out = append(out, Field{HeaderName, EncodeHeaderValue(c.Name)})
	}
	return append(out, c.ParamHeaders...)
}
