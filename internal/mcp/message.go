package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Kind is what a [Message] is.
type Kind uint8

// The kinds.
const (
	KindNone Kind = iota
	Request
	Notification
	ResultResponse
	ErrorResponse
)

var kindNames = [...]string{"", "request", "notification", "result", "error"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

// Message is one decoded JSON-RPC message, as a client reads it. Raw values
// alias the bytes given to [DecodeMessage].
type Message struct {
	Kind Kind
	// ID is zero in a notification and where a response has none or null.
	ID ID
	// Method and Params are those of a request or a notification.
	Method string
	Params json.RawMessage
	// Progress is filled for notifications/progress.
	Progress Progress
	// Result is filled for a ResultResponse.
	Result Result
	// Err is filled for an ErrorResponse.
	Err Error
}

// Cancelled reports whether the text of an error, or of a result that is an
// error, says "cancelled" or "canceled".
func (m Message) Cancelled() bool {
	return m.Kind == ErrorResponse && m.Err.Cancelled || m.Kind == ResultResponse && m.Result.Cancelled
}

// Progress is the params of notifications/progress (basic/patterns/progress).
type Progress struct {
	Token    ID // zero: the server sent none
	Progress float64
	Total    float64
	HasTotal bool
	Message  string // cut at [MaxText]
}

// Done reports whether the progress has reached its total.
func (p Progress) Done() bool { return p.HasTotal && p.Progress >= p.Total }

// ResultType is what the resultType of a result says (basic, "ResultType").
type ResultType uint8

// The result types. An unknown text, an input_required without anything to go
// on with and a task without an id are ResultInvalid.
const (
	ResultInvalid ResultType = iota
	ResultComplete
	ResultInputRequired
	ResultTask
)

var resultTypeNames = [...]string{"invalid", "complete", "input_required", "task"}

func (t ResultType) String() string {
	if int(t) < len(resultTypeNames) {
		return resultTypeNames[t]
	}
	return "invalid"
}

// Result is what a client needs to know of a result.
type Result struct {
	Type ResultType
	// Reason says why Type is invalid.
	Reason string
	// IsError: the tool ran and failed.
	IsError bool
	// Cancelled: IsError, and one of its texts says so.
	Cancelled bool
	// Text is the first text of the content if IsError, cut at [MaxText].
	Text string
	// RequestState is the JSON string to give back (see [Retry]); nil: none.
	RequestState json.RawMessage
	// InputRequests is what the server asks for; nil: nothing.
	InputRequests json.RawMessage
	// TaskID is the handle of a task.
	TaskID string
	// Raw is the whole result.
	Raw json.RawMessage
}

// Error is the error of a response.
type Error struct {
	Code      int
	Message   string // cut at [MaxText]
	Data      json.RawMessage
	Cancelled bool // the message says so
}

// envelope is the members of a message as they stand.
type envelope struct {
	version, id, method, params, result, err []byte
}

// readEnvelope splits one message; the rules that hold for every message are
// checked here.
func readEnvelope(b []byte) (envelope, error) {
	var e envelope
	if len(b) > MaxMessage {
		return e, fmt.Errorf("message of %d bytes: the limit is %d", len(b), MaxMessage)
	}
	if !json.Valid(b) {
		return e, errNotJSON
	}
	b = trim(b)
	if b[0] == '[' {
		return e, errors.New("a batch: one message at a time is allowed")
	}
	if !isObject(b) {
		return e, errors.New("no JSON object")
	}
	for m := members(b); m.next(); {
		switch string(m.key) {
		case "jsonrpc":
			e.version = m.val
		case "id":
			e.id = m.val
		case "method":
			e.method = m.val
		case "params":
			e.params = m.val
		case "result":
			e.result = m.val
		case "error":
			e.err = m.val
		}
	}
	if string(e.version) != `"2.0"` {
		return e, errors.New(`no JSON-RPC message: jsonrpc is not "2.0"`)
	}
	return e, nil
}

var errNotJSON = errors.New("no JSON")

// DecodeMessage reads one message that a server sent: the data of an event, or
// a whole body, on any HTTP status. It is tolerant (unknown members, a null
// id, members that are null where they could be absent) but exact about what
// kind of message it is; an error says why it is none. It never panics.
func DecodeMessage(b []byte) (Message, error) {
	e, err := readEnvelope(b)
	if err != nil {
		return Message{}, err
	}
	if isNull(e.err) {
		e.err = nil
	}
	m := Message{ID: parseID(e.id)}
	switch {
	case e.method != nil && (e.result != nil || e.err != nil):
		return m, errors.New("a method and an answer in one message")
	case e.method != nil:
		return m, m.readMethod(e)
	case e.result != nil && e.err != nil:
		return m, errors.New("a result and an error in one message")
	case e.result != nil:
		if !isObject(e.result) {
			return m, errors.New("a result that is no object")
		}
		m.Kind, m.Result = ResultResponse, readResult(e.result)
		return m, nil
	case e.err != nil:
		m.Kind = ErrorResponse
		m.Err, err = readError(e.err)
		return m, err
	}
	return m, errors.New("neither method, result nor error in a message")
}

func (m *Message) readMethod(e envelope) error {
	if !isString(e.method) {
		return errors.New("a method that is no string")
	}
	m.Kind = Notification
	if !m.ID.IsZero() {
		m.Kind = Request
	}
	m.Params = e.params
	m.Method = readMethodName(e.method)
	if m.Method == MethodProgress && m.Kind == Notification {
		m.Progress = readProgress(e.params)
	}
	return nil
}

// readMethodName saves the copy of the names that come most often.
func readMethodName(v []byte) string {
	switch string(v) {
	case `"` + MethodProgress + `"`:
		return MethodProgress
	case `"` + MethodMessage + `"`:
		return MethodMessage
	case `"` + MethodToolsCall + `"`:
		return MethodToolsCall
	}
	return unquote(v, MaxText)
}

func readProgress(params []byte) Progress {
	var p Progress
	for m := members(params); m.next(); {
		switch string(m.key) {
		case MetaToken:
			p.Token = parseID(m.val)
		case "progress":
			p.Progress, _ = number(m.val)
		case "total":
			p.Total, p.HasTotal = number(m.val)
		case "message":
			p.Message = unquote(m.val, MaxText)
		}
	}
	return p
}

func number(v []byte) (float64, bool) {
	if !isNumber(v) {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	return f, err == nil
}

// readResult reads a result; v is an object.
func readResult(v []byte) Result {
	r := Result{Type: ResultComplete, Raw: v}
	var kind, content, task []byte
	for m := members(v); m.next(); {
		switch string(m.key) {
		case "resultType":
			kind = m.val
		case "isError":
			r.IsError = string(m.val) == "true"
		case "content":
			content = m.val
		case "requestState":
			r.RequestState = m.val
		case "inputRequests":
			r.InputRequests = m.val
		case "taskId":
			task = m.val
		}
	}
	if !isString(r.RequestState) {
		r.RequestState = nil
	}
	if !isObject(r.InputRequests) {
		r.InputRequests = nil
	}
	r.TaskID = unquote(task, MaxText)
	if r.IsError {
		r.Text, r.Cancelled = readTexts(content)
	}
	switch string(kind) {
	case `"complete"`, "": // absent: an old server
	case `"input_required"`:
		r.Type = ResultInputRequired
		if r.RequestState == nil && r.InputRequests == nil {
			r.Type, r.Reason = ResultInvalid, "input_required with neither inputRequests nor requestState"
		}
	case `"task"`:
		r.Type = ResultTask
		if r.TaskID == "" {
			r.Type, r.Reason = ResultInvalid, "a task without a taskId"
		}
	default:
		r.Type, r.Reason = ResultInvalid, fmt.Sprintf("unknown resultType %.80s", kind)
	}
	return r
}

// readTexts gives the first text of a content array, and whether any says
// "cancelled".
func readTexts(content []byte) (first string, cancelled bool) {
	found := false
	for c := elements(content); c.next(); {
		text, ok := member(c.val, "text")
		if !ok || !isString(text) {
			continue
		}
		s := unquote(text, MaxText)
		if !found {
			first, found = s, true
		}
		cancelled = cancelled || saysCancelled(s)
	}
	return first, cancelled
}

func saysCancelled(s string) bool {
	s = strings.ToLower(s)
	return strings.Contains(s, "cancelled") || strings.Contains(s, "canceled")
}

func readError(v []byte) (Error, error) {
	if !isObject(v) {
		return Error{}, errors.New("an error that is no object")
	}
	var e Error
	coded := false
	for m := members(v); m.next(); {
		switch string(m.key) {
		case "code":
			n, err := strconv.Atoi(string(bytes.TrimSuffix(m.val, []byte(".0"))))
			e.Code, coded = n, err == nil
		case "message":
			e.Message = unquote(m.val, MaxText)
		case "data":
			e.Data = m.val
		}
	}
	if !coded {
		return e, errors.New("an error without an integer code")
	}
	e.Cancelled = saysCancelled(e.Message)
	return e, nil
}
