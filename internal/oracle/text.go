package oracle

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// text writes a duration as people read it: three digits at most.
func text(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + text(-d)
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// flagText writes a duration for a flag: rounded up to a full second, or to a
// tenth of one below five seconds.
func flagText(d time.Duration) string {
	unit := time.Second
	if d < 5*time.Second {
		unit = 100 * time.Millisecond
	}
	d = (d + unit - 1) / unit * unit
	if d%time.Second == 0 {
		return strconv.Itoa(int(d/time.Second)) + "s"
	}
	return d.String()
}

func number(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

// plural gives "1 attempt", "2 attempts".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// list joins words as a sentence does.
func list(words []string) string {
	switch len(words) {
	case 0:
		return ""
	case 1:
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
