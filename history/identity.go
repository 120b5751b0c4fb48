package history

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

// Nonce makes the identities of one run unlike those of any other. It comes
// from the system's random source, never from the seed: two runs of one plan
// must not answer to each other's evidence.
type Nonce [8]byte

var nonceText = base32.NewEncoding("abcdefghijkmnpqrstuvwxyz23456789").WithPadding(base32.NoPadding)

// nonceLen is the length of a Nonce's text.
const nonceLen = 13

// NewNonce draws a nonce.
func NewNonce() Nonce {
	var n Nonce
	rand.Read(n[:]) // never fails: crypto/rand ends the program instead
	return n
}

func (n Nonce) String() string               { return nonceText.EncodeToString(n[:]) }
func (n Nonce) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText accepts the text of String.
func (n *Nonce) UnmarshalText(b []byte) error {
	d, err := nonceText.DecodeString(string(b))
	if err != nil || len(d) != len(n) {
		return fmt.Errorf("bad nonce %q", b)
	}
	copy(n[:], d)
	return nil
}

// Identities on the wire, for nonce N, role prefix r, call C, attempt A:
//
//	JSON-RPC id      mf-N-rC-A
//	progress token   mft-N-rC-A     (another string, so that neither can pass for the other)
//	marker           mfm-N-rC       (one a call: it stays the same over attempts)
//	trace id         16 bytes: N, a role byte, 5 bytes of call, 2 bytes of attempt
const (
	idPrefix     = "mf-"
	tokenPrefix  = "mft-"
	markerPrefix = "mfm-"
)

func (n Nonce) wire(prefix string, r Ref, attempt bool) string {
	s := fmt.Sprintf("%s%s-%s%d", prefix, n, rolePrefix[r.Role], r.Call)
	if attempt {
		s += fmt.Sprintf("-%d", r.Attempt)
	}
	return s
}

// ID is the JSON-RPC id of an attempt.
func (n Nonce) ID(r Ref) string { return n.wire(idPrefix, r, true) }

// Token is the progress token of an attempt.
func (n Nonce) Token(r Ref) string { return n.wire(tokenPrefix, r, true) }

// Marker is the text that names a call in its arguments.
func (n Nonce) Marker(r Ref) string { return n.wire(markerPrefix, r, false) }

// TraceID is the W3C trace id of an attempt. Call numbers above 2^40 and
// attempts above 2^16 do not fit and panic: no run reaches them.
func (n Nonce) TraceID(r Ref) [16]byte {
	if r.Call >= 1<<40 || r.Attempt >= 1<<16 {
		panic("history: invariant: call < 2^40 and attempt < 2^16 in a trace id")
	}
	var t [16]byte
	copy(t[:8], n[:])
	binary.BigEndian.PutUint64(t[8:], uint64(r.Role+1)<<56|r.Call<<16|uint64(r.Attempt))
	return t
}

// Traceparent is the W3C header value of an attempt: its trace, a root span
// that repeats the attempt's half of the trace id, and the sampled flag.
func (n Nonce) Traceparent(r Ref) string {
	t := n.TraceID(r)
	return "00-" + hex.EncodeToString(t[:]) + "-" + hex.EncodeToString(t[8:]) + "-01"
}

// Claim is what a text claims to be.
type Claim uint8

// The claims.
const (
	NotOurs Claim = iota // no identity of any run of mcpflood
	Ours                 // an identity of this run
	Foreign              // an identity of another run
)

func (n Nonce) read(prefix, s string, attempt bool) (Ref, Claim) {
	rest, ok := strings.CutPrefix(s, prefix)
	if !ok || len(rest) < nonceLen+2 || rest[nonceLen] != '-' {
		return Ref{}, NotOurs
	}
	tail := rest[nonceLen+1:]
	if attempt {
		i := strings.LastIndexByte(tail, '-')
		if i < 0 {
			return Ref{}, NotOurs
		}
		tail = tail[:i] + "/" + tail[i+1:]
	}
	r, err := ParseRef(tail)
	if err != nil || (r.Attempt != 0) != attempt {
		return Ref{}, NotOurs
	}
	if rest[:nonceLen] != n.String() {
		return Ref{}, Foreign
	}
	return r, Ours
}

// ReadID tells which attempt a JSON-RPC id names.
func (n Nonce) ReadID(s string) (Ref, Claim) { return n.read(idPrefix, s, true) }

// ReadToken tells which attempt a progress token names.
func (n Nonce) ReadToken(s string) (Ref, Claim) { return n.read(tokenPrefix, s, true) }

// ReadMarker tells which call a marker names.
func (n Nonce) ReadMarker(s string) (Ref, Claim) { return n.read(markerPrefix, s, false) }

// ReadTrace tells which attempt a trace id (32 hex digits, or a whole
// traceparent) names. A trace id has no shape of its own, so that of another
// run reads as NotOurs.
func (n Nonce) ReadTrace(s string) (Ref, Claim) {
	if len(s) == 55 && s[2] == '-' && s[35] == '-' {
		s = s[3:35]
	}
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 16 || Nonce(b[:8]) != n {
		return Ref{}, NotOurs
	}
	v := binary.BigEndian.Uint64(b[8:])
	role := v >> 56
	r := Ref{Role: Role(role - 1), Call: v >> 16 & (1<<40 - 1), Attempt: uint32(v & 0xffff)}
	if role == 0 || int(role) > len(rolePrefix) || r.Call == 0 || r.Attempt == 0 {
		return Ref{}, NotOurs
	}
	return r, Ours
}
