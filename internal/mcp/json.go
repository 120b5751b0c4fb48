package mcp

import (
	"bytes"
	"encoding/json"
	"unicode/utf16"
	"unicode/utf8"
)

// walk goes over the members of an object or the elements of an array without
// allocating. It trusts its input to be valid JSON: whoever takes JSON from
// outside checks it once, with [json.Valid]. Unlike encoding/json it matches
// names exactly.
type walk struct {
	rest     []byte
	keyed    bool
	key, val []byte // key is unescaped
}

// members walks an object; anything else has none.
func members(v []byte) walk {
	if v = trim(v); !isObject(v) {
		return walk{}
	}
	return walk{rest: v[1:], keyed: true}
}

// elements walks an array; anything else has none.
func elements(v []byte) walk {
	if v = trim(v); len(v) == 0 || v[0] != '[' {
		return walk{}
	}
	return walk{rest: v[1:]}
}

func (w *walk) next() bool {
	b := skipSpace(w.rest)
	if len(b) == 0 || b[0] == '}' || b[0] == ']' {
		return false
	}
	if b[0] == ',' {
		b = skipSpace(b[1:])
	}
	if w.keyed {
		n := stringEnd(b)
		w.key = b[1 : n-1]
		if bytes.IndexByte(w.key, '\\') >= 0 {
			w.key = []byte(unquote(b[:n], n))
		}
		b = skipSpace(b[n:])
		b = skipSpace(b[1:]) // the colon
	}
	n := valueEnd(b)
	w.val, w.rest = b[:n], b[n:]
	return true
}

// member finds one member of an object; the last of that name wins.
func member(v []byte, name string) (val json.RawMessage, ok bool) {
	for m := members(v); m.next(); {
		if string(m.key) == name {
			val, ok = m.val, true
		}
	}
	return val, ok
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func skipSpace(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	return b
}

func trim(b []byte) []byte {
	b = skipSpace(b)
	for len(b) > 0 && isSpace(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

func isObject(v []byte) bool { return len(v) > 0 && v[0] == '{' }
func isString(v []byte) bool { return len(v) > 0 && v[0] == '"' }
func isNull(v []byte) bool   { return string(v) == "null" }
func isNumber(v []byte) bool { return len(v) > 0 && (v[0] == '-' || '0' <= v[0] && v[0] <= '9') }

// isInteger reports whether a number is written without fraction and exponent.
func isInteger(v []byte) bool { return isNumber(v) && !bytes.ContainsAny(v, ".eE") }

// stringEnd is the length of the string literal that b begins with.
func stringEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// valueEnd is the length of the value that b begins with.
func valueEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += stringEnd(b[i:]) - 1
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
		}
	}
	return len(b)
}

// unquote is the text of a string literal, of which at most limit bytes of
// UTF-8 are kept, whole characters only. Invalid UTF-8 and lone surrogates
// become U+FFFD, as in encoding/json. Anything but a string gives "".
func unquote(v []byte, limit int) string {
	if !isString(v) || len(v) < 2 {
		return ""
	}
	v = v[1 : len(v)-1]
	if len(v) <= limit && bytes.IndexByte(v, '\\') < 0 && utf8.Valid(v) {
		return string(v)
	}
	out := make([]byte, 0, min(len(v), limit))
	for len(v) > 0 {
		r, n := decodeChar(v)
		if len(out)+utf8.RuneLen(r) > limit {
			break
		}
		out = utf8.AppendRune(out, r)
		v = v[n:]
	}
	return string(out)
}

// decodeChar reads one character of the inside of a string literal.
func decodeChar(v []byte) (r rune, size int) {
	if v[0] != '\\' {
		return utf8.DecodeRune(v)
	}
	if len(v) < 2 {
		return utf8.RuneError, len(v)
	}
	switch v[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r, ok := hex4(v)
		if !ok {
			return utf8.RuneError, len(v)
		}
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if low, ok := hex4(v[6:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return utf8.RuneError, 6
	}
	return rune(v[1]), 2
}

// hex4 reads \uXXXX.
func hex4(v []byte) (r rune, ok bool) {
	if len(v) < 6 || v[0] != '\\' || v[1] != 'u' {
		return 0, false
	}
	for _, c := range v[2:6] {
		r <<= 4
		switch {
		case '0' <= c && c <= '9':
			r |= rune(c - '0')
		case 'a' <= c && c <= 'f':
			r |= rune(c-'a') + 10
		case 'A' <= c && c <= 'F':
			r |= rune(c-'A') + 10
		default:
			return 0, false
		}
	}
	return r, true
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends s as a JSON string literal. Invalid UTF-8 becomes
// U+FFFD, a byte at a time.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[from:i]...), "\uFFFD"...)
				from = i + 1
			}
			i += n
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			dst = append(dst, s[from:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, '\\', 'n')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			from = i + 1
		}
		i++
	}
	return append(append(dst, s[from:]...), '"')
}
