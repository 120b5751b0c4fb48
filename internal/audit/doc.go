// Package audit is composed procedures over whole runs. The sweep breaks calls
// of one server in every style at every phase, a few times each, and says what
// came of each kind.
//
// A sweep is an ordinary run whose calls a director makes: everything goes into
// the history, and the grid is a function of it.
package audit
