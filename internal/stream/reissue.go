package stream

import (
	"fmt"
	"strings"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// Backoff is how long a call waits before it is issued again. The zero value
// waits nothing.
type Backoff struct {
	Base, Cap time.Duration
	Jitter    bool // full jitter: uniform between 0 and min(Cap, Base·2^n)
}

// ParseBackoff reads "none", "fixed(1s)" or "full-jitter(100ms,5s)".
func ParseBackoff(s string) (Backoff, error) {
	bad := fmt.Errorf("bad backoff %q: want none, fixed(1s) or full-jitter(100ms,5s)", s)
	if s == "none" || s == "" {
		return Backoff{}, nil
	}
	name, rest, ok := strings.Cut(s, "(")
	rest, closed := strings.CutSuffix(rest, ")")
	if !ok || !closed {
		return Backoff{}, bad
	}
	var ds []time.Duration
	for part := range strings.SplitSeq(rest, ",") {
		d, err := time.ParseDuration(strings.TrimSpace(part))
		if err != nil || d < 0 {
			return Backoff{}, bad
		}
		ds = append(ds, d)
	}
	switch {
	case name == "fixed" && len(ds) == 1:
		return Backoff{Base: ds[0], Cap: ds[0]}, nil
	case name == "full-jitter" && len(ds) == 2 && ds[0] <= ds[1]:
		return Backoff{Base: ds[0], Cap: ds[1], Jitter: true}, nil
	}
	return Backoff{}, bad
}

// String gives the text that [ParseBackoff] reads.
func (b Backoff) String() string {
	switch {
	case b == Backoff{}:
		return "none"
	case b.Jitter:
		return fmt.Sprintf("full-jitter(%s,%s)", b.Base, b.Cap)
	}
	return fmt.Sprintf("fixed(%s)", b.Base)
}

// Wait is the pause after the given attempt (from 1); draw is from [0,1).
func (b Backoff) Wait(attempt uint32, draw float64) time.Duration {
	d := min(b.Base, b.Cap)
	for n := uint32(1); n < attempt && d > 0 && d < b.Cap; n++ {
		d += min(d, b.Cap-d)
	}
	if b.Jitter {
		d = time.Duration(draw * float64(d))
	}
	return d
}

// MaxRetryAfter bounds how long a server's Retry-After can hold a call.
const MaxRetryAfter = 5 * time.Minute

// Reissue says when a call is sent again under a new id: the changelog of
// 2026-07-28 (major change 9) has a broken stream's request re-issued as a new
// request with a new id.
type Reissue struct {
	Max     int // attempts beyond the first
	Backoff Backoff
}

// Next decides about the attempt that ended: whether the call is issued again,
// and after what pause. Lost streams are: a cut the server was or could have
// been told of, the peer or the network ending the stream, a connection that
// failed, and the statuses 429 and 502 to 504 (judging, section 7). JSON-RPC
// errors, other statuses, cuts after the result, wrong signals and ends of our
// own are not; an open cut is one only if its stream then ended without an
// answer.
//
// rounds are the attempts of this call that only followed an input_required
// answer: they use up nothing. draw is from [0,1).
func (r Reissue) Next(end *history.End, rounds int, draw float64) (wait time.Duration, again bool) {
	tries := int(end.Ref.Attempt) - rounds
	if tries > r.Max || !lost(end) {
		return 0, false
	}
	wait = r.Backoff.Wait(uint32(tries), draw)
	if end.Status == tooManyRequests || end.Status == unavailable {
		wait = max(wait, min(end.RetryAfter, MaxRetryAfter))
	}
	return wait, true
}

func lost(end *history.End) bool {
	switch end.Outcome {
	case history.Cut:
		return lostByCut(end)
	case history.Broken, history.Failed:
		return end.Origin != history.Us
	case history.Refused:
		return passing(end.Status)
	}
	return false
}

func lostByCut(end *history.End) bool {
	c := end.Cut
	switch {
	case c == nil, c.Phase == history.PhaseDone, c.Style == history.WrongSignal:
		return false
	case c.Style.Class() == history.ClassOpen:
		return end.After != nil && end.After.How != "" && (end.Status < 400 || passing(end.Status))
	}
	return true
}

// The HTTP statuses that say: not now.
const (
	tooManyRequests = 429
	badGateway      = 502
	unavailable     = 503
	gatewayTimeout  = 504
)

func passing(status int) bool {
	return status == tooManyRequests || status >= badGateway && status <= gatewayTimeout
}
