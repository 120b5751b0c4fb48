package target

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseFault(t *testing.T) {
	for _, k := range FaultKinds() {
		got, err := ParseFault(k.String())
		if want := (Fault{Kind: k, Share: 1}); err != nil || got != want {
			t.Errorf("ParseFault(%q) = %v, %v, want %v", k, got, err, want)
		}
	}
	if f, err := ParseFault("run-on=0.01"); err != nil || f != (Fault{RunOn, 0.01}) || f.String() != "run-on=0.01" {
		t.Errorf(`ParseFault("run-on=0.01") = %v, %v`, f, err)
	}
	for _, s := range []string{"", "runon", "run-on=", "run-on=0", "run-on=1.1", "run-on=-1", "run-on=NaN", "brick=1%", "invalid(99)"} {
		if f, err := ParseFault(s); err == nil {
			t.Errorf("ParseFault(%q) = %v, want an error", s, f)
		}
	}
}

func TestFaultsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range FaultKinds() {
		if k.Does() == "" || k.Seen() == "" {
			t.Errorf("fault %s says not what it does and how it is seen", k)
		}
		if !strings.Contains(string(doc), fmt.Sprintf("//   - %s: ", k)) {
			t.Errorf("doc.go does not describe the fault %s", k)
		}
	}
}

func TestValidateReportsAll(t *testing.T) {
	c := Config{Steps: -1, StepTime: -1, StopDelay: -1, Answer: "xml", PageSize: -1, Fillers: -1, Slots: -1, SlotWait: -1, LogBuffer: -1,
		Faults: []Fault{{Kind: 99}, {Kind: RunOn, Share: math.NaN()}, {Kind: RunOn}}}
	err := c.Validate()
	if err == nil {
		t.Fatal("Validate() = nil, want errors")
	}
	var all interface{ Unwrap() []error }
	if !errors.As(err, &all) || len(all.Unwrap()) != 12 {
		t.Errorf("Validate() = %v, want 12 problems", err)
	}
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("Validate() of the zero Config = %v, want nil", err)
	}
}

func TestDraw(t *testing.T) {
	s := sharesOf([]Fault{{RunOn, 0.1}, {Brick, 0}})
	n := 0
	const ids = 10_000
	for i := range ids {
		id := fmt.Sprintf("mf-abc-%d-1", i)
		set := s.draw(1, id)
		if set != s.draw(1, id) {
			t.Fatalf("two draws for %s differ", id)
		}
		if set.has(RunOn) {
			n++
		}
		if !set.has(Brick) || set.has(SlowStop) {
			t.Fatalf("draw(%s) = %v, want brick always and slow-stop never", id, set.names())
		}
	}
	if n < ids/10-150 || n > ids/10+150 { // 5 standard deviations
		t.Errorf("run-on=0.1 drew %d of %d", n, ids)
	}
	// The draw is part of what a seed replays: it must not change unnoticed.
	if got := unit(1, "run-on", "mf-abc-1-1"); fmt.Sprintf("%.6f", got) != wantUnit {
		t.Errorf("unit = %.6f, want %s", got, wantUnit)
	}
}

const wantUnit = "0.271472"

// trace drives a work to its end and prints its turns. The hang-up comes at
// cut; a negative cut never comes.
func trace(w *work, cut time.Duration) string {
	var b strings.Builder
	say := func(at time.Duration, t turn) bool {
		if t == (turn{}) {
			return false
		}
		fmt.Fprintf(&b, "%v:", at.Milliseconds())
		if t.stopLine {
			b.WriteString(" stop-line")
		}
		if t.step {
			fmt.Fprintf(&b, " step%d", w.step)
		}
		if t.mail {
			b.WriteString(" mail")
		}
		if t.end != "" {
			b.WriteString(" " + string(t.end))
		}
		b.WriteString("\n")
		return t.end != ""
	}
	for {
		at := w.next()
		if cut >= 0 && cut <= at {
			if say(cut, w.hangup(cut)) {
				return b.String()
			}
			cut = -1
			continue
		}
		if say(at, w.tick(at)) {
			return b.String()
		}
	}
}

