package stream

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcpflood/mcpflood/chaos"
	"github.com/mcpflood/mcpflood/history"
)

// player is a shell without sockets: it carries one attempt through a script
// and writes down all that happens. Each line of a script is a time and what
// comes then; timers that are due before it go off first.
//
//	cut STYLE TRIGGER          the attempt's cut: sent, headers, done, tail+D after N events,
//	                           tail+D at D (no events), after(D), event(N), event+K(N), bytes(K)
//	timeout D, hold D, sampled, jammed
//	T connected | sent | first byte | drop | end | eof | reset | wait
//	T write HEAD BODY          in place of sent: a request of so many bytes
//	T failed ORIGIN TEXT       also "lost ORIGIN TEXT": reading failed
//	T garbled TEXT
//	T head STATUS TYPE [location=URL] [retry-after=D] [encoding=NAME]
//	T data TEXT                body bytes; \n and the like as in Go; {id}, {token}, {other}: identities
type player struct {
	cfg     Config
	start   history.Start
	cut     *chaos.Cut
	sampled bool
	jammed  bool // no cut can be carried out
	a       *Attempt
	now     time.Duration
	left    []byte // arrived, kept for after an open cut
	out     strings.Builder
}

var (
	testNonce = history.Nonce{1, 2, 3, 4, 5, 6, 7, 8}
	testRef   = history.Ref{Call: 7, Attempt: 1}
)

// cutTime is how long a cut's system call takes here.
const cutTime = time.Millisecond

// Append writes what the machine records.
func (p *player) Append(r history.Record) {
	switch {
	case r.Evidence != nil:
		fmt.Fprintf(&p.out, "    evidence %s: %s\n", r.Evidence.Kind, p.readable(r.Evidence.Text))
	case r.Event != nil:
		fmt.Fprintf(&p.out, "    event %d at byte %d: %s\n", r.Event.N, r.Event.Offset, r.Event.What)
	}
}

func (p *player) readable(s string) string {
	for name, id := range identities() {
		s = strings.ReplaceAll(s, id, name)
	}
	if len(s) > 200 {
		s = fmt.Sprintf("%s… (%d bytes)", s[:200], len(s))
	}
	return s
}

func identities() map[string]string {
	other := history.Ref{Call: 8, Attempt: 1}
	return map[string]string{
		"{id}": testNonce.ID(testRef), "{token}": testNonce.Token(testRef),
		"{other-id}": testNonce.ID(other), "{other-token}": testNonce.Token(other),
		"{foreign-token}": history.Nonce{9}.Token(testRef),
	}
}

