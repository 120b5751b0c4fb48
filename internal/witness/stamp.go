package witness

import (
	"strconv"
	"strings"
	"time"
)

// maxAway bounds how far from now a source's time may be: a clock that was
// never set says 1970, anything further is no time.
const maxAway = 100 * 365 * 24 * time.Hour

// lack is what a layout leaves out; the moment nearest to now fills it in.
type lack uint8

const (
	lacksNothing lack = iota
	lacksYear
	lacksDate
)

// layouts are the times that logs are known to carry. A fraction of a second is
// understood in all of them. Without a zone a time is the machine's local one.
// Zone names but UTC and GMT are left out: an offset cannot be told from them.
var layouts = [...]struct {
	text  string
	utc   bool
	lacks lack
}{
	{text: "2006-01-02T15:04:05Z07:00"}, // RFC 3339
	{text: "2006-01-02T15:04:05Z0700"},  // log4j
	{text: "2006-01-02T15:04:05"},       // ISO 8601 without zone
	{text: "2006-01-02 15:04:05"},       // Python, many
	{text: "2006-01-02 15:04:05Z07:00"}, // PostgreSQL, Rust
	{text: "2006-01-02 15:04:05 Z07:00"},
	{text: "2006-01-02 15:04:05 Z0700"}, // Ruby
	{text: "2006-01-02 15:04:05 UTC", utc: true},
	{text: "2006-01-02 15:04:05 GMT", utc: true},
	{text: "2006/01/02 15:04:05"},                      // Go, nginx errors
	{text: "02/Jan/2006:15:04:05 -0700"},               // access logs
	{text: "2006-01-02 15:04:05 -0700 UTC"},            // Go's Time.String
	{text: "Mon Jan _2 15:04:05 2006"},                 // ctime
	{text: "Mon, 02 Jan 2006 15:04:05 GMT", utc: true}, // HTTP
	{text: "Mon, 02 Jan 2006 15:04:05 -0700"},          // mail
	{text: "Jan _2 15:04:05", lacks: lacksYear},        // syslog
	{text: "0102 15:04:05", lacks: lacksYear},          // klog
	{text: "15:04:05", lacks: lacksDate},
	{text: "02.01.2006 15:04:05"},
	{text: "2006-01-02T15:04:05 Z07:00"},
	{text: "Mon Jan _2 15:04:05 UTC 2006", utc: true}, // date(1)
	{text: "Mon Jan _2 15:04:05 GMT 2006", utc: true},
}

// parseStamp reads a source's own time: a layout of the table above, or Unix
// time in seconds, milliseconds, microseconds or nanoseconds. The moment lies in
// [at, at+grain]: grain is one unit of the last digit given. Wall is now, in the
// zone that zoneless times are in. Hint carries the layout that fitted last; it
// saves time and changes nothing, since no text fits two layouts differently.
func parseStamp(s string, wall time.Time, hint *int) (at time.Time, grain time.Duration, ok bool) {
	s = strings.Trim(s, around)
	if s == "" || len(s) > maxName {
		return time.Time{}, 0, false
	}
	at, grain, ok = parseUnix(s)
	if !ok {
		at, ok = parseLayouts(s, wall, hint)
		grain = fraction(s)
	}
	if !ok || at.Sub(wall).Abs() > maxAway {
		return time.Time{}, 0, false
	}
	return at, grain, true
}

func parseLayouts(s string, wall time.Time, hint *int) (time.Time, bool) {
	for i := range len(layouts) {
		n := (*hint + i) % len(layouts)
		l := layouts[n]
		zone := wall.Location()
		if l.utc {
			zone = time.UTC
		}
		t, err := time.ParseInLocation(l.text, s, zone)
		if err != nil {
			continue
		}
		*hint = n
		return l.lacks.fill(t, wall), true
	}
	return time.Time{}, false
}

// fill completes t to the moment nearest to now.
func (l lack) fill(t, now time.Time) time.Time {
	if l == lacksNothing {
		return t
	}
	var best time.Time
	for d := -1; d <= 1; d++ {
		year, month, day := now.AddDate(0, 0, d).Date()
		if l == lacksYear {
			year, month, day = now.Year()+d, t.Month(), t.Day()
		}
		c := time.Date(year, month, day, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
		if best.IsZero() || c.Sub(now).Abs() < best.Sub(now).Abs() {
			best = c
		}
	}
	return best
}

// fraction is the unit of the last digit of a clock time "…:05.123…".
func fraction(s string) time.Duration {
	for i := 0; i+3 < len(s); i++ {
		if s[i] == ':' && digits(s[i+1:]) == 2 && (s[i+3] == '.' || s[i+3] == ',') {
			return shrink(time.Second, digits(s[i+4:]))
		}
	}
	return time.Second
}

// digits counts the decimal digits s starts with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// shrink divides unit by 10^n, down to a nanosecond.
func shrink(unit time.Duration, n int) time.Duration {
	for ; n > 0 && unit > 1; n-- {
		unit /= 10
	}
	return max(unit, 1)
}

// unixUnits tells the unit of a Unix time by its number of whole digits: the
// present has 10 in seconds, 13 in milliseconds, and so on.
var unixUnits = map[int]time.Duration{
	10: time.Second, 13: time.Millisecond, 16: time.Microsecond, 19: time.Nanosecond,
}

func parseUnix(s string) (at time.Time, grain time.Duration, ok bool) {
	whole := digits(s)
	unit, ok := unixUnits[whole]
	if !ok {
		return time.Time{}, 0, false
	}
	rest := s[whole:]
	places := 0
	if rest != "" {
		if places = digits(rest[1:]); rest[0] != '.' || places == 0 || places != len(rest)-1 {
			return time.Time{}, 0, false
		}
	}
	n, err := strconv.ParseInt(s[:whole], 10, 64)
	if err != nil || n > (1<<63-1)/int64(unit)-1 {
		return time.Time{}, 0, false
	}
	ns := n * int64(unit)
	step := int64(unit)
	for i := 0; i < places && step > 1; i++ {
		step /= 10
		ns += int64(rest[1+i]-'0') * step
	}
	return time.Unix(0, ns), shrink(unit, places), true
}
