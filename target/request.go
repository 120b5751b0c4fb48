package target

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/mcpflood/mcpflood/internal/mcp"
)

// serveMCP answers one request at the MCP endpoint.
func (s *Server) serveMCP(w http.ResponseWriter, r *http.Request) {
	if s.bricked.Load() {
		http.Error(w, "internal server error", http.StatusInternalServerError)
		return
	}
	if e := mcp.CheckOrigin(r.Header); e != nil {
		writeError(w, e)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "only POST: this server has neither sessions nor streams to resume", http.StatusMethodNotAllowed)
		return
	}
	body, partly, err := s.readBody(w, r)
	if err != nil {
		refuseBody(w, err)
		return
	}
	if partly {
		// net/http panics if it has to read the rest itself after the answer: it
		// begins to watch the connection then, while it waits for a next request.
		defer io.Copy(io.Discard, r.Body)
	}
	req, e := mcp.ValidateRequest(r.Header, body)
	switch {
	case e != nil:
		writeError(w, e)
	case req.IsNotification():
		// Also notifications/cancelled: over HTTP only a closed stream cancels
		// (basic/patterns/cancellation, "Transport-Specific Cancellation").
		if req.Method == mcp.MethodCancelled && s.shares[CancelAny] > 0 {
			s.cancelAny(req.Params)
		}
		w.WriteHeader(http.StatusAccepted)
	case req.Method == mcp.MethodToolsCall:
		s.serveCall(w, r, req)
	default:
		s.serveOther(w, req)
	}
}

// refuseBody answers a body that could not be read. A client that broke off
// inside its body gets nothing.
func refuseBody(w http.ResponseWriter, err error) {
	var tooBig *http.MaxBytesError
	if !errors.As(err, &tooBig) {
		panic(http.ErrAbortHandler)
	}
	http.Error(w, fmt.Sprintf("the body is over %d bytes", tooBig.Limit), http.StatusRequestEntityTooLarge)
}

// readBody reads a request's body to its end, from where on net/http watches
// the connection for a hang-up.
//
// For requests that have the fault deaf-body it stops one byte short of the
// end, which it can guess, and says so by partly. Where that cannot be (a body
// of unknown length, a wrapped ResponseWriter) the body is read whole, and the
// request only ignores the hang-ups it hears.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) (body []byte, partly bool, err error) {
	in := http.MaxBytesReader(w, r.Body, mcp.MaxMessage)
	n := r.ContentLength
	if s.shares[DeafBody] == 0 || n < 2 || n > mcp.MaxMessage {
		body, err = io.ReadAll(in)
		return body, false, err
	}
	body = make([]byte, n-1, n)
	if _, err := io.ReadFull(in, body); err != nil {
		return nil, false, err
	}
	if guess := guessEnd(body); s.draw(guess).has(DeafBody) {
		// Else net/http reads the rest itself before it writes the head.
		if http.NewResponseController(w).EnableFullDuplex() == nil {
			return guess, true, nil
		}
	}
	rest, err := io.ReadAll(in)
	return append(body, rest...), false, err
}

// guessEnd makes a whole object of one whose last byte has not been read: that
// byte is white space or a closing brace.
func guessEnd(body []byte) []byte {
	if json.Valid(body) {
		return body
	}
	return append(bytes.Clone(body), '}')
}

// draw decides which faults the request in body has.
func (s *Server) draw(body []byte) faultSet {
	var req struct {
		ID mcp.ID `json:"id"`
	}
	if json.Unmarshal(body, &req) != nil || req.ID.IsZero() {
		return 0
	}
	return s.shares.draw(s.cfg.Seed, req.ID.String())
}

// serveOther answers every method but tools/call.
func (s *Server) serveOther(w http.ResponseWriter, req mcp.ServerRequest) {
	switch req.Method {
	case mcp.MethodDiscover:
		writeJSON(w, http.StatusOK, mcp.AppendResult(nil, req.ID, s.discover()))
	case mcp.MethodToolsList:
		var params struct {
			Cursor *string `json:"cursor"`
		}
		bad := json.Unmarshal(req.Params, &params) != nil
		result, ok := s.list(params.Cursor)
		if bad || !ok {
			writeError(w, mcp.InvalidParams(req.ID, "unknown cursor: use the nextCursor of the page before"))
			return
		}
		writeJSON(w, http.StatusOK, mcp.AppendResult(nil, req.ID, result))
	default:
		writeError(w, mcp.MethodNotFound(req.ID, req.Method))
	}
}

