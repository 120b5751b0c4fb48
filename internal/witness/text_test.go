package witness

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestClipAndPrintable(t *testing.T) {
	if got := clip("aéb", 2); got != "a" {
		t.Errorf("clip inside é = %q, want %q", got, "a")
	}
	if got := clip("abc", 3); got != "abc" {
		t.Errorf("clip of a short text = %q", got)
	}
	if got := clip(strings.Repeat("\x80", 10), 3); len(got) > 3 {
		t.Errorf("clip of garbage keeps %d bytes", len(got))
	}
	in := "red \x1b[31m\ttab\u202ertl \xff é"
	if got, want := printable(in), `red \x1b[31m\ttab\u202ertl \xff é`; got != want || !utf8.ValidString(got) {
		t.Errorf("printable = %q, want %q", got, want)
	}
}

func TestRing(t *testing.T) {
	var r ring
	for _, s := range []string{"one", "two", "three token", strings.Repeat("é", maxShown/2-1) + "token"} {
		r.add([]byte(s))
	}
	got := r.texts(newScrubber([]string{"token", "e"}))
	if want := []string{"two", "three ***", strings.Repeat("é", maxShown/2-1) + "**"}; !cmp.Equal(got, want) {
		t.Errorf("ring keeps %q, want %q", got, want)
	}
}

func TestSafeNames(t *testing.T) {
	for in, want := range map[string]string{
		"tail -F /var/log/app.log":                   "tail -F /var/log/app.log",
		"curl -H 'Authorization: Bearer abc.def' u":  "curl -H 'Authorization: Bearer ***' u",
		"curl http://bob:pw@host/log?follow=1&k=v x": "curl http://***@host/log?*** x",
		"logs --api-key=abc --token def -f":          "logs --api-key=*** --token *** -f",
		"PASSWORD='abc def' logs":                    "PASSWORD=*** logs",
	} {
		if got := safeCommand(in); got != want {
			t.Errorf("safeCommand(%q) = %q, want %q", in, got, want)
		}
	}
	u, err := url.Parse("https://bob:secret@host:9090/metrics?auth=abc")
	if err != nil {
		t.Fatal(err)
	}
	if got := safeURL(u); strings.Contains(got, "bob") || strings.Contains(got, "secret") || strings.Contains(got, "abc") || !strings.Contains(got, "host:9090/metrics") {
		t.Errorf("safeURL = %q", got)
	}
}

func TestNearest(t *testing.T) {
	have := []string{"go_goroutines", "app_steps_total", "app_step_seconds_count", "app_in_flight", "process_cpu"}
	if got := nearest("app_setps_total", have); got[0] != "app_steps_total" {
		t.Errorf("nearest = %q, want app_steps_total first", got)
	}
	if got := nearest("in_flight", have); got[0] != "app_in_flight" {
		t.Errorf("nearest = %q, want app_in_flight first", got)
	}
	if got := nearest("x", nil); got != nil {
		t.Errorf("nearest of nothing = %q", got)
	}
}
