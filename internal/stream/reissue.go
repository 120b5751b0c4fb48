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
	d := b.Cap
	if shift := attempt - 1; shift < 32 && b.Base<<shift < b.Cap && b.Base<<shift > 0 {
		d = b.Base << shift
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
// been told of, the peer ending the stream, a connection that failed, 502 to
// 504, and 429 or 503, whose Retry-After is honoured. JSON-RPC errors, other
// statuses, cuts after the result, open cuts and ends of our own are not.
//
// rounds are the attempts of this call that only followed an input_required
// answer: they use up nothing.
func (r Reissue) Next(end *history.End, rounds int, draw float64) (wait time.Duration, again bool) {
	tries := int(end.Ref.Attempt) - rounds
	if tries > r.Max || !lost(end) {
		return 0, false
	}
	wait = r.Backoff.Wait(uint32(tries), draw)
	return max(wait, min(end.RetryAfter, MaxRetryAfter)), true
}

func lost(end *history.End) bool {
	switch end.Outcome {
	case history.Cut:
		if end.Cut == nil || end.Cut.Phase == history.PhaseDone {
			return false
		}
		// A half-closed call is lost only if its stream ended without a result.
		return end.Cut.Style.Class() != history.ClassOpen || end.After != nil && end.After.How != ""
	case history.Broken:
		return true
	case history.Failed:
		return end.Origin != history.Us
	case history.Refused:
		return end.Status == 429 || end.Status >= 502 && end.Status <= 504
	}
	return false
}
