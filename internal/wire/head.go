package wire

import (
	"strconv"
	"strings"
	"time"
)

// Head is a response head. Its strings share one piece of memory; the methods
// return copies, so that keeping a value does not keep the whole head.
type Head struct {
	Status int
	Minor  int // of HTTP/1.x
	Fields []Field
}

// Get returns the first value of a field, by a name in any case, or "".
func (h *Head) Get(name string) string {
	for _, f := range h.Fields {
		if strings.EqualFold(f.Name, name) {
			return strings.Clone(f.Value)
		}
	}
	return ""
}

// RetryAfter reads the field of that name, in seconds or as a date that is
// compared with now. False: there is none that can be read.
func (h *Head) RetryAfter(now time.Time) (time.Duration, bool) {
	const longest = 1 << 31 // seconds; keeps the product a Duration
	text := h.Get("Retry-After")
	if n, err := strconv.ParseUint(text, 10, 63); err == nil {
		return time.Duration(min(n, longest)) * time.Second, true
	}
	at, err := time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", text)
	if err != nil {
		return 0, false
	}
	return max(0, at.Sub(now)), true
}

// parseHead reads a status line and fields, up to and with the empty line.
func parseHead(block string) (*Head, error) {
	line, rest := nextLine(block)
	h, err := parseStatus(line)
	if err != nil {
		return nil, err
	}
	if n := strings.Count(rest, "\n") - 1; n > 0 {
		h.Fields = make([]Field, 0, min(maxFields, n))
	}
	for {
		line, rest = nextLine(rest)
		if line == "" {
			return h, nil
		}
		if strings.ContainsAny(line, "\x00\r") {
			return nil, protocolErrorf("a control character in a header")
		}
		if err := h.addLine(line); err != nil {
			return nil, err
		}
	}
}

func (h *Head) addLine(line string) error {
	if line[0] == ' ' || line[0] == '\t' {
		// A folded line (RFC 9112, section 5.2): one blank takes its place.
		if len(h.Fields) == 0 {
			return protocolErrorf("a header that goes on before it began")
		}
		last := &h.Fields[len(h.Fields)-1]
		last.Value = strings.Trim(last.Value+" "+strings.Trim(line, " \t"), " ")
		return nil
	}
	name, value, ok := strings.Cut(line, ":")
	if !ok {
		return protocolErrorf("a header without colon: %q", quotable(nil, []byte(line)))
	}
	name = strings.TrimRight(name, " \t")
	if name == "" || strings.ContainsAny(name, " \t") {
		return protocolErrorf("a bad header name: %q", quotable(nil, []byte(name)))
	}
	if len(h.Fields) == maxFields {
		return protocolErrorf("over %d header fields", maxFields)
	}
	h.Fields = append(h.Fields, Field{name, strings.Trim(value, " \t")})
	return nil
}

// nextLine cuts a line off, without its LF or CRLF.
func nextLine(s string) (line, rest string) {
	line, rest, _ = strings.Cut(s, "\n")
	return strings.TrimSuffix(line, "\r"), rest
}

// parseStatus reads "HTTP/1.x NNN reason"; the reason may lack, with its blank.
func parseStatus(line string) (*Head, error) {
	version, rest, _ := strings.Cut(line, " ")
	minor, ok := strings.CutPrefix(version, magic)
	code, _, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	status, err := strconv.ParseUint(code, 10, 16)
	if !ok || (minor != "0" && minor != "1") || err != nil || len(code) != 3 || status < 100 {
		return nil, protocolErrorf("its status line is %q", quotable(nil, []byte(line)))
	}
	return &Head{Status: int(status), Minor: int(minor[0] - '0')}, nil
}

// contentLength returns -1 where there is none. Repeated equal values count as
// one (RFC 9112, section 6.3).
func (h *Head) contentLength() (int64, error) {
	length := int64(-1)
	for _, text := range h.list("Content-Length") {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil || (length >= 0 && length != int64(n)) {
			return 0, protocolErrorf("its Content-Length is %q", quotable(nil, []byte(text)))
		}
		length = int64(n)
	}
	return length, nil
}

// transferCodings lists them in lower case.
func (h *Head) transferCodings() []string { return h.list("Transfer-Encoding") }

// list splits all values of a field at commas.
func (h *Head) list(name string) []string {
	var out []string
	for _, f := range h.Fields {
		if !strings.EqualFold(f.Name, name) {
			continue
		}
		for item := range strings.SplitSeq(f.Value, ",") {
			if item = strings.Trim(item, " \t"); item != "" {
				out = append(out, strings.ToLower(item))
			}
		}
	}
	return out
}
