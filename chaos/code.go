package chaos

import (
	"fmt"
	"strconv"
	"strings"
)

// Code is the error code of a stream-reset, plus one; NoCode stands for the one
// that a client sends that has lost interest, CANCEL (RFC 9113, section 7).
type Code uint8

// NoCode is the code left open.
const NoCode Code = 0

// codes are the names of RFC 9113, section 7, in the order of their numbers.
var codes = []string{
	"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED", "FRAME_SIZE_ERROR",
	"REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
}

const cancel = 8

// ParseCode reads a name or a number.
func ParseCode(s string) (Code, error) {
	for i, name := range codes {
		if name == s || strconv.Itoa(i) == s {
			return Code(i + 1), nil
		}
	}
	return NoCode, fmt.Errorf("unknown HTTP/2 error code %q: want one of %s", s, strings.Join(codes, ", "))
}

func (c Code) String() string {
	if c == NoCode {
		return ""
	}
	if int(c) > len(codes) {
		return fmt.Sprintf("invalid(%d)", c)
	}
	return codes[c-1]
}

// Wire is the code as it goes onto the wire.
func (c Code) Wire() uint32 {
	if c == NoCode {
		return cancel
	}
	return uint32(c - 1)
}
