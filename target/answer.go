package target

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/mcpflood/mcpflood/internal/mcp"
	"github.com/mcpflood/mcpflood/internal/sse"
)

// scratch lends the bytes in which an event is put together, so that an idle
// stream holds none.
var scratch = sync.Pool{New: func() any { return new([2][]byte) }}

// answer is the response to one call. The response head goes out with the
// first event. Once a write has failed nothing more is written; the work is
// told of a lost client by its context only.
type answer struct {
	w     http.ResponseWriter
	json  bool
	token mcp.ID // zero: no progress
	head  bool
	dead  bool
}

// message sends one JSON-RPC message as an event.
func (a *answer) message(build func(dst []byte) []byte) {
	if a.dead {
		return
	}
	if !a.head {
		a.head = true
		h := a.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
	}
	buf := scratch.Get().(*[2][]byte)
	defer scratch.Put(buf)
	buf[0] = build(buf[0][:0])
	buf[1] = sse.AppendEvent(buf[1][:0], "message", buf[0])
	a.send(buf[1])
}

// progress tells that step n of m is done.
func (a *answer) progress(n, m int) {
	a.message(func(dst []byte) []byte { return appendProgress(dst, a.token, n, m) })
}

func appendProgress(dst []byte, token mcp.ID, n, m int) []byte {
	return mcp.AppendProgress(dst, mcp.Progress{Token: token, Progress: float64(n), Total: float64(m), HasTotal: true})
}

// respond sends the response, the last message of the call.
func (a *answer) respond(body []byte) {
	if !a.json {
		a.message(func(dst []byte) []byte { return append(dst, body...) })
		return
	}
	writeJSON(a.w, http.StatusOK, body)
	_ = http.NewResponseController(a.w).Flush() // a client that left is no error
}

func (a *answer) send(b []byte) {
	if _, err := a.w.Write(b); err != nil {
		a.dead = true
		return
	}
	a.dead = http.NewResponseController(a.w).Flush() != nil
}

// writeJSON answers with one JSON-RPC message. That the client may have left
// is nobody's error.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
