package witness

import (
	"testing"
	"time"
)

// moscow has a fixed offset: a zone of its own shows which times are local.
var moscow = time.FixedZone("MSK", 3*3600)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, moscow)

func TestParseStamp(t *testing.T) {
	utc := func(h, m, s, ns int) time.Time { return time.Date(2026, 3, 1, h, m, s, ns, time.UTC) }
	const ms = int(time.Millisecond)
	for _, tc := range []struct {
		in    string
		want  time.Time
		grain time.Duration
	}{
		{"2026-03-01T09:00:05Z", utc(9, 0, 5, 0), time.Second},
		{"2026-03-01T09:00:05.25Z", utc(9, 0, 5, 250*ms), 10 * time.Millisecond},
		{"2026-03-01T12:00:05.123456789+03:00", utc(9, 0, 5, 123456789), 1},
		{"2026-03-01T12:00:05.123+0300", utc(9, 0, 5, 123*ms), time.Millisecond},
		{`"2026-03-01T09:00:05.123Z"`, utc(9, 0, 5, 123*ms), time.Millisecond},
		{"2026-03-01T12:00:05.5", utc(9, 0, 5, 500*ms), 100 * time.Millisecond},
		{"2026-03-01 12:00:05", utc(9, 0, 5, 0), time.Second},
		{"2026-03-01 12:00:05.000", utc(9, 0, 5, 0), time.Millisecond},
		{"2026-03-01 12:00:05,123", utc(9, 0, 5, 123*ms), time.Millisecond},
		{"2026-03-01 09:00:05.123456+00:00", utc(9, 0, 5, 123456000), time.Microsecond},
		{"2026-03-01 09:00:05 UTC", utc(9, 0, 5, 0), time.Second},
		{"2026-03-01 12:00:05 +0300", utc(9, 0, 5, 0), time.Second},
		{"2026-03-01 09:00:05.5 +0000 UTC", utc(9, 0, 5, 500*ms), 100 * time.Millisecond},
		{"[2026/03/01 12:00:05.000001]", utc(9, 0, 5, 1000), time.Microsecond},
		{"01/Mar/2026:12:00:05 +0300", utc(9, 0, 5, 0), time.Second},
		{"Sun Mar  1 12:00:05 2026", utc(9, 0, 5, 0), time.Second},
		{"Sun Mar  1 09:00:05 UTC 2026", utc(9, 0, 5, 0), time.Second},
		{"Sun, 01 Mar 2026 09:00:05 GMT", utc(9, 0, 5, 0), time.Second},
		{"Mar  1 12:00:05", utc(9, 0, 5, 0), time.Second},
		{"0301 12:00:05.000123", utc(9, 0, 5, 123000), time.Microsecond},
		{"12:00:05.5", utc(9, 0, 5, 500*ms), 100 * time.Millisecond},
		{"23:59:59", time.Date(2026, 3, 1, 23, 59, 59, 0, moscow), time.Second},
		{"00:00:01", time.Date(2026, 3, 1, 0, 0, 1, 0, moscow), time.Second},
		{"Dec 31 23:59:59", time.Date(2025, 12, 31, 23, 59, 59, 0, moscow), time.Second},
		{"1772355605", utc(9, 0, 5, 0), time.Second},
		{"1772355605.25", utc(9, 0, 5, 250*ms), 10 * time.Millisecond},
		{"1772355605250", utc(9, 0, 5, 250*ms), time.Millisecond},
		{"1772355605250.5", utc(9, 0, 5, 250*ms+500000), 100 * time.Microsecond},
		{"1772355605250001", utc(9, 0, 5, 250001000), time.Microsecond},
		{"1772355605250000001", utc(9, 0, 5, 250000001), 1},
	} {
		at, grain, ok := parseStamp(tc.in, noon, new(int))
		if !ok || !at.Equal(tc.want) || grain != tc.grain {
			t.Errorf("parseStamp(%q) = %v, %v, %v; want %v, %v", tc.in, at, grain, ok, tc.want, tc.grain)
		}
	}
	for _, in := range []string{
		"", "soon", "12", "177235560", "17723556051", "1772355605.", "1772355605.x", "-1772355605",
		"2026-13-01T00:00:00Z", "2026-03-01T25:00:00Z", "2026-03-01 12:00:05 CET",
		"9223372036854775807", "9999999999999999999", "0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z",
	} {
		if at, _, ok := parseStamp(in, noon, new(int)); ok {
			t.Errorf("parseStamp(%q) = %v, want none", in, at)
		}
	}
}

func TestTimeOfDayAtMidnight(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 500, moscow)
	at, _, ok := parseStamp("23:59:59.9", now, new(int))
	want := time.Date(2026, 2, 28, 23, 59, 59, 9e8, moscow)
	if !ok || !at.Equal(want) {
		t.Errorf("just after midnight 23:59:59.9 = %v, want the day before: %v", at, want)
	}
}

func FuzzParseStamp(f *testing.F) {
	for _, s := range []string{"2026-03-01T09:00:05.25Z", "1772355605.25", "12:00:05,5", "Mar  1 12:00:05", "9223372036854775807", "Feb 29 00:00:00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, grain, ok := parseStamp(s, noon, new(int))
		if ok && (grain < 1 || grain > time.Second || at.Sub(noon).Abs() > maxAway) {
			t.Errorf("parseStamp(%q) = %v, %v", s, at, grain)
		}
		for hint := range len(layouts) {
			a, g, o := parseStamp(s, noon, &hint)
			if !a.Equal(at) || g != grain || o != ok {
				t.Errorf("parseStamp(%q) depends on the layout tried first: %v and %v", s, at, a)
			}
		}
	})
}
