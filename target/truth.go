package target

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// Truth is what really happened to one call of build_report: one line of the
// truth file, written when the call has ended. Times are wall clock.
type Truth struct {
	ID     string `json:"id"` // the text of the JSON-RPC id
	Marker string `json:"marker"`
	User   string `json:"user"`
	Trace  string `json:"trace"`
	Form   string `json:"form"` // sse, json
	// Faults names the faults this request drew.
	Faults []string `json:"faults"`
	// Seen is when the request had been read and the work began.
	Seen time.Time `json:"seen"`
	// CutSeen is when the HTTP server told of the hang-up, whether or not the
	// call listened; null if it never did before the call ended.
	CutSeen *time.Time  `json:"cut_seen"`
	Units   int         `json:"units"`   // steps done
	Work    []time.Time `json:"work"`    // when each step was done
	Effects []time.Time `json:"effects"` // when e-mails went out
	End     End         `json:"end"`
	Ended   time.Time   `json:"ended"`
}

// chronicle writes truth lines, each at once. A nil chronicle writes nothing.
type chronicle struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

func (c *chronicle) write(t *Truth) {
	line, err := json.Marshal(t)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.err == nil {
		_, err = c.w.Write(append(line, '\n'))
	}
	if err != nil && c.err == nil {
		c.err = fmt.Errorf("truth file is incomplete: %w", err)
	}
}

// close returns the first error there was.
func (c *chronicle) close() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
