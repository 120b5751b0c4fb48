package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// Field is one header field.
type Field struct{ Name, Value string }

// CheckField reports why a field cannot be sent: a name that is no token, a
// value that would break the request head, or a field that this package sets
// itself.
func CheckField(f Field) error {
	if f.Name == "" {
		return fmt.Errorf("header has no name")
	}
	for i := range len(f.Name) {
		if !tokenByte(f.Name[i]) {
			return fmt.Errorf("header name %q: want letters, digits and dashes", f.Name)
		}
	}
	for i := range len(f.Value) {
		if c := f.Value[i]; (c < ' ' && c != '\t') || c == 0x7f {
			return fmt.Errorf("header %s: its value has a control character", f.Name)
		}
	}
	for _, own := range []string{"Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Expect"} {
		if strings.EqualFold(f.Name, own) {
			return fmt.Errorf("header %s: the connection sets it, leave it out", f.Name)
		}
	}
	return nil
}

// tokenByte is tchar of RFC 9110, section 5.6.2.
func tokenByte(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// AppendRequest appends one POST request, head and body, to dst. A Host field
// among fields takes the place of the endpoint's own. The connection is not
// asked to close: a server should behave as it does with real clients, which
// keep theirs. Fields are any struct of Name and Value, so that callers need
// not copy theirs; one that [CheckField] refuses is an error and dst comes back
// unchanged.
func AppendRequest[F ~struct{ Name, Value string }](dst []byte, e Endpoint, fields []F, body []byte) ([]byte, error) {
	out := append(dst, "POST "...)
	out = append(out, e.Target...)
	out = append(out, " HTTP/1.1\r\nHost: "...)
	out = append(out, host(e, fields)...)
	out = append(out, "\r\n"...)
	for _, each := range fields {
		f := Field(each)
		if err := CheckField(f); err != nil {
			return dst, err
		}
		if strings.EqualFold(f.Name, "Host") {
			continue
		}
		out = append(out, f.Name...)
		out = append(out, ": "...)
		out = append(out, f.Value...)
		out = append(out, "\r\n"...)
	}
	out = append(out, "Content-Length: "...)
	out = strconv.AppendInt(out, int64(len(body)), 10)
	out = append(out, "\r\n\r\n"...)
	return append(out, body...), nil
}

func host[F ~struct{ Name, Value string }](e Endpoint, fields []F) string {
	for _, each := range fields {
		if f := Field(each); strings.EqualFold(f.Name, "Host") {
			return f.Value
		}
	}
	return e.Authority
}
