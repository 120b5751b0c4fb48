package wire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// Errors that a caller may match.
var (
	// ErrCut ends the reads of a connection that was cut by us.
	ErrCut = errors.New("cut by us")
	// ErrWoken is what [Conn.ReadAvailable] returns after [Conn.Wake]. It may
	// come once more than Wake was called.
	ErrWoken = errors.New("woken")
	// ErrUnacked: the peer's kernel has not acknowledged all we sent, so the
	// connection cannot vanish yet. Try again, for up to [VanishWait].
	ErrUnacked = errors.New("sent bytes are not acknowledged yet")
	// ErrNoVanish: this system cannot drop a connection's packets; stall instead.
	ErrNoVanish = errors.New("vanish needs Linux socket filters")
)

// Error is a failure to bring a request to the server. What a server did wrong
// after that is a [ProtocolError] or a plain read error.
type Error struct {
	Op     string         // resolve, dial, tls, write
	Target string         // host or address; no secrets
	Origin history.Origin // Us when the fault is ours: descriptors, ports, memory
	Queued time.Duration  // how long the dial waited for a free slot
	Err    error
}

func (e *Error) Error() string {
	msg := fmt.Sprintf("%s %s: %v", e.Op, e.Target, e.Err)
	if h := hint(e.Err); h != "" {
		msg += " (hint: " + h + ")"
	}
	return msg
}

func (e *Error) Unwrap() error { return e.Err }

func hint(err error) string {
	var cert *tls.CertificateVerificationError
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "raise ulimit -n or hold fewer streams"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "no free local port to this address: fewer connections, or several addresses"
	case errors.As(err, &cert):
		return "name the CA file, or accept any certificate with --insecure"
	}
	return ""
}

// ProtocolError says how an answer broke HTTP/1.1.
type ProtocolError struct{ What string }

func (e *ProtocolError) Error() string { return "bad http answer: " + e.What }

func protocolErrorf(format string, args ...any) *ProtocolError {
	return &ProtocolError{What: fmt.Sprintf(format, args...)}
}

var paths = []error{
	syscall.ECONNREFUSED, syscall.ETIMEDOUT, syscall.EHOSTUNREACH,
	syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.ENETDOWN,
}

// peers has ENOTCONN because a cut meets it where a reset came just before.
var peers = []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED, syscall.ENOTCONN}

// OriginOf says who caused an error of this package. What it does not know is
// held against nobody but us, as are full tables of this machine, time-outs and
// cancelled contexts.
func OriginOf(err error) history.Origin {
	var e *Error
	var proto *ProtocolError
	switch {
	case err == nil:
		return history.OriginNone
	case errors.As(err, &e) && e.Origin != history.OriginNone:
		return e.Origin
	case errors.Is(err, ErrCut):
		return history.Chaos
	case errors.As(err, &proto), isTLS(err), isAny(err, peers):
		return history.Peer
	case isAny(err, paths):
		return history.Network
	}
	return history.Us
}

// isTLS tells errors of the TLS exchange itself: bad records, alerts,
// certificates.
func isTLS(err error) bool {
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var cert *tls.CertificateVerificationError
	return errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &cert)
}

func isAny(err error, list []error) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// How names the way a peer ended a stream: "eof", "reset", or "" where err is
// neither.
func How(err error) string {
	switch {
	case errors.Is(err, io.EOF):
		return "eof"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ENOTCONN):
		return "reset"
	}
	return ""
}