func set(kinds ...FaultKind) faultSet {
	var s faultSet
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

func TestWork(t *testing.T) {
	const ms = time.Millisecond
	sc := &script{steps: 3, stepTime: 100 * ms, tailTime: 30 * ms, stopDelay: 150 * ms}
	const whole = "100: step1\n200: step2\n300: step3 mail\n330: finished\n"
	for _, tt := range []struct {
		name   string
		faults faultSet
		json   bool
		quiet  bool
		cut    time.Duration
		want   string
	}{
		{"uncut", 0, false, false, -1, whole},
		{"before the first step", 0, false, false, 0, "0: stop-line cancelled\n"},
		{"mid", 0, false, false, 150 * ms, "100: step1\n150: stop-line cancelled\n"},
		{"json", 0, true, false, 150 * ms, "100: step1\n150: stop-line cancelled\n"},
		{"tail", 0, false, false, 310 * ms, "100: step1\n200: step2\n300: step3 mail\n310: stop-line cancelled\n"},
		{"run-on", set(RunOn), false, false, 150 * ms, "100: step1\n150:\n200: step2\n300: step3 mail\n330: finished\n"},
		{"slow-stop", set(SlowStop), false, false, 90 * ms, "90:\n100: step1\n200: step2\n240: stop-line cancelled\n"},
		{"slow-stop too late", set(SlowStop), false, false, 250 * ms, "100: step1\n200: step2\n250:\n300: step3 mail\n330: finished\n"},
		{"deaf-before-headers before", set(DeafBeforeHeaders), false, false, 50 * ms, whole},
		{"deaf-before-headers after", set(DeafBeforeHeaders), false, false, 150 * ms, "100: step1\n150: stop-line cancelled\n"},
		{"deaf-before-headers json", set(DeafBeforeHeaders), true, false, 310 * ms, whole},
		{"deaf-before-headers quiet", set(DeafBeforeHeaders), false, true, 310 * ms, whole},
		{"deaf-json json", set(DeafJSON), true, false, 150 * ms, whole},
		{"deaf-json sse", set(DeafJSON), false, false, 150 * ms, "100: step1\n150: stop-line cancelled\n"},
		{"deaf-body", set(DeafBody), false, false, 150 * ms, whole},
		{"lying-log", set(LyingLog), false, false, 150 * ms, "100: step1\n150: stop-line\n200: step2\n300: step3 mail\n330: finished\n"},
		{"lying-log slow-stop", set(LyingLog, SlowStop), false, false, 50 * ms, "50: stop-line\n100: step1\n200: step2 cancelled-silently\n"},
		{"lying-log deaf-body", set(LyingLog, DeafBody), false, false, 150 * ms, whole},
		{"effect-after", set(EffectAfter), false, false, 150 * ms, "100: step1\n150: stop-line mail cancelled\n"},
		{"effect-after in the tail", set(EffectAfter), false, false, 310 * ms, "100: step1\n200: step2\n300: step3 mail\n310: stop-line cancelled\n"},
		{"effect-after slow-stop", set(EffectAfter, SlowStop), false, false, 90 * ms, "90:\n100: step1\n200: step2\n240: stop-line mail cancelled\n"},
		{"double-effect", set(DoubleEffect), false, false, -1, "100: step1\n200: step2 mail\n300: step3\n330: finished\n"},
		{"double-effect cut", set(DoubleEffect), false, false, 250 * ms, "100: step1\n200: step2 mail\n250: stop-line cancelled\n"},
		{"double-effect effect-after", set(DoubleEffect, EffectAfter), false, false, 50 * ms, "50: stop-line mail cancelled\n"},
		{"run-on before slow-stop", set(RunOn, SlowStop), false, false, 150 * ms, "100: step1\n150:\n200: step2\n300: step3 mail\n330: finished\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := strings.Replace(tt.want, "200: step2 cancelled-silently\n", "200: cancelled\n", 1)
			got := trace(newWork(sc, tt.faults, tt.json, !tt.quiet), tt.cut)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("turns (-want +got):\n%s", d)
			}
		})
	}
}

// A late tick must not make the steps after it catch up.
func TestWorkIsLate(t *testing.T) {
	w := newWork(&script{steps: 3, stepTime: 100}, 0, false, true)
	if got := w.tick(450); !got.step || w.step != 1 || w.next() != 550 {
		t.Errorf("after a late tick: %+v, step %d, next %d; want one step, next 550", got, w.step, w.next())
	}
	if got := w.tick(500); got != (turn{}) {
		t.Errorf("early tick = %+v, want nothing", got)
	}
}