// expand makes body bytes of a script's text.
func expand(s string) ([]byte, error) {
	s, err := strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`)
	for name, id := range identities() {
		s = strings.ReplaceAll(s, name, id)
	}
	return []byte(s), err
}

// play runs a script and returns the trace.
func play(script string) (string, error) {
	p := &player{start: history.Start{Ref: testRef}}
	p.cfg = Config{Nonce: testNonce, History: p, Hold: time.Second}
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := p.line(line); err != nil {
			return "", fmt.Errorf("%s: %w", line, err)
		}
	}
	p.until(p.now + time.Hour) // what is still to come
	fmt.Fprint(&p.out, p.endText())
	return p.out.String(), nil
}

func (p *player) line(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	var err error
	switch word {
	case "cut":
		p.cut, err = parseCut(rest)
		if err == nil {
			p.start.Planned = &history.Planned{Style: p.cut.Style, Moment: p.cut.Trigger.String()}
		}
		return err
	case "timeout":
		p.cfg.Timeout, err = time.ParseDuration(rest)
		return err
	case "hold":
		p.cfg.Hold, err = time.ParseDuration(rest)
		return err
	case "sampled":
		p.sampled = true
		return nil
	case "jammed":
		p.jammed = true
		return nil
	}
	if p.a == nil {
		p.start.Begun = time.Millisecond
		p.a = New(&p.cfg, &p.start, p.cut, p.sampled)
	}
	at, err := time.ParseDuration(word)
	if err != nil {
		return err
	}
	p.until(at)
	p.now = at
	fmt.Fprintf(&p.out, "%s\n", line)
	if err := p.input(rest); err != nil {
		return err
	}
	p.next()
	return nil
}

func parseCut(s string) (*chaos.Cut, error) {
	style, moment, _ := strings.Cut(s, " ")
	c := &chaos.Cut{}
	if err := c.Style.UnmarshalText([]byte(style)); err != nil {
		return nil, err
	}
	if rest, ok := strings.CutPrefix(moment, "tail+"); ok {
		t := chaos.Trigger{Kind: chaos.AtPhase, Phase: history.PhaseTail}
		delay, after, _ := strings.Cut(rest, " ")
		var err error
		t.After, err = time.ParseDuration(delay)
		if base, ok := strings.CutPrefix(after, "at "); ok && err == nil {
			t.Base, err = time.ParseDuration(base)
		} else if err == nil {
			_, err = fmt.Sscanf(after, "after %d events", &t.Event)
		}
		c.Trigger = t
		return c, err
	}
	m, err := chaos.ParseMoment(moment)
	if err != nil {
		return nil, err
	}
	plan := chaos.Plan{Clauses: []chaos.Clause{{Style: c.Style, Moment: m, Share: 1}}}
	got, _ := plan.Cut(history.Ref{Call: 1, Attempt: 1}, chaos.Clean{})
	return &got, nil
}

// input hands one thing to the machine.
func (p *player) input(s string) error {
	word, rest, _ := strings.Cut(s, " ")
	switch word {
	case "connected":
		p.a.Connected(p.now)
	case "sent":
		p.a.Sent(p.now)
	case "write": // "write HEAD BODY": a request of so many bytes
		var head, body int
		if _, err := fmt.Sscan(rest, &head, &body); err != nil {
			return err
		}
		n := p.a.Writable(head, body)
		fmt.Fprintf(&p.out, "    wrote %d of %d bytes\n", n, head+body)
		if n < head+body {
			p.a.Paused(p.now)
		} else {
			p.a.Sent(p.now)
		}
	case "first":
		p.a.Arrived(p.now)
	case "head":
		h, err := parseHead(rest)
		if err != nil {
			return err
		}
		p.a.Head(p.now, h)
	case "data":
		b, err := expand(rest)
		if err != nil {
			return err
		}
		p.data(b)
	case "big": // "big 5000000 x": so many bytes of a letter
		var n int
		var c string
		if _, err := fmt.Sscan(rest, &n, &c); err != nil {
			return err
		}
		p.data([]byte(strings.Repeat(c, n)))
	case "end":
		p.a.BodyEnd(p.now)
	case "eof", "reset":
		p.a.PeerEnded(p.now, word)
	case "garbled":
		p.a.Garbled(p.now, errors.New(rest))
	case "drop":
		p.a.Drop(p.now)
	case "failed", "lost":
		origin, text, _ := strings.Cut(rest, " ")
		var o history.Origin
		if err := o.UnmarshalText([]byte(origin)); err != nil {
			return err
		}
		if word == "lost" {
			p.a.ReadFailed(p.now, o, errors.New(text))
		} else {
			p.a.Failed(p.now, o, errors.New(text))
		}
	case "wait":
	default:
		return errors.New("unknown input")
	}
	return nil
}

func parseHead(s string) (Head, error) {
	f := strings.Fields(s)
	var h Head
	var err error
	if h.Status, err = strconv.Atoi(f[0]); err != nil {
		return h, err
	}
	for _, w := range f[1:] {
		k, v, ok := strings.Cut(w, "=")
		switch {
		case ok && k == "location":
			h.Location = v
		case ok && k == "encoding":
			h.Encoding = v
		case ok && k == "retry-after":
			if h.RetryAfter, err = time.ParseDuration(v); err != nil {
				return h, err
			}
		default:
			h.ContentType = w
		}
	}
	return h, nil
}

// data brings body bytes and does with what the machine leaves what a shell
// does.
func (p *player) data(b []byte) {
	p.a.Arrived(p.now)
	n := p.a.Body(p.now, b)
	if n == len(b) {
		return
	}
	fmt.Fprintf(&p.out, "    took %d of %d bytes\n", n, len(b))
	if !p.a.Over() {
		p.left = b[n:]
	}
}

// next does what the machine asks for now.
func (p *player) next() {
	for !p.a.Over() {
		step := p.a.Next(p.now)
		if step.Do != Cut {
			return
		}
		p.carryOut(step.Style)
	}
}

// carryOut cuts: it drains first, except where nobody would read on.
func (p *player) carryOut(style history.Style) {
	left := p.left
	p.left = nil
	if p.jammed {
		fmt.Fprintf(&p.out, "    %s cannot be done\n", style)
		p.a.CutFailed(p.now)
		p.a.Body(p.now, left)
		return
	}
	if len(left) > 0 && style != history.Reset && style.Class() != history.ClassOpen {
		if p.a.Body(p.now, left); p.a.Over() {
			fmt.Fprintf(&p.out, "    the drain finds the end\n")
			return
		}
	}
	if style.Class() == history.ClassSignal {
		fmt.Fprintf(&p.out, "    %s %s\n", p.now, style)
	}
	p.a.CutDone(p.now, p.now+cutTime, history.StyleNone)
	p.now += cutTime
	if style.Class() != history.ClassSignal {
		fmt.Fprintf(&p.out, "    %s %s\n", p.now-cutTime, style)
	}
	if style.Class() == history.ClassOpen {
		p.a.Body(p.now, left)
	}
}

// until lets timers go off before t.
func (p *player) until(t time.Duration) {
	for !p.a.Over() {
		p.next()
		if p.a.Over() {
			return
		}
		step := p.a.Next(p.now)
		if step.Until == 0 || step.Until > t {
			return
		}
		if step.Until > p.now {
			p.now = step.Until
		}
		what := "alarm"
		switch step.Do {
		case Hold:
			what = "held"
		case Wait:
			if !step.Exact {
				what = "timer"
			}
		}
		fmt.Fprintf(&p.out, "%s %s\n", p.now, what)
		if last := p.a.Next(p.now); last.Do == Abort || last.Do == Close {
			fmt.Fprintf(&p.out, "    %s\n", map[Do]string{Abort: "abort", Close: "close"}[last.Do])
		}
	}
}

// endText is the attempt's record, all fields that are set.
func (p *player) endText() string {
	if !p.a.Over() {
		return "still open\n"
	}
	e := p.a.End()
	var b strings.Builder
	fmt.Fprintf(&b, "= %s by %s", e.Outcome, e.Origin)
	for _, f := range []struct {
		name string
		at   time.Duration
	}{{"connected", e.Connected}, {"sent", e.Sent}, {"first-byte", e.FirstByte}, {"headers", e.Headers}, {"first-event", e.FirstEvent},
		{"last-event", e.LastEvent}, {"result", e.Result}, {"ended", e.Ended}, {"retry-after", e.RetryAfter}} {
		if f.at != 0 {
			fmt.Fprintf(&b, " %s=%s", f.name, f.at)
		}
	}
	b.WriteByte('\n')
	fmt.Fprintf(&b, "  events=%d bytes=%d form=%q status=%d", e.Events, e.Bytes, e.Form, e.Status)
	if e.Code != 0 {
		fmt.Fprintf(&b, " code=%d", e.Code)
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"is-error", e.IsError}, {"cancelled", e.Cancelled}, {"truncated", e.Truncated}, {"missed", e.Missed}} {
		if f.set {
			b.WriteString(" " + f.name)
		}
	}
	if s := p.a.RequestState(); s != nil {
		fmt.Fprintf(&b, " state=%s", s)
	}
	b.WriteByte('\n')
	if e.Error != "" {
		fmt.Fprintf(&b, "  error: %s\n", p.readable(e.Error))
	}
	if c := e.Cut; c != nil {
		fmt.Fprintf(&b, "  cut: %s in %s by %s due=%s c0=%s c1=%s\n", c.Style, c.Phase, c.Cause, c.Due, c.C0, c.C1)
	}
	if x := e.After; x != nil {
		fmt.Fprintf(&b, "  after: messages=%d bytes=%d result=%s is-error=%v peer-end=%s how=%q\n", x.Messages, x.Bytes, x.Result, x.IsError, x.PeerEnd, x.How)
	}
	return b.String()
}
