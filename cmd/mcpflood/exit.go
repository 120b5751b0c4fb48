package main

import (
	"errors"

	"github.com/mcpflood/mcpflood/flood"
	"github.com/mcpflood/mcpflood/history"
)

// The exit codes. Where several hold, the order of precedence is
// 2 > 4 > 130 > 99 > 3 > 0.
const (
	exitPass        = 0
	exitUsage       = 2  // usage or configuration
	exitUnknown     = 3  // not enough evidence
	exitUnreachable = 4  // nothing answered before the load
	exitFail        = 99 // a threshold or a verdict failed
	exitInterrupted = 130
)

// exitError carries an exit code through cobra; err may be nil.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage marks an error as the user's to mend.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitUsage, err}
}

// codeOf maps why a run could not be done to its exit code.
func codeOf(err error) int {
	switch {
	case errors.Is(err, flood.ErrUnreachable):
		return exitUnreachable
	case errors.Is(err, flood.ErrNoEvidence):
		return exitUnknown
	case errors.Is(err, flood.ErrInterrupted):
		return exitInterrupted
	}
	return exitUsage
}

// verdictExit maps a finished run's verdict.
func verdictExit(j history.Judgement, interrupted bool) error {
	code := exitPass
	switch {
	case interrupted:
		code = exitInterrupted
	case j == history.Fail:
		code = exitFail
	case j != history.Pass:
		code = exitUnknown
	}
	if code == exitPass {
		return nil
	}
	return &exitError{code: code}
}
