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
// case; [net/http.Header.Values] is one.
type HeaderGetter func(name string) []string

// Incoming is a request, or a notification, that a server has accepted as well
// formed. Raw values alias the body.
type Incoming struct {
	ID           ID
	Notification bool // no id, no answer but 202; nothing below Params is filled
	Method       string
	Params       json.RawMessage // with _meta
	// Name is the value that [NameParam] names.
	Name      string
	Arguments json.RawMessage // of tools/call; an object; empty: none given
	// RequestState is a JSON string that a client gives back; nil: none.
	RequestState json.RawMessage
	Meta         IncomingMeta
}

// IncomingMeta is the _meta of a request.
type IncomingMeta struct {
	Version      string
	Token        ID // zero: no progress wanted
	Capabilities json.RawMessage
	ClientInfo   json.RawMessage // nil: none
	LogLevel     string          // empty: no log messages wanted
	Traceparent  string
	Tracestate   string
	Baggage      string
}

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
func ValidateRequest(header HeaderGetter, body []byte) (*Incoming, *RPCError) {
	in, e, rpc := readIncoming(body)
	if rpc != nil {
		return nil, rpc
	}
	if rpc := checkMedia(header, in.ID); rpc != nil {
		return nil, rpc
	}
	if in.Notification {
		return in, nil
	}
	if rpc := checkLegacy(header, in); rpc != nil {
		return nil, rpc
	}
	if rpc := checkHeaders(header, in); rpc != nil {
		return nil, rpc
	}
	if rpc := in.readMeta(e.params); rpc != nil {
		return nil, rpc
	}
	if got := header(HeaderVersion)[0]; strings.Trim(got, " \t") != in.Meta.Version {
		return nil, HeaderMismatch(in.ID, "%s %q does not match _meta %q", HeaderVersion, got, in.Meta.Version)
	}
	if in.Meta.Version != Version {
		return nil, UnsupportedVersion(in.ID, in.Meta.Version)
	}
	if name := NameParam(in.Method); name != "" && in.Name == "" {
		return nil, InvalidParams(in.ID, "params.%s of %s is missing or no text", name, in.Method)
	}
	if len(in.Arguments) > 0 && !isObject(in.Arguments) {
		return nil, InvalidParams(in.ID, "params.arguments must be an object")
	}
	return in, nil
}

