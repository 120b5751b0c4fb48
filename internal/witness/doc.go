// Package witness turns a server's own evidence into history records: what it
// logs ([Log]) and what it counts ([Metrics]).
//
// A witness is told what to look for, is checked before the run, appends what
// it sees to the history, and judges nothing. Where it could not see it says so
// with a [history.Gap]; where it could not read a record it counts that. The
// same rule holds for each source: nothing it sends may panic us, hang us, or
// make memory grow.
//
// Each witness runs on one goroutine that reads, matches and appends. There is
// no queue between these: a source that floods is read as fast as its lines can
// be matched, and waits in its pipe or file meanwhile.
package witness
