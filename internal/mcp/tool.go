package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Tool is one tool as a server lists it (server/tools).
type Tool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations Annotations     `json:"annotations,omitzero"`
	// HeaderParams are the arguments that the schema asks to mirror in headers,
	// sorted by header.
	HeaderParams []HeaderParam `json:"-"`
}

// Annotations are a server's hints about a tool; nil: not given. They are to
// be believed no more than the server is.
type Annotations struct {
	ReadOnly    *bool `json:"readOnlyHint,omitempty"`
	Idempotent  *bool `json:"idempotentHint,omitempty"`
	Destructive *bool `json:"destructiveHint,omitempty"`
	OpenWorld   *bool `json:"openWorldHint,omitempty"`
}

// Repeatable reports whether the tool says that a second run with the same
// arguments does no more than one: it only reads, or it is idempotent.
func (a Annotations) Repeatable() bool {
	return a.ReadOnly != nil && *a.ReadOnly || a.Idempotent != nil && *a.Idempotent
}

// HeaderParam is an argument that is mirrored in an Mcp-Param header.
type HeaderParam struct {
	Header string   // without "Mcp-Param-"
	Path   []string // from the arguments' root
	Type   string   // string, integer, boolean
}

// DroppedTool is a tool that a client must leave out of its list.
type DroppedTool struct{ Name, Reason string }

// maxTools bounds the tools of one page.
const maxTools = 10_000

// ToolList is a result of tools/list: one page.
type ToolList struct {
	Tools []Tool
	// Dropped are tools that [ParseTools] left out; JSON does not write them.
	Dropped []DroppedTool
	// NextCursor leads to the next page (see [CursorParams]); nil: there is
	// none. The empty string is a valid cursor (server/utilities/pagination).
	NextCursor *string
	TTLMs      int64
	CacheScope string          // public, private
	ServerInfo json.RawMessage // an object; nil: not given
}

// JSON is the result object, resultType included. A tool whose InputSchema is
// no JSON panics: it is ours.
func (l ToolList) JSON() json.RawMessage {
	tools, err := json.Marshal(append([]Tool{}, l.Tools...))
	if err != nil {
		panic("mcp: invariant: our own tools are JSON: " + err.Error())
	}
	dst := append([]byte(nil), `{"resultType":"complete","tools":`...)
	dst = append(dst, tools...)
	if l.NextCursor != nil {
		dst = appendQuoted(append(dst, `,"nextCursor":`...), *l.NextCursor)
	}
	dst = appendCacheHints(dst, l.TTLMs, l.CacheScope)
	return append(appendServerInfo(dst, l.ServerInfo), '}')
}

// CursorParams is the params of tools/list for the page that a cursor leads to.
func CursorParams(cursor string) json.RawMessage {
	return append(appendQuoted([]byte(`{"cursor":`), cursor), '}')
}

// ParseTools reads a result of tools/list. Tools with an annotation for
// headers that breaks the rules, or that are no tools at all, are dropped with
// the reason, as the revision demands of a client.
func ParseTools(result json.RawMessage) (ToolList, error) {
	var l ToolList
	if !json.Valid(result) {
		return l, errNotJSON
	}
	var list []byte
	for m := members(result); m.next(); {
		switch string(m.key) {
		case "tools":
			list = m.val
		case "nextCursor":
			if isString(m.val) {
				cursor := unquote(m.val, len(m.val))
				l.NextCursor = &cursor
			}
		case "ttlMs":
			l.TTLMs, _ = safeInteger(m.val)
		case "cacheScope":
			l.CacheScope = unquote(m.val, MaxText)
		case "_meta":
			if v, _ := member(m.val, MetaServerInfo); isObject(v) {
				l.ServerInfo = v
			}
		}
	}
	if len(list) == 0 || list[0] != '[' {
		return l, errors.New("a result of tools/list without tools")
	}
	for e := elements(list); e.next(); {
		if len(l.Tools)+len(l.Dropped) == maxTools {
			return l, fmt.Errorf("more than %d tools on one page", maxTools)
		}
		t, err := ParseTool(e.val)
		if err != nil {
			l.Dropped = append(l.Dropped, DroppedTool{t.Name, err.Error()})
			continue
		}
		l.Tools = append(l.Tools, t)
	}
	return l, nil
}

