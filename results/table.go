package results

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Width is how many columns a report uses at most.
const Width = 100

// table lays out rows in columns: the first ones to the left, the others to the
// right.
type table struct {
	left int // how many columns are aligned to the left
	rows [][]string
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the rows, each behind the indent; cells of the left columns are
// clipped so that no row is wider than Width.
func (t *table) write(b *strings.Builder, indent string) {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	total := len(indent)
	for _, w := range widths {
		total += w + columnGap
	}
	for i := 0; i < min(t.left, len(widths)) && total-columnGap > Width; i++ {
		cut := min(total-columnGap-Width, max(0, widths[i]-minColumn))
		widths[i] -= cut
		total -= cut
	}
	for _, row := range t.rows {
		line := indent
		for i, cell := range row {
			cell = clip(cell, max(widths[i], 1))
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line += strings.Repeat(" ", columnGap)
			}
			if i < t.left {
				line += cell + pad
			} else {
				line += pad + cell
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

const (
	columnGap = 2
	minColumn = 8 // a clipped column keeps at least so much
)

// wrap breaks a text into lines of at most Width columns: the first behind
// first, the others behind rest. A word longer than a line is cut into pieces.
func wrap(b *strings.Builder, first, rest, text string) {
	line, prefix := "", first
	flush := func() {
		b.WriteString(strings.TrimRight(prefix+line, " ") + "\n")
		line, prefix = "", rest
	}
	for word := range strings.FieldsSeq(text) {
		for {
			room := Width - utf8.RuneCountInString(prefix)
			n := utf8.RuneCountInString(word)
			if line == "" {
				if n <= room {
					line = word
					break
				}
				r := []rune(word)
				line, word = string(r[:room]), string(r[room:])
				flush()
				continue
			}
			if utf8.RuneCountInString(line)+1+n <= room {
				line += " " + word
				break
			}
			flush()
		}
	}
	flush()
}

// span writes seconds for people: "0.42ms", "152ms", "1.52s", "2m05s".
func span(s float64) string {
	switch {
	case s >= 60:
		n := int64(math.Round(s))
		if n >= 3600 {
			return fmt.Sprintf("%dh%02dm", n/3600, n%3600/60)
		}
		return fmt.Sprintf("%dm%02ds", n/60, n%60)
	case s >= 1:
		return digits(s, 3) + "s"
	}
	return digits(s*1000, 3) + "ms"
}

func spanOr(s *float64, missing string) string {
	if s == nil {
		return missing
	}
	return span(*s)
}

// digits writes x with about n significant digits and without exponent or
// superfluous zeros.
func digits(x float64, n int) string {
	if x == 0 {
		return "0"
	}
	before := int(math.Floor(math.Log10(math.Abs(x)))) + 1
	s := strconv.FormatFloat(x, 'f', max(0, n-before), 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// amount writes a number of units or of money.
func amount(x *float64) string {
	if x == nil {
		return "-"
	}
	return digits(*x, 5)
}

func percent(share float64) string {
	switch p := 100 * share; {
	case p == 0 || p >= 99.95:
		return fmt.Sprintf("%.0f%%", p)
	case p < 0.1:
		return "under 0.1%"
	default:
		return digits(p, 2+min(1, int(p/10))) + "%"
	}
}

// plural is "1 call", "2 calls".
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