// Whatever the faults and whenever the cut: the work ends, sends at most one
// e-mail, and a call that heard nothing is like one that was never cut.
func TestWorkAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sc := &script{steps: rapid.IntRange(1, 5).Draw(t, "steps"), stepTime: 100, tailTime: time.Duration(rapid.IntRange(0, 50).Draw(t, "tail")), stopDelay: time.Duration(rapid.IntRange(0, 400).Draw(t, "delay"))}
		faults := faultSet(rapid.Uint32Range(0, 1<<faultKinds-1).Draw(t, "faults"))
		json := rapid.Bool().Draw(t, "json")
		cut := time.Duration(rapid.IntRange(-1, 600).Draw(t, "cut"))
		w := newWork(sc, faults, json, true)
		got := trace(w, cut)
		if n := strings.Count(got, "mail"); n > 1 {
			t.Fatalf("%d e-mails:\n%s", n, got)
		}
		if w.deaf {
			if uncut := trace(newWork(sc, faults, json, true), -1); got != uncut {
				t.Fatalf("deaf, yet not like uncut:\n%s", got)
			}
		}
		if strings.Contains(got, string(EndFinished)) != (w.step == sc.steps && !strings.Contains(got, string(EndCancelled))) {
			t.Fatalf("finished without all steps:\n%s", got)
		}
	})
}

func TestMemoryForgetsTheOldest(t *testing.T) {
	m := newMemory[int, string](2)
	for _, k := range []int{1, 2, 3} {
		if _, known := m.remember(k, fmt.Sprint(k)); known {
			t.Errorf("remember(%d): known, want new", k)
		}
	}
	if v, known := m.remember(2, "x"); !known || v != "2" {
		t.Errorf("remember(2) = %q, %v, want the first value", v, known)
	}
	if _, known := m.remember(1, "1"); known {
		t.Error("remember(1): known, want forgotten")
	}
	if len(m.known) != 2 || len(m.order) != 2 {
		t.Errorf("%d known, %d in order, want 2 and 2", len(m.known), len(m.order))
	}
}

func TestLogValue(t *testing.T) {
	for in, want := range map[string]string{
		"":           "-",
		"-":          `"-"`,
		"alice":      "alice",
		"a b":        `"a b"`,
		"a\nid=7":    `"a\nid=7"`,
		"id=7":       `"id=7"`,
		`q"`:         `"q\""`,
		"é\x1b[31m":  `"\u00e9\x1b[31m"`,
		"mf-ab-17-1": "mf-ab-17-1",
	} {
		if got := logValue(in); got != want {
			t.Errorf("logValue(%q) = %s, want %s", in, got, want)
		}
	}
	if got := logValue(strings.Repeat("x", 1000)); len(got) != maxLogValue {
		t.Errorf("logValue of 1000 bytes has %d, want %d", len(got), maxLogValue)
	}
}

// blocks keeps what each Write got.
type blocks struct{ sizes []int }

func (b *blocks) Write(p []byte) (int, error) { b.sizes = append(b.sizes, len(p)); return len(p), nil }

func TestLogBuffer(t *testing.T) {
	var out blocks
	l := &logger{w: &out, block: 128}
	who := newCaller("7", "", "", "")
	total := 0
	for n := range 5 {
		l.step(who, n+1, 5)
		total += len("build_report step 1 of 5 id=7 marker=- trace=- user=- t=2026-12-01T05:04:03.000000000Z\n")
	}
	for _, n := range out.sizes {
		if n%128 != 0 {
			t.Errorf("wrote %d bytes before the end, want whole blocks of 128", n)
		}
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, n := range out.sizes {
		sum += n
	}
	if sum != total {
		t.Errorf("wrote %d bytes in all, want %d", sum, total)
	}
	var now bytes.Buffer
	l = &logger{w: &now}
	l.cancelled(who, 3)
	if !strings.HasPrefix(now.String(), "build_report cancelled at step 3 (stream closed) id=7 marker=- trace=- user=- t=20") || !strings.HasSuffix(now.String(), "Z\n") {
		t.Errorf("unbuffered line = %q", now.String())
	}
}

type broken struct{ n int }

func (b *broken) Write([]byte) (int, error) { b.n++; return 0, errors.New("disk full") }

func TestLogError(t *testing.T) {
	w := &broken{}
	l := &logger{w: w}
	l.say("", "a")
	l.say("", "b")
	if err := l.close(); err == nil || !strings.Contains(err.Error(), "disk full") || w.n != 1 {
		t.Errorf("close() = %v after %d writes, want the first error after one", err, w.n)
	}
}