// ParseTool reads one tool. On an error the Tool has at most its name.
func ParseTool(raw json.RawMessage) (Tool, error) {
	if !json.Valid(raw) {
		return Tool{}, errNotJSON
	}
	var t Tool
	var hints []byte
	for m := members(raw); m.next(); {
		switch string(m.key) {
		case "name":
			t.Name = unquote(m.val, MaxText)
		case "title":
			t.Title = unquote(m.val, MaxText)
		case "description":
			t.Description = unquote(m.val, MaxText)
		case "inputSchema":
			t.InputSchema = m.val
		case "annotations":
			hints = m.val
		}
	}
	if t.Name == "" {
		return Tool{}, errors.New("a tool without a name")
	}
	if !isObject(t.InputSchema) {
		return Tool{Name: t.Name}, errors.New("inputSchema is missing or no object")
	}
	for m := members(hints); m.next(); {
		switch string(m.key) {
		case "readOnlyHint":
			t.Annotations.ReadOnly = hint(m.val)
		case "idempotentHint":
			t.Annotations.Idempotent = hint(m.val)
		case "destructiveHint":
			t.Annotations.Destructive = hint(m.val)
		case "openWorldHint":
			t.Annotations.OpenWorld = hint(m.val)
		}
	}
	params, err := headerParams(t.InputSchema)
	if err != nil {
		return Tool{Name: t.Name}, err
	}
	t.HeaderParams = params
	return t, nil
}

func hint(v []byte) *bool {
	b := string(v) == "true"
	if !b && string(v) != "false" {
		return nil
	}
	return &b
}

const (
	headerKeyword = "x-mcp-header"
	// maxSchemaDepth bounds the nesting of a schema that is looked through.
	maxSchemaDepth = 64
	// maxHeaderParams bounds the arguments of one tool that are mirrored.
	maxHeaderParams = 128
)

// headerParams finds the x-mcp-header annotations of a schema and checks their
// rules (transports/streamable-http, "Custom Headers from Tool Parameters").
func headerParams(schema []byte) ([]HeaderParam, error) {
	w := headerWalk{seen: map[string]bool{}}
	if err := w.schema(schema, nil, true, 0); err != nil {
		return nil, err
	}
	slices.SortFunc(w.found, func(a, b HeaderParam) int { return strings.Compare(a.Header, b.Header) })
	return w.found, nil
}

type headerWalk struct {
	found []HeaderParam
	seen  map[string]bool // lower-case headers
}

