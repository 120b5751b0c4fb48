package witness

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type got struct {
	Text string
	Cut  bool
}

func feedAll(l *lines, parts ...[]byte) []got {
	var out []got
	for _, p := range parts {
		l.feed(p, func(b []byte, cut bool) { out = append(out, got{string(b), cut}) })
	}
	return out
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", MaxLine)
	for _, tc := range []struct {
		name, in string
		want     []got
		partial  bool
	}{
		{"plain", "a\nb\r\n\nc", []got{{"a", false}, {"b", false}, {"", false}}, true},
		{"longest whole", long + "\nb\n", []got{{long, false}, {"b", false}}, false},
		{"too long", long + "yy\nb\n", []got{{long, true}, {"b", false}}, false},
		{"hole of zeros", "\x00\x00\x00a\n", []got{{"a", false}}, false},
		{"zeros inside", "a\x00b\n", []got{{"a\x00b", false}}, false},
	} {
		var l lines
		if diff := cmp.Diff(tc.want, feedAll(&l, []byte(tc.in))); diff != "" {
			t.Errorf("%s: lines differ (-want +got):\n%.300s", tc.name, diff)
		}
		if had := l.reset(); had != tc.partial {
			t.Errorf("%s: partial line = %v, want %v", tc.name, had, tc.partial)
		}
	}
}

func TestLinesAnySlicing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"a", "\n", "\r\n", "line of text\n", "\x00", strings.Repeat("z", MaxLine/2+1), "\xff\xfe\n"})
		text := []byte(strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "text"), ""))
		var whole, sliced lines
		var parts [][]byte
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			parts = append(parts, rest[:n])
			rest = rest[n:]
		}
		want, have := feedAll(&whole, text), feedAll(&sliced, parts...)
		if !cmp.Equal(want, have) {
			t.Fatalf("sliced lines differ: %d and %d lines", len(want), len(have))
		}
		if a, b := bytes.Equal(whole.partial, sliced.partial), whole.skip == sliced.skip; !a || !b {
			t.Fatalf("state after slicing differs")
		}
	})
}
