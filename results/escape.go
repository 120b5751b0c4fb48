package results

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible makes a foreign text safe to show: control and formatting characters,
// which could move a cursor, hide text or turn it around, and bytes that are no
// UTF-8 are written as escapes. A safe text stays as it is.
func Visible(s string) string {
	safe := func(r rune) bool { return unicode.IsPrint(r) && r != utf8.RuneError }
	if strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1, r < 0x80 && !safe(r):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !unicode.IsPrint(r):
			if r > 0xffff {
				fmt.Fprintf(&b, `\U%08x`, r)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// clip shortens s to at most n runes.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}