// schema looks through one schema. path leads to it from the arguments; it is
// reachable while nothing but properties was passed.
func (w *headerWalk) schema(v []byte, path []string, reachable bool, depth int) error {
	if depth > maxSchemaDepth {
		return fmt.Errorf("inputSchema is nested deeper than %d", maxSchemaDepth)
	}
	for m := members(v); m.next(); {
		var err error
		switch string(m.key) {
		case headerKeyword:
			err = w.annotation(m.val, v, path, reachable)
		case "properties":
			for p := members(m.val); p.next() && err == nil; {
				err = w.schema(p.val, append(path[:len(path):len(path)], string(p.key)), reachable, depth+1)
			}
		case "$defs", "definitions", "patternProperties", "dependentSchemas":
			for p := members(m.val); p.next() && err == nil; {
				err = w.schema(p.val, nil, false, depth+1)
			}
		case "const", "default", "enum", "examples": // data, not schemas
		default:
			err = w.schema(m.val, nil, false, depth+1)
			for e := elements(m.val); e.next() && err == nil; {
				err = w.schema(e.val, nil, false, depth+1)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// annotation checks one x-mcp-header and keeps it.
func (w *headerWalk) annotation(v, owner []byte, path []string, reachable bool) error {
	name := unquote(v, MaxText)
	if !isToken(name) {
		return fmt.Errorf("%s %.80s is no header name", headerKeyword, v)
	}
	if !reachable || len(path) == 0 {
		return fmt.Errorf("%s %q is not on a property that properties alone lead to", headerKeyword, name)
	}
	if w.seen[strings.ToLower(name)] {
		return fmt.Errorf("%s %q is there twice", headerKeyword, name)
	}
	if len(w.found) == maxHeaderParams {
		return fmt.Errorf("more than %d %s", maxHeaderParams, headerKeyword)
	}
	w.seen[strings.ToLower(name)] = true
	t, _ := member(owner, "type")
	types := typeNames(t)
	types = slices.DeleteFunc(types, func(s string) bool { return s == "null" && len(types) > 1 })
	if len(types) != 1 || !slices.Contains([]string{"string", "integer", "boolean"}, types[0]) {
		return fmt.Errorf("%s %q is on type %.80s: want string, integer or boolean", headerKeyword, name, t)
	}
	w.found = append(w.found, HeaderParam{Header: name, Path: path, Type: types[0]})
	return nil
}

// typeNames reads a type keyword: a name or a list of names.
func typeNames(v []byte) []string {
	if isString(v) {
		return []string{unquote(v, MaxText)}
	}
	var out []string
	for e := elements(v); e.next() && len(out) < maxTypes; {
		if isString(e.val) {
			out = append(out, unquote(e.val, MaxText))
		}
	}
	return out
}

// isToken reports whether s is a token of RFC 9110.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// value finds the argument of a header; ok is false where it is absent or null.
func (p HeaderParam) value(args []byte) (v []byte, ok bool) {
	v = args
	for _, name := range p.Path {
		if v, ok = member(v, name); !ok {
			return nil, false
		}
	}
	return v, !isNull(v)
}

// maxSafeInteger is the largest integer that a mirrored argument may have.
const maxSafeInteger = 1<<53 - 1

// headerText is the text of an argument in a header.
func headerText(v []byte) (string, error) {
	switch {
	case isString(v):
		return unquote(v, len(v)), nil
	case isNumber(v):
		n, ok := safeInteger(v)
		if !ok {
			return "", fmt.Errorf("%.40s is no integer that fits a header", v)
		}
		return strconv.FormatInt(n, 10), nil
	case string(v) == "true", string(v) == "false":
		return string(v), nil
	}
	return "", errors.New("only a string, an integer or a boolean fits a header")
}

// safeInteger reads a number that has an integer value within the safe range,
// however it is written.
func safeInteger(v []byte) (int64, bool) {
	f, ok := number(v)
	if !ok || f != math.Trunc(f) || math.Abs(f) > maxSafeInteger {
		return 0, false
	}
	return int64(f), true
}

// ParamHeaders are the Mcp-Param fields for a call with these arguments, ready
// for the wire. args is an object; absent and null arguments have no field.
func (t Tool) ParamHeaders(args json.RawMessage) ([]Field, error) {
	if len(t.HeaderParams) == 0 {
		return nil, nil
	}
	if len(args) > 0 && !json.Valid(args) {
		return nil, errNotJSON
	}
	var out []Field
	for _, p := range t.HeaderParams {
		v, ok := p.value(args)
		if !ok {
			continue
		}
		text, err := headerText(v)
		if err != nil {
			return nil, fmt.Errorf("argument %q: %w", strings.Join(p.Path, "."), err)
		}
		out = append(out, Field{HeaderParamPrefix + p.Header, EncodeHeaderValue(text)})
	}
	return out, nil
}

// CheckParamHeaders checks the Mcp-Param fields of a call against its
// arguments, as a server must (transports/streamable-http, "Server Behavior
// for Custom Headers"). Integers compare by value. args comes from
// [ValidateRequest].
func (t Tool) CheckParamHeaders(header HeaderGetter, id ID, args json.RawMessage) *RPCError {
	for _, p := range t.HeaderParams {
		name := HeaderParamPrefix + p.Header
		v, ok := p.value(args)
		if !ok {
			if len(header.Values(name)) > 0 {
				return HeaderMismatch(id, "%s is there, its argument is not", name)
			}
			continue
		}
		want, err := headerText(v)
		if err != nil {
			continue // the arguments are at fault: the tool says so
		}
		raw, rpc := oneHeader(header, id, name)
		if rpc != nil {
			return rpc
		}
		got, err := DecodeHeaderValue(raw)
		if err != nil {
			return HeaderMismatch(id, "%s: %v", name, err)
		}
		if isNumber(v) && json.Valid([]byte(got)) {
			if n, ok := safeInteger([]byte(got)); ok {
				got = strconv.FormatInt(n, 10)
			}
		}
		if got != want {
			return HeaderMismatch(id, "%s %q does not match its argument", name, got)
		}
	}
	return nil
}
