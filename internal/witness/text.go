package witness

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on what is kept of a source's text, in bytes.
const (
	maxKey    = 256     // an effect's key
	maxReason = 1 << 10 // a gap's reason
	maxShown  = 300     // a line shown to the user
	shown     = 3       // how many of them

	// minSecret keeps a "secret" of a letter or two from blanking all text.
	minSecret = 4
)

// clip cuts s to at most n bytes, between two characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// printable escapes what could move a terminal's cursor, hide or reorder text.
func printable(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		}
		s = s[size:]
	}
	return b.String()
}

// ring keeps the last few lines, the start of each, without allocating for a
// line.
type ring struct {
	lines [shown][]byte
	n     int
}

func (r *ring) add(line []byte) {
	p := &r.lines[r.n%shown]
	// More is kept than is shown, so that no secret is cut in two unseen.
	*p = append((*p)[:0], line[:min(len(line), 2*maxShown)]...)
	r.n++
}

// texts gives the lines, oldest first, safe to print.
func (r *ring) texts(secrets *strings.Replacer) []string {
	var out []string
	for i := max(0, r.n-shown); i < r.n; i++ {
		out = append(out, printable(clip(secrets.Replace(string(r.lines[i%shown])), maxShown)))
	}
	return out
}

// newScrubber replaces secrets by "***".
func newScrubber(secrets []string) *strings.Replacer {
	var pairs []string
	for _, s := range secrets {
		if len(s) >= minSecret {
			pairs = append(pairs, s, "***")
		}
	}
	return strings.NewReplacer(pairs...)
}

var (
	credential = regexp.MustCompile(`(?i)((?:authorization|cookie|[\w-]*(?:key|token|passw(?:or)?d|secret))["']?(?:\s*[:=]\s*|\s+))((?:bearer|basic)\s+)?(?:"[^"]*"|'[^']*'|[^\s"']+)`)
	bearer     = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[^\s"']+`)
	userinfo   = regexp.MustCompile(`(://)[^/@\s"']*@`)
	urlQuery   = regexp.MustCompile(`(://[^\s?"']*\?)[^\s"']*`)
)

// safeCommand is a command's text without what looks like a secret in it.
func safeCommand(cmd string) string {
	cmd = userinfo.ReplaceAllString(cmd, "${1}***@")
	cmd = urlQuery.ReplaceAllString(cmd, "${1}***")
	cmd = credential.ReplaceAllString(cmd, "${1}${2}***")
	return bearer.ReplaceAllString(cmd, "$1 ***")
}

// safeURL is a URL's text without user, password and query.
func safeURL(u *url.URL) string {
	c := *u
	if c.User != nil {
		c.User = url.User("***")
	}
	if c.RawQuery != "" {
		c.RawQuery = "***"
	}
	return c.String()
}

const (
	// maxCandidates and maxName bound the search for a near name.
	maxCandidates = 5000
	maxName       = 64
)

// nearest lists up to three names that are most like want, the best first.
func nearest(want string, have []string) []string {
	type near struct {
		name string
		dist int
	}
	var all []near
	for _, h := range have[:min(len(have), maxCandidates)] {
		all = append(all, near{h, unlike(clip(want, maxName), clip(h, maxName))})
	}
	slices.SortFunc(all, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.dist, b.dist), cmp.Compare(a.name, b.name))
	})
	var out []string
	for _, n := range all[:min(len(all), shown)] {
		out = append(out, n.name)
	}
	return out
}

// nearestHint words nearest for an error; empty if there is nothing near.
func nearestHint(want string, have []string) string {
	near := nearest(want, have)
	if len(near) == 0 {
		return ""
	}
	for i, n := range near {
		near[i] = strconv.Quote(n)
	}
	return "nearest: " + strings.Join(near, ", ")
}

// unlike tells how little two names have in common. A name inside a longer one
// counts as near: exporters add prefixes and suffixes.
func unlike(a, b string) int {
	share := func(edits, of int) int { return 100 * edits / max(of, 1) }
	inside := min(share(edits(a, b, true), len(a)), share(edits(b, a, true), len(b)))
	return min(share(edits(a, b, false), max(len(a), len(b))), inside+max(len(a)-len(b), len(b)-len(a)))
}

// edits counts the edits (insert, drop, replace a byte) from a to b, or, within,
// to the part of b that is nearest.
func edits(a, b string, within bool) int {
	row := make([]int, len(b)+1)
	if !within {
		for j := range row {
			row[j] = j
		}
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := min(row[j]+1, row[j+1]+1, diagonal+1)
			if a[i] == b[j] {
				next = min(next, diagonal)
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	if within {
		return slices.Min(row)
	}
	return row[len(b)]
}
