package flood

import "errors"

// Why a run could not be done. Any other error of [Run] is a mistake in the
// configuration, or in what it says about the server.
var (
	// ErrUnreachable: nothing answered before the load.
	ErrUnreachable = errors.New("target unreachable")
	// ErrNoEvidence: a witness saw nothing of the clean calls.
	ErrNoEvidence = errors.New("not enough evidence")
	// ErrInterrupted: the run was ended before its load began.
	ErrInterrupted = errors.New("interrupted")
)

// kindError is an error of one of these kinds with its own words.
type kindError struct {
	kind error
	text string
}

func (e *kindError) Error() string { return e.text }
func (e *kindError) Unwrap() error { return e.kind }