func writeError(w http.ResponseWriter, e *mcp.RPCError) { writeJSON(w, e.HTTPStatus, e.Body()) }

// serveCall answers tools/call.
func (s *Server) serveCall(w http.ResponseWriter, r *http.Request, req mcp.ServerRequest) {
	switch {
	case isFiller(req.Name, s.cfg.Fillers):
		writeJSON(w, http.StatusOK, mcp.AppendResult(nil, req.ID, mcp.CallResult{Text: "nothing was done", ServerInfo: s.info}.JSON()))
		return
	case req.Name != toolName:
		writeError(w, mcp.InvalidParams(req.ID, "unknown tool %q", req.Name))
		return
	}
	args, problem := parseArguments(req.Arguments)
	if problem != "" {
		writeError(w, mcp.InvalidParams(req.ID, "%s", problem))
		return
	}
	if !s.begin() {
		panic(http.ErrAbortHandler)
	}
	defer s.jobs.Done()
	who := identify(req.ID.String(), args.IdempotencyKey, req.Meta.Traceparent, req.Meta.Baggage, r.Header)
	j := s.newJob(w, r, req, who, args)
	j.id = s.answerID(j, req.ID, req.Arguments)
	if !j.run() {
		panic(http.ErrAbortHandler)
	}
}

// newJob draws what is drawn for a request.
func (s *Server) newJob(w http.ResponseWriter, r *http.Request, req mcp.ServerRequest, who identity, args arguments) *job {
	faults := s.shares.draw(s.cfg.Seed, who.id)
	token := req.Meta.ProgressToken
	if s.cfg.NoProgress {
		token = mcp.ID{}
	}
	asJSON := s.answersJSON(req.Meta.ProgressToken, who.id)
	j := &job{
		s:      s,
		ctx:    r.Context(),
		work:   newWork(&s.script, faults, asJSON, !token.IsZero()),
		out:    answer{w: w, json: asJSON, token: token},
		who:    who,
		caller: newCaller(who.id, who.marker, who.trace, who.user),
		args:   args,
		place:  -1,
	}
	if s.kicks() {
		j.kick = make(chan struct{}, 1)
	}
	if s.truth != nil {
		form := "sse"
		if asJSON {
			form = "json"
		}
		j.truth = &Truth{ID: who.id, Marker: who.marker, User: who.user, Trace: who.trace, Form: form,
			Faults: faults.names(), Work: []time.Time{}, Effects: []time.Time{}}
	}
	return j
}

// answersJSON decides the form of an answer.
func (s *Server) answersJSON(token mcp.ID, id string) bool {
	switch s.cfg.Answer {
	case AnswerJSON:
		return true
	case AnswerSSE:
		return false
	case AnswerMixed:
		return unit(s.cfg.Seed, "answer", id) < 0.5
	}
	return token.IsZero()
}

// answerID is the id that the answer carries: the request's own, but for
// wrong-id, which has re-issues answered with the first request's.
func (s *Server) answerID(j *job, own mcp.ID, args json.RawMessage) mcp.ID {
	if s.shares[WrongID] == 0 {
		return own
	}
	call := digestOf(j.who.user, "marker", j.who.marker)
	if j.who.marker == "" {
		call = digestOf(j.who.user, "arguments", string(args))
	}
	first, again := s.firsts.remember(call, own)
	if again && j.work.faults.has(WrongID) {
		return first
	}
	return own
}

// refuse tells a client that there is no slot for its call.
func (s *Server) refuse(w http.ResponseWriter, id mcp.ID) {
	seconds := int64((s.cfg.SlotWait + time.Second - 1) / time.Second)
	w.Header().Set("Retry-After", strconv.FormatInt(max(seconds, 1), 10))
	writeError(w, &mcp.RPCError{HTTPStatus: http.StatusServiceUnavailable, Code: mcp.CodeInternal, Message: "no free slot", ID: id})
}

// cancelAny is the fault: it ends the live call that a notification names,
// without asking whose it is.
func (s *Server) cancelAny(params json.RawMessage) {
	var p struct{ RequestID json.RawMessage }
	if json.Unmarshal(params, &p) != nil {
		return
	}
	named := func(k *job) bool {
		return string(k.id.Append(nil)) == string(p.RequestID) && len(k.kick) == 0 && k.work.faults.has(CancelAny)
	}
	s.live.other(nil, 0, named, func(k *job) { k.kick <- struct{}{} })
}
