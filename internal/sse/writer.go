package sse

import "strings"

// AppendEvent appends one event to dst. An empty eventType writes no event
// field, which stands for "message". Line breaks in data (CR, LF or both) each
// begin a new data line, so that a reader gets LF for all of them. eventType
// comes from code, never from a peer: a line break in it panics.
func AppendEvent[T string | []byte](dst []byte, eventType string, data T) []byte {
	if strings.ContainsAny(eventType, "\r\n") {
		panic("sse: invariant: no line break in an event type")
	}
	if eventType != "" {
		dst = append(dst, "event: "...)
		dst = append(dst, eventType...)
		dst = append(dst, '\n')
	}
	dst = appendLines(dst, "data: ", []byte(data))
	return append(dst, '\n')
}

// AppendComment appends a comment and a blank line: a keep-alive. Line breaks
// in text begin new comment lines.
func AppendComment(dst []byte, text string) []byte {
	dst = appendLines(dst, ": ", []byte(text))
	return append(dst, '\n')
}

// appendLines writes each line of text with the prefix in front.
func appendLines(dst []byte, prefix string, text []byte) []byte {
	for {
		end := lineEnd(text)
		line := text
		if end >= 0 {
			line = text[:end]
		}
		dst = append(dst, prefix...)
		dst = append(dst, line...)
		dst = append(dst, '\n')
		if end < 0 {
			return dst
		}
		if text[end] == '\r' && end+1 < len(text) && text[end+1] == '\n' {
			end++
		}
		text = text[end+1:]
	}
}
