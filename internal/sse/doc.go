// Package sse reads and writes event streams as the WHATWG HTML standard,
// section "Server-sent events", defines them. It does no I/O.
//
// The reader keeps to the standard where common readers do not: a line without
// a colon is a field, exactly one leading space of a value is dropped, and an
// event that the end of the stream cuts off is not delivered. Beyond the
// standard it knows the byte offset of every event, so that a stream can be
// broken, and be known to be broken, at an exact place.
package sse
