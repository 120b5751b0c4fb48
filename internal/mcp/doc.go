// Package mcp holds the wire forms of the Model Context Protocol, revision
// 2026-07-28, over HTTP: JSON-RPC messages, the _meta of requests, the HTTP
// headers that mirror a body, error codes, tools and their arguments. It does
// no I/O and reads no clock; both the driver and the reference server use it.
//
// Reading an answer is tolerant, as a client has to be: unknown members are
// ignored, an error may have a null id, a result without resultType is
// complete. Reading a request is strict, as the revision demands of a server.
// Nothing a peer sends panics or costs more memory than its own size.
//
// Raw values ([encoding/json.RawMessage]) in what is returned alias the bytes
// they were read from. Strings are copies, and are cut at [MaxText] bytes
// where they are for people.
package mcp

// Version is the revision this package speaks.
const Version = "2026-07-28"

const (
	// MaxMessage bounds one JSON-RPC message, in bytes.
	MaxMessage = 4 << 20
	// MaxText bounds any text kept from a peer, in bytes.
	MaxText = 4 << 10
)
