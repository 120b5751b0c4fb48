package mcp

import (
	"encoding/json"
	"strconv"
)

// AppendResult appends the response to a request. result is an object.
func AppendResult(dst []byte, id ID, result json.RawMessage) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = id.Append(dst)
	dst = append(dst, `,"result":`...)
	dst = append(dst, orEmpty(result)...)
	return append(dst, '}')
}

// AppendNotification appends a notification. params is an object; empty: none.
func AppendNotification(dst []byte, method string, params json.RawMessage) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":`...)
	dst = appendQuoted(dst, method)
	if len(params) > 0 {
		dst = append(dst, `,"params":`...)
		dst = append(dst, params...)
	}
	return append(dst, '}')
}

// AppendProgress appends notifications/progress. Its numbers must be finite.
func AppendProgress(dst []byte, p Progress) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":"`+MethodProgress+`","params":{"progressToken":`...)
	dst = p.Token.Append(dst)
	dst = append(dst, `,"progress":`...)
	dst = strconv.AppendFloat(dst, p.Progress, 'f', -1, 64)
	if p.HasTotal {
		dst = append(dst, `,"total":`...)
		dst = strconv.AppendFloat(dst, p.Total, 'f', -1, 64)
	}
	if p.Message != "" {
		dst = append(dst, `,"message":`...)
		dst = appendQuoted(dst, p.Message)
	}
	return append(dst, "}}"...)
}

// CallResult is a complete result of tools/call with one text.
type CallResult struct {
	Text       string
	IsError    bool
	Structured json.RawMessage // structuredContent; empty: none
	ServerInfo json.RawMessage // an object; empty: left out
}

// JSON is the result object, resultType included.
func (r CallResult) JSON() json.RawMessage {
	dst := append([]byte(nil), `{"resultType":"complete","content":[{"type":"text","text":`...)
	dst = append(appendQuoted(dst, r.Text), "}]"...)
	if len(r.Structured) > 0 {
		dst = append(append(dst, `,"structuredContent":`...), r.Structured...)
	}
	if r.IsError {
		dst = append(dst, `,"isError":true`...)
	}
	return append(appendServerInfo(dst, r.ServerInfo), '}')
}

// InputRequired is a result that asks the client to come back with state and
// nothing else: how a server sheds load (basic/patterns/mrtr).
func InputRequired(state string, serverInfo json.RawMessage) json.RawMessage {
	dst := append([]byte(nil), `{"resultType":"input_required","requestState":`...)
	return append(appendServerInfo(appendQuoted(dst, state), serverInfo), '}')
}

func appendServerInfo(dst []byte, info json.RawMessage) []byte {
	if len(info) == 0 {
		return dst
	}
	dst = append(dst, `,"_meta":{"`+MetaServerInfo+`":`...)
	return append(append(dst, info...), '}')
}
