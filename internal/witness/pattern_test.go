package witness

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpflood/mcpflood/history"
)

var (
	ours   = history.Nonce{1, 2, 3, 4, 5, 6, 7, 8}
	theirs = history.Nonce{8, 7, 6, 5, 4, 3, 2, 1}
	ref    = history.Ref{Call: 17, Attempt: 2}
	other  = history.Ref{Call: 18, Attempt: 1}
)

// patterns are those of the reference server, and one for effects with a key.
func patterns() LogConfig {
	return LogConfig{
		Source: 1, Spec: "server.log",
		Work:   []string{`build_report step (?P<step>\d+) of \d+ id=(?P<id>\S*) marker=(?P<marker>\S*)(?: trace=(?P<trace>\S*))?.* t=(?P<time>\S+)`, `tokens=(?P<units>\S+) id=(?P<id>\S+)`},
		Stop:   []string{`cancelled at step (?P<step>\d+).* id=(?P<id>\S*)`, `cancelled`},
		Done:   []string{`finished.* marker=(?P<marker>\S*)`},
		Effect: []string{`effect: .*key=(?P<key>\S+)`, `effect: `},
		Clock:  history.NewClock(), Nonce: ours,
	}
}

func TestMatch(t *testing.T) {
	cfg := patterns()
	at := cfg.Clock.Started().Add(2 * time.Second).UTC().Truncate(time.Millisecond)
	lo := cfg.Clock.At(at)
	stamp := " t=" + at.Format("2006-01-02T15:04:05.000Z07:00")
	id, marker := ours.ID(ref), ours.Marker(other)
	trace := strings.TrimPrefix(ours.Traceparent(ref), "00-")[:32]
	timed := func(e history.Evidence) history.Evidence {
		e.Timed, e.Lo, e.Hi = true, lo, lo+time.Millisecond
		return e
	}
	step := history.Evidence{Kind: history.Work, Step: 3, Units: 1}
	with := func(e history.Evidence, r history.Ref, by string) history.Evidence {
		e.Ref, e.By = r, by
		return e
	}
	foreign := step
	foreign.Foreign = true
	for _, tc := range []struct {
		name, line string
		want       []history.Evidence
		malformed  int
	}{
		{"by id", "build_report step 3 of 10 id=" + id + " marker=" + marker + stamp, []history.Evidence{timed(with(step, ref, "id"))}, 0},
		{"quoted id", `build_report step 3 of 10 id="` + id + `", marker=` + stamp, []history.Evidence{timed(with(step, ref, "id"))}, 0},
		{"by trace before marker", "build_report step 3 of 10 id=7 marker=" + marker + " trace=" + trace + stamp, []history.Evidence{timed(with(step, ref, "trace"))}, 0},
		{"by marker", "build_report step 3 of 10 id=7 marker=" + marker + stamp, []history.Evidence{timed(with(step, other.Whole(), "marker"))}, 0},
		{"foreign id, our marker", "build_report step 3 of 10 id=" + theirs.ID(ref) + " marker=" + marker + stamp, []history.Evidence{timed(with(step, other.Whole(), "marker"))}, 0},
		{"foreign", "build_report step 3 of 10 id=" + theirs.ID(ref) + " marker=" + stamp, []history.Evidence{timed(foreign)}, 0},
		{"nobody's", "build_report step 3 of 10 id=7 marker=x" + stamp, []history.Evidence{timed(step)}, 0},
		{"bad time", "build_report step 3 of 10 id=" + id + " marker= t=noon", []history.Evidence{with(step, ref, "id")}, 1},
		{"bad step", "build_report step 99999999999999999999 of 10 id=" + id + " marker=" + stamp, []history.Evidence{timed(with(history.Evidence{Kind: history.Work, Units: 1}, ref, "id"))}, 1},
		{"units", "tokens=12.5 id=" + id, []history.Evidence{with(history.Evidence{Kind: history.Work, Units: 12.5}, ref, "id")}, 0},
		{"bad units", "tokens=NaN id=" + id, []history.Evidence{with(history.Evidence{Kind: history.Work}, ref, "id")}, 1},
		{"negative units", "tokens=-1 id=" + id, []history.Evidence{with(history.Evidence{Kind: history.Work}, ref, "id")}, 1},
		{"a stop is no work", "cancelled at step 4 tokens=2 id=" + id, []history.Evidence{with(history.Evidence{Kind: history.Stop, Step: 4}, ref, "id")}, 0},
		{"two kinds", "effect: mail key=k1 and finished marker=" + marker, []history.Evidence{
			with(history.Evidence{Kind: history.Completion}, other.Whole(), "marker"), {Kind: history.Effect, Key: "k1"}}, 0},
		{"nothing", "listening on :3000", nil, 0},
		{"garbage", "\xff\xfe\x00(", nil, 0},
	} {
		m, err := newMatcher(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var have []history.Evidence
		malformed := 0
		for _, f := range m.match([]byte(tc.line), false, at) {
			if f.evidence.Foreign == (f.evidence.Text == tc.line) {
				t.Errorf("%s: text %q of foreign=%v", tc.name, f.evidence.Text, f.evidence.Foreign)
			}
			f.evidence.Text = ""
			have = append(have, f.evidence)
			malformed += f.malformed
		}
		if diff := cmp.Diff(tc.want, have); diff != "" || malformed != tc.malformed {
			t.Errorf("%s: malformed %d, want %d; evidence differs (-want +got):\n%s", tc.name, malformed, tc.malformed, diff)
		}
	}
}

// The kept start of a cut line may end inside an id: "…-1" of "…-12".
func TestMatchOfCutLine(t *testing.T) {
	m, err := newMatcher(patterns())
	if err != nil {
		t.Fatal(err)
	}
	line := []byte("tokens=5 id=" + ours.ID(ref))
	got := m.match(line, true, time.Now())
	if len(got) != 1 || got[0].evidence.By != "" || got[0].evidence.Units != 5 {
		t.Errorf("a cut line gave %+v, want its units and no attempt", got)
	}
}

func TestPatternErrors(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(*LogConfig)
		want []string
	}{
		{"syntax", func(c *LogConfig) { c.Work = []string{"step ("} }, []string{"--log-work", "missing closing )"}},
		{"unknown group", func(c *LogConfig) { c.Stop = []string{`(?P<makrer>x)`} }, []string{"--log-stop", `unknown group "makrer"`, `did you mean "marker"`}},
		{"key of work", func(c *LogConfig) { c.Work = []string{`(?P<key>x)`} }, []string{`unknown group "key"`}},
		{"both at once", func(c *LogConfig) { c.Work, c.Done = []string{"("}, []string{"[)"} }, []string{"--log-work", "--log-done"}},
		{"none", func(c *LogConfig) { c.Work, c.Stop, c.Done, c.Effect = nil, nil, nil, nil }, []string{"no pattern", "--log-effect"}},
		{"no log", func(c *LogConfig) { c.Spec = "" }, []string{"--log is empty"}},
	} {
		cfg := patterns()
		tc.edit(&cfg)
		_, err := NewLog(cfg)
		if err == nil {
			t.Errorf("%s: no error", tc.name)
			continue
		}
		for _, w := range tc.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error %q lacks %q", tc.name, err, w)
			}
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add([]byte("build_report step 3 of 10 id="+ours.ID(ref)+" marker= t=1772355605.25"), false)
	f.Add([]byte("tokens=1e400 id=mf--"), true)
	f.Add([]byte("effect: key=\xff\xfe"), false)
	f.Add([]byte("cancelled at step 99999999999999999999 id=\"mf-"), true)
	m, err := newMatcher(patterns())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line []byte, cut bool) {
		for _, g := range m.match(line, cut, noon) {
			e := g.evidence
			if !(e.Units >= 0 && e.Units <= maxUnits) || e.Step < 0 || e.Hi < e.Lo || !e.Timed && e.Hi != 0 {
				t.Errorf("match(%q) = %+v", line, e)
			}
			if (e.By == "") != e.Ref.IsZero() {
				t.Errorf("match(%q): attempt %v by %q", line, e.Ref, e.By)
			}
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	m, err := newMatcher(patterns())
	if err != nil {
		b.Fatal(err)
	}
	for name, line := range map[string]string{
		"line=step":  "build_report step 3 of 10 id=" + ours.ID(ref) + " marker=" + ours.Marker(ref) + " trace= user=alice t=2026-03-01T09:00:05.123456789Z",
		"line=other": "2026-03-01T09:00:05Z INFO request handled path=/mcp status=200 bytes=512 duration=12ms user=alice",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				m.match([]byte(line), false, noon)
			}
		})
	}
}
