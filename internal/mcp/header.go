package mcp

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The headers of a request (transports/streamable-http, "Standard Headers").
const (
	HeaderVersion     = "MCP-Protocol-Version"
	HeaderMethod      = "Mcp-Method"
	HeaderName        = "Mcp-Name"
	HeaderParamPrefix = "Mcp-Param-"

	contentJSON = "application/json"
	contentSSE  = "text/event-stream"
)

// The marks around a header value that is sent as base64 of UTF-8. They are
// exact: another case of letters makes a plain value.
const (
	sentinelStart = "=?base64?"
	sentinelEnd   = "?="
)

// Field is one HTTP header field. Its value is ready for the wire.
type Field struct{ Name, Value string }

// EncodeHeaderValue makes a value fit for a header field: as it is where that
// is possible, else base64 between the sentinel marks (transports/streamable-http,
// "Value Encoding"). Invalid UTF-8 in s becomes U+FFFD, as in a JSON body.
func EncodeHeaderValue(s string) string {
	if plainHeaderValue(s) {
		return s
	}
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	return sentinelStart + base64.StdEncoding.EncodeToString([]byte(s)) + sentinelEnd
}

// plainHeaderValue reports whether s can be sent as it is and read back the
// same: printable ASCII and tabs, no blank at either end, nothing that a
// reader could take for the sentinel.
func plainHeaderValue(s string) bool {
	if !legalHeaderValue(s) || s != strings.Trim(s, " \t") {
		return false
	}
	return len(s) < len(sentinelStart) || !strings.EqualFold(s[:len(sentinelStart)], sentinelStart)
}

func legalHeaderValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '\t' && (c < ' ' || c > '~') {
			return false
		}
	}
	return true
}

// DecodeHeaderValue reads the value of a header field. Blanks around it are
// not part of it. Illegal characters, base64 that cannot be decoded and base64
// of anything but UTF-8 are errors.
func DecodeHeaderValue(s string) (string, error) {
	s = strings.Trim(s, " \t")
	if !legalHeaderValue(s) {
		return "", errors.New("illegal characters in a header value: send it as =?base64?...?=")
	}
	rest, ok := strings.CutPrefix(s, sentinelStart)
	if !ok {
		return s, nil
	}
	text, ok := strings.CutSuffix(rest, sentinelEnd)
	if !ok {
		return s, nil
	}
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return "", fmt.Errorf("bad base64 in a header value: %v", err)
	}
	if !utf8.Valid(b) {
		return "", errors.New("a base64 header value is not UTF-8")
	}
	return string(b), nil
}