// readIncoming checks the JSON-RPC form of a body (basic, "Messages").
func readIncoming(body []byte) (*Incoming, envelope, *RPCError) {
	if len(body) > MaxMessage {
		return nil, envelope{}, invalid(ID{}, http.StatusRequestEntityTooLarge, "message too large")
	}
	if !utf8.Valid(body) {
		return nil, envelope{}, &RPCError{HTTPStatus: http.StatusBadRequest, Code: CodeParse, Message: "the body is not UTF-8"}
	}
	e, err := readEnvelope(body)
	id := parseID(e.id)
	if !id.Valid() || len(id.text) >= MaxText {
		id = ID{}
	}
	bad := func(text string) (*Incoming, envelope, *RPCError) {
		return nil, e, invalid(id, http.StatusBadRequest, text)
	}
	switch {
	case err == errNotJSON:
		return nil, e, &RPCError{HTTPStatus: http.StatusBadRequest, Code: CodeParse, Message: "the body is not JSON"}
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
	in := &Incoming{ID: id, Notification: e.id == nil, Method: unquote(e.method, MaxText), Params: e.params}
	name := NameParam(in.Method)
	for m := members(e.params); m.next(); {
		switch key := string(m.key); {
		case name != "" && key == name:
			in.Name = unquote(m.val, len(m.val))
		case key == "arguments":
			in.Arguments = m.val
		case key == "requestState" && isString(m.val):
			in.RequestState = m.val
		}
	}
	return in, e, nil
}

// checkMedia checks what the request sends and takes. The revision obliges the
// client to list both types and leaves the answer to one that does not to the
// server.
func checkMedia(header HeaderGetter, id ID) *RPCError {
	if t, _, err := mime.ParseMediaType(first(header("Content-Type"))); err != nil || t != contentJSON {
		return invalid(id, http.StatusUnsupportedMediaType, "Content-Type must be "+contentJSON)
	}
	json, sse := false, false
	for part := range strings.SplitSeq(strings.Join(header("Accept"), ","), ",") {
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
func checkLegacy(header HeaderGetter, in *Incoming) *RPCError {
	version := first(header(HeaderVersion))
	if in.Method != "initialize" || version == Version {
		return nil
	}
	if v, _ := member(in.Params, "protocolVersion"); isString(v) {
		version = unquote(v, MaxText)
	}
	return UnsupportedVersion(in.ID, version)
}

// checkHeaders checks the standard headers that need no _meta
// (transports/streamable-http, "Server Validation").
func checkHeaders(header HeaderGetter, in *Incoming) *RPCError {
	if _, rpc := oneHeader(header, in.ID, HeaderVersion); rpc != nil {
		return rpc
	}
	got, rpc := oneHeader(header, in.ID, HeaderMethod)
	if rpc != nil {
		return rpc
	}
	// Mcp-Method is no place for the sentinel: it is compared as it stands.
	if got != in.Method {
		return HeaderMismatch(in.ID, "%s %q does not match method %q", HeaderMethod, got, in.Method)
	}
	param := NameParam(in.Method)
	if param == "" {
		return nil
	}
	if in.Name == "" && len(header(HeaderName)) == 0 {
		return nil // nothing to mirror: the params are at fault
	}
	if got, rpc = oneHeader(header, in.ID, HeaderName); rpc != nil {
		return rpc
	}
	name, err := DecodeHeaderValue(got)
	if err != nil {
		return HeaderMismatch(in.ID, "%s: %v", HeaderName, err)
	}
	if name != in.Name {
		return HeaderMismatch(in.ID, "%s %q does not match params.%s %q", HeaderName, name, param, in.Name)
	}
	return nil
}

// oneHeader reads a field that must be there once.
func oneHeader(header HeaderGetter, id ID, name string) (string, *RPCError) {
	values := header(name)
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
func (in *Incoming) readMeta(params []byte) *RPCError {
	meta, _ := member(params, "_meta")
	if !isObject(meta) {
		return InvalidParams(in.ID, "params._meta is missing: it needs %s and %s", MetaVersion, MetaCapabilities)
	}
	bad := func(key, want string) *RPCError { return InvalidParams(in.ID, "_meta %s must be %s", key, want) }
	for m := members(meta); m.next(); {
		switch key := string(m.key); key {
		case MetaVersion:
			if !isString(m.val) {
				return bad(key, "a string")
			}
			in.Meta.Version = unquote(m.val, MaxText)
		case MetaCapabilities:
			if !isObject(m.val) {
				return bad(key, "an object")
			}
			in.Meta.Capabilities = m.val
		case MetaClientInfo:
			if !isObject(m.val) {
				return bad(key, "an object")
			}
			in.Meta.ClientInfo = m.val
		case MetaToken:
			if in.Meta.Token = parseID(m.val); !in.Meta.Token.Valid() || len(in.Meta.Token.text) >= MaxText {
				return bad(key, "a string or an integer of reasonable length")
			}
		case MetaLogLevel:
			if in.Meta.LogLevel = unquote(m.val, MaxText); !slices.Contains(logLevels, in.Meta.LogLevel) {
				return bad(key, "one of "+strings.Join(logLevels, ", "))
			}
		case MetaTraceparent:
			in.Meta.Traceparent = unquote(m.val, MaxText)
		case MetaTracestate:
			in.Meta.Tracestate = unquote(m.val, MaxText)
		case MetaBaggage:
			in.Meta.Baggage = unquote(m.val, MaxText)
		}
	}
	switch {
	case in.Meta.Version == "":
		return InvalidParams(in.ID, "missing %s", MetaVersion)
	case in.Meta.Capabilities == nil:
		return InvalidParams(in.ID, "missing %s", MetaCapabilities)
	}
	return nil
}

// HasCapability reports whether the client declared a capability on this
// request, by its path: "elicitation", or "extensions" and an extension's id.
func (m IncomingMeta) HasCapability(path ...string) bool {
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
	for _, origin := range header("Origin") {
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
