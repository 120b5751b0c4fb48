package mcp

import (
	"encoding/json"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// HeaderGetter gives the values of a header field, by name without regard to
// case; [net/http.Header] is one.
type HeaderGetter interface{ Values(name string) []string }

// ServerRequest is a request, or a notification, that a server has accepted as well
// formed. Raw values alias the body.
type ServerRequest struct {
	ID     ID // zero: a notification
	Method string
	Params json.RawMessage // with _meta
	// Name is the value that [NameParam] names.
	Name      string
	Arguments json.RawMessage // of tools/call; an object; empty: none given
	// RequestState is a JSON string that a client gives back; nil: none.
	RequestState json.RawMessage
	Meta         ServerMeta
}

// ServerMeta is the _meta of a request.
type ServerMeta struct {
	Version       string
	ProgressToken ID // zero: no progress wanted
	Capabilities  json.RawMessage
	ClientInfo    json.RawMessage // nil: none
	LogLevel      string          // empty: no log messages wanted
	Traceparent   string
	Tracestate    string
	Baggage       string
}

// IsNotification reports whether no answer is wanted, but 202. Meta is then
// empty.
func (r ServerRequest) IsNotification() bool { return r.ID.IsZero() }

// ValidateRequest checks one POST as a server of this revision must, and reads
// what a handler needs of it. An error is ready to be sent, with the HTTP
// status that goes with it. Checks run in this order, and the first that fails
// decides, which is what the conformance suite expects:
//
//   - JSON-RPC form: -32700, -32600
//   - the request's Content-Type and Accept: -32600 with 415, 406
//   - Mcp-Method and Mcp-Name, MCP-Protocol-Version present: -32020
//   - the required _meta keys: -32602
//   - MCP-Protocol-Version against _meta: -32020
//   - the version itself: -32022
//
// An initialize of an older revision gets -32022, so that the client learns
// which revisions there are. Whether a method or a tool exists, and the
// Mcp-Param fields (see [Tool.CheckParamHeaders]), are the server's matter, as
// is the Origin (see [CheckOrigin]). A notification is not held to any header:
// the revision leaves that open (transports/streamable-http, "Sending Messages").
func ValidateRequest(header HeaderGetter, body []byte) (ServerRequest, *RPCError) {
	r, rpc := readRequest(body)
	if rpc == nil {
		rpc = checkMedia(header, r.ID)
	}
	if rpc == nil && !r.IsNotification() {
		rpc = r.check(header)
	}
	if rpc != nil {
		return ServerRequest{}, rpc
	}
	return r, nil
}

// check holds a request to everything past its JSON-RPC form.
func (r *ServerRequest) check(header HeaderGetter) *RPCError {
	if rpc := r.checkLegacy(header); rpc != nil {
		return rpc
	}
	if rpc := r.checkHeaders(header); rpc != nil {
		return rpc
	}
	if rpc := r.readMeta(); rpc != nil {
		return rpc
	}
	version, rpc := oneHeader(header, r.ID, HeaderVersion)
	switch {
	case rpc != nil:
		return rpc
	case version != r.Meta.Version:
		return HeaderMismatch(r.ID, "%s %q does not match _meta %q", HeaderVersion, version, r.Meta.Version)
	case version != Version:
		return UnsupportedVersion(r.ID, version)
	case NameParam(r.Method) != "" && r.Name == "":
		return InvalidParams(r.ID, "params.%s of %s is missing or no text", NameParam(r.Method), r.Method)
	case len(r.Arguments) > 0 && !isObject(r.Arguments):
		return InvalidParams(r.ID, "params.arguments must be an object")
	}
	return nil
}

// readRequest checks the JSON-RPC form of a body (basic, "Messages").
func readRequest(body []byte) (ServerRequest, *RPCError) {
	if len(body) > MaxMessage {
		return ServerRequest{}, invalid(ID{}, http.StatusRequestEntityTooLarge, "message too large")
	}
	if !utf8.Valid(body) {
		return ServerRequest{}, &RPCError{HTTPStatus: http.StatusBadRequest, Code: CodeParse, Message: "the body is not UTF-8"}
	}
	e, err := readEnvelope(body)
	id := parseID(e.id)
	if !id.Valid() || len(id.text) >= MaxText {
		id = ID{}
	}
	bad := func(text string) (ServerRequest, *RPCError) {
		return ServerRequest{}, invalid(id, http.StatusBadRequest, text)
	}
	switch {
	case err == errNotJSON:
		return ServerRequest{}, &RPCError{HTTPStatus: http.StatusBadRequest, Code: CodeParse, Message: "the body is not JSON"}
	case err != nil:
		return bad(err.Error())
	case e.id != nil && id.IsZero():
		return bad("an id is a string or an integer of reasonable length, and never null")
	case e.result != nil || e.err != nil:
		return bad("a client sends no responses")
	case !isString(e.method):
		return bad("method is missing or no string")
	case e.params != nil && !isObject(e.params):
		return bad("params must be an object")
	}
	r := ServerRequest{ID: id, Method: unquote(e.method, MaxText), Params: e.params}
	name := NameParam(r.Method)
	for m := members(e.params); m.next(); {
		switch key := string(m.key); {
		case name != "" && key == name:
			r.Name = unquote(m.val, len(m.val))
		case key == "arguments":
			r.Arguments = m.val
		case key == "requestState" && isString(m.val):
			r.RequestState = m.val
		}
	}
	return r, nil
}

// checkMedia checks what the request sends and takes. The revision obliges the
// client to list both types and leaves the answer to one that does not to the
// server.
func checkMedia(header HeaderGetter, id ID) *RPCError {
	if t, _, err := mime.ParseMediaType(first(header.Values("Content-Type"))); err != nil || t != contentJSON {
		return invalid(id, http.StatusUnsupportedMediaType, "Content-Type must be "+contentJSON)
	}
	json, sse := false, false
	for part := range strings.SplitSeq(strings.Join(header.Values("Accept"), ","), ",") {
		t, _, _ := strings.Cut(part, ";")
		t = strings.ToLower(strings.TrimSpace(t))
		json = json || t == contentJSON || t == "application/*" || t == "*/*"
		sse = sse || t == contentSSE || t == "text/*" || t == "*/*"
	}
	if !json || !sse {
		return invalid(id, http.StatusNotAcceptable, "Accept must list "+contentJSON+" and "+contentSSE)
	}
	return nil
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// checkLegacy answers the handshake of an older revision (basic/versioning,
// "Backward Compatibility").
func (r *ServerRequest) checkLegacy(header HeaderGetter) *RPCError {
	version := first(header.Values(HeaderVersion))
	if r.Method != "initialize" || version == Version {
		return nil
	}
	if v, _ := member(r.Params, "protocolVersion"); isString(v) {
		version = unquote(v, MaxText)
	}
	return UnsupportedVersion(r.ID, version)
}

// checkHeaders checks the standard headers that need no _meta
// (transports/streamable-http, "Server Validation").
func (r *ServerRequest) checkHeaders(header HeaderGetter) *RPCError {
	if _, rpc := oneHeader(header, r.ID, HeaderVersion); rpc != nil {
		return rpc
	}
	got, rpc := oneHeader(header, r.ID, HeaderMethod)
	if rpc != nil {
		return rpc
	}
	// Mcp-Method is no place for the sentinel: it is compared as it stands.
	if got != r.Method {
		return HeaderMismatch(r.ID, "%s %q does not match method %q", HeaderMethod, got, r.Method)
	}
	param := NameParam(r.Method)
	if param == "" {
		return nil
	}
	if r.Name == "" && len(header.Values(HeaderName)) == 0 {
		return nil // nothing to mirror: the params are at fault
	}
	if got, rpc = oneHeader(header, r.ID, HeaderName); rpc != nil {
		return rpc
	}
	name, err := DecodeHeaderValue(got)
	if err != nil {
		return HeaderMismatch(r.ID, "%s: %v", HeaderName, err)
	}
	if name != r.Name {
		return HeaderMismatch(r.ID, "%s %q does not match params.%s %q", HeaderName, name, param, r.Name)
	}
	return nil
}

// oneHeader reads a field that must be there once.
func oneHeader(header HeaderGetter, id ID, name string) (string, *RPCError) {
	values := header.Values(name)
	switch {
	case len(values) == 0:
		return "", HeaderMismatch(id, "%s is missing", name)
	case len(values) > 1:
		return "", HeaderMismatch(id, "%s is there %d times", name, len(values))
	case !legalHeaderValue(values[0]):
		return "", HeaderMismatch(id, "%s has illegal characters", name)
	}
	return strings.Trim(values[0], " \t"), nil
}

var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// readMeta reads and checks _meta (basic, "_meta").
func (r *ServerRequest) readMeta() *RPCError {
	meta, _ := member(r.Params, "_meta")
	if !isObject(meta) {
		return InvalidParams(r.ID, "params._meta is missing: it needs %s and %s", MetaVersion, MetaCapabilities)
	}
	bad := func(key, want string) *RPCError { return InvalidParams(r.ID, "_meta %s must be %s", key, want) }
	for m := members(meta); m.next(); {
		switch key := string(m.key); key {
		case MetaVersion:
			if !isString(m.val) {
				return bad(key, "a string")
			}
			r.Meta.Version = unquote(m.val, MaxText)
		case MetaCapabilities:
			if !isObject(m.val) {
				return bad(key, "an object")
			}
			r.Meta.Capabilities = m.val
		case MetaClientInfo:
			if !isObject(m.val) {
				return bad(key, "an object")
			}
			r.Meta.ClientInfo = m.val
		case MetaToken:
			if r.Meta.ProgressToken = parseID(m.val); !r.Meta.ProgressToken.Valid() || len(r.Meta.ProgressToken.text) >= MaxText {
				return bad(key, "a string or an integer of reasonable length")
			}
		case MetaLogLevel:
			if r.Meta.LogLevel = unquote(m.val, MaxText); !slices.Contains(logLevels, r.Meta.LogLevel) {
				return bad(key, "one of "+strings.Join(logLevels, ", "))
			}
		case MetaTraceparent:
			r.Meta.Traceparent = unquote(m.val, MaxText)
		case MetaTracestate:
			r.Meta.Tracestate = unquote(m.val, MaxText)
		case MetaBaggage:
			r.Meta.Baggage = unquote(m.val, MaxText)
		}
	}
	switch {
	case r.Meta.Version == "":
		return InvalidParams(r.ID, "missing %s", MetaVersion)
	case r.Meta.Capabilities == nil:
		return InvalidParams(r.ID, "missing %s", MetaCapabilities)
	}
	return nil
}

// HasCapability reports whether the client declared a capability on this
// request, by its path: "elicitation", or "extensions" and an extension's id.
func (m ServerMeta) HasCapability(path ...string) bool {
	v, ok := m.Capabilities, true
	for _, name := range path {
		if v, ok = member(v, name); !ok {
			return false
		}
	}
	return isObject(v)
}

// CheckOrigin checks the Origin of a request: none, one of this machine, or
// one of those allowed ("https://app.example.com"). Any other is answered with
// 403 and an error without an id (transports/streamable-http, "Security Warning").
func CheckOrigin(header HeaderGetter, allowed ...string) *RPCError {
	for _, origin := range header.Values("Origin") {
		if slices.Contains(allowed, origin) {
			continue
		}
		u, err := url.Parse(origin)
		if err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()) {
			continue
		}
		return invalid(ID{}, http.StatusForbidden, "Origin not allowed")
	}
	return nil
}
