package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// JSON-RPC error codes (basic, "Error Codes").
const (
	CodeParse             = -32700
	CodeInvalidRequest    = -32600
	CodeMethodNotFound    = -32601
	CodeInvalidParams     = -32602
	CodeInternal          = -32603
	CodeHeaderMismatch    = -32020
	CodeMissingCapability = -32021
	CodeVersion           = -32022
)

// RPCError is an error that a server answers with. It is made by this package
// or by a handler, and is an error.
type RPCError struct {
	HTTPStatus int
	Code       int
	Message    string
	Data       json.RawMessage // empty: none
	// ID is the id of the request; zero if it could not be read. It is then
	// left out of the answer.
	ID ID
}

func (e *RPCError) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Body is the JSON-RPC error response.
func (e *RPCError) Body() []byte { return e.AppendBody(nil) }

// AppendBody appends the JSON-RPC error response.
func (e *RPCError) AppendBody(dst []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0",`...)
	if !e.ID.IsZero() {
		dst = append(dst, `"id":`...)
		dst = e.ID.Append(dst)
		dst = append(dst, ',')
	}
	dst = append(dst, `"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = appendQuoted(dst, e.Message)
	if len(e.Data) > 0 {
		dst = append(dst, `,"data":`...)
		dst = append(dst, e.Data...)
	}
	return append(dst, "}}"...)
}

// MethodNotFound answers a method that is not implemented, or that belongs to
// a capability that is not offered: 404, and the body tells it from a path
// that is not there.
func MethodNotFound(id ID, method string) *RPCError {
	return &RPCError{HTTPStatus: http.StatusNotFound, Code: CodeMethodNotFound, Message: "method not found: " + clip(method), ID: id}
}

// InvalidParams answers params of a wrong shape, an unknown tool, a bad
// cursor. The revision gives no status; 400 is that of its other -32602.
func InvalidParams(id ID, format string, args ...any) *RPCError {
	return &RPCError{HTTPStatus: http.StatusBadRequest, Code: CodeInvalidParams, Message: clip(fmt.Sprintf(format, args...)), ID: id}
}

// HeaderMismatch answers a header that is missing, malformed or unlike the
// body.
func HeaderMismatch(id ID, format string, args ...any) *RPCError {
	return &RPCError{HTTPStatus: http.StatusBadRequest, Code: CodeHeaderMismatch, Message: clip(fmt.Sprintf(format, args...)), ID: id}
}

// UnsupportedVersion answers a request of another revision.
func UnsupportedVersion(id ID, requested string) *RPCError {
	data := append([]byte(nil), `{"supported":["`+Version+`"],"requested":`...)
	data = append(appendQuoted(data, clip(requested)), '}')
	return &RPCError{HTTPStatus: http.StatusBadRequest, Code: CodeVersion, Message: "Unsupported protocol version", Data: data, ID: id}
}

// MissingCapability answers a request that cannot be served without a client
// capability that it did not declare. required is a capabilities object.
func MissingCapability(id ID, required json.RawMessage) *RPCError {
	data := append([]byte(nil), `{"requiredCapabilities":`...)
	data = append(append(data, orEmpty(required)...), '}')
	return &RPCError{HTTPStatus: http.StatusBadRequest, Code: CodeMissingCapability, Message: "Missing required client capability", Data: data, ID: id}
}

// InternalError answers a fault of the server's own.
func InternalError(id ID, text string) *RPCError {
	return &RPCError{HTTPStatus: http.StatusInternalServerError, Code: CodeInternal, Message: clip(text), ID: id}
}

// invalid answers what is no request at all.
func invalid(id ID, status int, text string) *RPCError {
	return &RPCError{HTTPStatus: status, Code: CodeInvalidRequest, Message: text, ID: id}
}

// clip cuts a text at [MaxText] bytes.
func clip(s string) string {
	if len(s) <= MaxText {
		return s
	}
	return s[:MaxText]
}
