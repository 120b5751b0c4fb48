package sse

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// seen is an Event that owns its bytes, in a form that reads well in tables.
type seen struct {
	Kind        Kind
	Type, Data  string
	ID          string
	HasID       bool
	Retry       time.Duration
	HasRetry    bool
	Offset, End int64
}

func own(ev Event) seen {
	return seen{ev.Kind, string(ev.Type), string(ev.Data), string(ev.ID), ev.HasID, ev.Retry, ev.HasRetry, ev.Offset, ev.End}
}

// feed gives the pieces to p and overwrites each afterwards: what the parser
// keeps must be its own.
func feed(p *Parser, pieces ...[]byte) (out []seen) {
	for _, piece := range pieces {
		b := bytes.Clone(piece)
		p.Feed(b, func(ev Event) { out = append(out, own(ev)) })
		for i := range b {
			b[i] = '#'
		}
	}
	return out
}

const rpc = `{"jsonrpc":"2.0","method":"notifications/progress"}`

// streams are whole streams and what is to be found in them.
var streams = []struct {
	name, in string
	want     []seen
	into     int64 // bytes of a last event that is not complete
}{
	{"empty", "", nil, 0},
	{"blank lines", "\n\r\n\r\r", nil, 0},
	{"one", "data: x\n\n", []seen{{Kind: Message, Data: "x", End: 9}}, 0},
	{"as SDKs write", "event: message\ndata: " + rpc + "\n\n",
		[]seen{{Kind: Message, Type: "message", Data: rpc, End: 74}}, 0},

	// The examples of the standard, section 9.2.6.
	{"standard: stock", "data: YHOO\ndata: +2\ndata: 10\n\n", []seen{{Kind: Message, Data: "YHOO\n+2\n10", End: 30}}, 0},
	{"standard: comments and ids", ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
		[]seen{
			{Kind: Comment, End: 14},
			{Kind: Message, Data: "first event", ID: "1", HasID: true, Offset: 15, End: 40},
			{Kind: Message, Data: "second event", HasID: true, Offset: 40, End: 62},
			{Kind: Message, Data: " third event", Offset: 62, End: 82},
		}, 0},
	{"standard: empty data", "data\n\ndata\ndata\n\ndata:", []seen{
		{Kind: Message, End: 6}, {Kind: Message, Data: "\n", Offset: 6, End: 17}}, 5},
	{"standard: one space", "data:test\n\ndata: test\n\n", []seen{
		{Kind: Message, Data: "test", End: 11}, {Kind: Message, Data: "test", Offset: 11, End: 23}}, 0},

	{"CR LF", "data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", []seen{
		{Kind: Message, Data: "a\nb", End: 19}, {Kind: Message, Data: "c", Offset: 20, End: 30}}, 0},
	{"CR", "data: a\rdata: b\r\rdata: c\r\r", []seen{
		{Kind: Message, Data: "a\nb", End: 17}, {Kind: Message, Data: "c", Offset: 17, End: 26}}, 0},
	{"mixed line ends", "data: a\rdata: b\n\r\n", []seen{{Kind: Message, Data: "a\nb", End: 17}}, 0},
	{"byte order mark", "\xEF\xBB\xBFdata: x\n\n", []seen{{Kind: Message, Data: "x", Offset: 3, End: 12}}, 0},
	{"byte order mark, then a comment", "\xEF\xBB\xBF: hi\n\n", []seen{{Kind: Comment, Offset: 3, End: 8}}, 0},
	{"only the first mark", "\xEF\xBB\xBF\xEF\xBB\xBFdata: x\ndata: y\n\n", []seen{{Kind: Message, Data: "y", Offset: 3, End: 23}}, 0},
	{"half a mark", "\xEF\xBBdata: x\ndata: y\n\n", []seen{{Kind: Message, Data: "y", End: 19}}, 0},
	{"mark later", "data: x\n\n\xEF\xBB\xBFdata: y\n\n", []seen{{Kind: Message, Data: "x", End: 9}, {Kind: Bare, Offset: 9, End: 21}}, 0},

	{"bare fields", "event: x\n\nid: 7\n\nretry: 1500\n\nunknown\n\n", []seen{
		{Kind: Bare, Type: "x", End: 10},
		{Kind: Bare, ID: "7", HasID: true, Offset: 10, End: 17},
		{Kind: Bare, Retry: 1500 * time.Millisecond, HasRetry: true, Offset: 17, End: 30},
		{Kind: Bare, Offset: 30, End: 39}}, 0},
	{"names are exact", "Data: x\ndata : y\n data: z\n\n", []seen{{Kind: Bare, End: 27}}, 0},
	{"the last type and id win", "event: a\nid: 1\nevent: b\nid: 2\ndata: x\n\n", []seen{
		{Kind: Message, Type: "b", Data: "x", ID: "2", HasID: true, End: 39}}, 0},
	{"an id with NUL is ignored", "id: 1\nid: a\x00b\ndata: x\n\n", []seen{
		{Kind: Message, Data: "x", ID: "1", HasID: true, End: 23}}, 0},
	{"retry is digits only", "retry: 1.5\nretry: -1\nretry:\nretry: 99999999999999999999\ndata: x\n\n",
		[]seen{{Kind: Message, Data: "x", End: 65}}, 0},
	{"no trimming", "data:  a b \t\n\n", []seen{{Kind: Message, Data: " a b \t", End: 14}}, 0},
	{"colons in a value", "data: a: b:c\n\n", []seen{{Kind: Message, Data: "a: b:c", End: 14}}, 0},
	{"bytes as they are", "data: \xff\xfe\n\n", []seen{{Kind: Message, Data: "\xff\xfe", End: 10}}, 0},

	{"comments between", ": a\n: b\n\ndata: x\n\n:\n", []seen{
		{Kind: Comment, End: 4}, {Kind: Comment, Offset: 4, End: 8},
		{Kind: Message, Data: "x", Offset: 9, End: 18}, {Kind: Comment, Offset: 18, End: 20}}, 0},
	{"a comment inside", "data: x\n: no\ndata: y\n\n", []seen{
		{Kind: Comment, Offset: 8, End: 13}, {Kind: Message, Data: "x\ny", End: 22}}, 0},

	{"cut in the data", "data: x\n\ndata: y", []seen{{Kind: Message, Data: "x", End: 9}}, 7},
	{"cut before the blank line", "data: x\n", nil, 8},
	{"cut in the blank line of CR LF", "data: x\r\n", nil, 9},
	{"cut between events", "data: x\n\n\n", []seen{{Kind: Message, Data: "x", End: 9}}, 0},
	{"cut in a comment", "data: x\n\n: keep-al", []seen{{Kind: Message, Data: "x", End: 9}}, 0},
}

func TestParser(t *testing.T) {
	for _, tt := range streams {
		t.Run(tt.name, func(t *testing.T) {
			whole, single := &Parser{}, &Parser{}
			if d := cmp.Diff(tt.want, feed(whole, []byte(tt.in))); d != "" {
				t.Errorf("whole (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.want, feed(single, bytes.SplitAfter([]byte(tt.in), nil)...)); d != "" {
				t.Errorf("byte by byte (-want +got):\n%s", d)
			}
			for _, p := range []*Parser{whole, single} {
				if p.Into() != tt.into || p.InsideEvent() != (tt.into > 0) || p.Offset() != int64(len(tt.in)) {
					t.Errorf("Into() = %d, InsideEvent() = %v, Offset() = %d; want %d into it, of %d", p.Into(), p.InsideEvent(), p.Offset(), tt.into, len(tt.in))
				}
				if start, in := p.EventStart(); in && start != int64(len(tt.in))-tt.into {
					t.Errorf("EventStart() = %d, want %d", start, int64(len(tt.in))-tt.into)
				}
			}
		})
	}
}

// model reads a whole stream the way the standard words it: line by line, with
// buffers. It knows neither offsets nor comments.
func model(stream string) (out []string) {
	stream = strings.TrimPrefix(stream, "\xEF\xBB\xBF")
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	lines := strings.Split(stream, "\n")
	var data, kind strings.Builder
	for _, line := range lines[:len(lines)-1] { // what has no line end is no line
		if line == "" {
			if data.Len() > 0 {
				out = append(out, kind.String()+"|"+strings.TrimSuffix(data.String(), "\n"))
			}
			data.Reset()
			kind.Reset()
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			data.WriteString(value + "\n")
		case "event":
			kind.Reset()
			kind.WriteString(value)
		}
	}
	return out
}

// stream draws bytes in which everything that matters is likely.
func stream(t *rapid.T) []byte {
	parts := rapid.SliceOf(rapid.SampledFrom([]string{
		"data", "data:", "data: x", "event: e", "id: 3", "retry: 5", ":", ": c", " ", "\x00", "\n", "\r", "\r\n", "\n\n", "\xEF\xBB\xBF", "\xEF", "z", "{}",
	})).Draw(t, "parts")
	return []byte(strings.Join(parts, ""))
}

func slices(t *rapid.T, b []byte) (out [][]byte) {
	for len(b) > 0 {
		n := rapid.IntRange(1, len(b)).Draw(t, "piece")
		out, b = append(out, b[:n]), b[n:]
	}
	return out
}

func TestParserProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := stream(t)
		var whole, parts Parser
		want := feed(&whole, b)
		if d := cmp.Diff(want, feed(&parts, slices(t, b)...)); d != "" {
			t.Fatalf("slicing %q changes its events (-whole +sliced):\n%s", b, d)
		}
		if whole.Into() != parts.Into() || whole.Offset() != int64(len(b)) || parts.Offset() != int64(len(b)) {
			t.Fatalf("slicing %q changes the place: %+v, %+v", b, whole, parts)
		}
		var messages []string
		end := int64(0)
		for _, ev := range want {
			if ev.Kind == Message {
				messages = append(messages, ev.Type+"|"+ev.Data)
			}
			if ev.Offset >= ev.End || ev.End > int64(len(b)) {
				t.Fatalf("%+v does not lie in %d bytes", ev, len(b))
			}
			if ev.Kind != Comment && ev.Offset < end {
				t.Fatalf("%+v begins before the event in front of it has ended, at %d", ev, end)
			}
			if ev.Kind != Comment {
				end = ev.End
			}
		}
		if d := cmp.Diff(model(string(b)), messages); d != "" {
			t.Fatalf("%q (-standard +got):\n%s", b, d)
		}
		checkOffsets(t, b, want)
	})
}

// checkOffsets reads each event again, alone, from the bytes its offsets name.
func checkOffsets(t *rapid.T, b []byte, events []seen) {
	for _, ev := range events {
		var p Parser
		p.mode = noBOM
		var got []seen
		for _, again := range feed(&p, b[ev.Offset:ev.End]) {
			if again.Kind == ev.Kind {
				got = append(got, again)
			}
		}
		ev.Offset, ev.End = 0, ev.End-ev.Offset
		if d := cmp.Diff([]seen{ev}, got); d != "" {
			t.Fatalf("the bytes of an event, read alone (-want +got):\n%s", d)
		}
	}
}

func TestNextUntil(t *testing.T) {
	// Two events that come in one read, to be cut inside the second.
	b := []byte(": hi\n\ndata: one\n\n\nevent: message\ndata: two\n\ndata: three\n\n")
	start := int64(bytes.Index(b, []byte("event")))
	length := int64(len("event: message\ndata: two\n\n"))
	for k := int64(1); k <= length+1; k++ {
		for _, size := range []int{1, 7, len(b)} {
			p, events, stopped := cutIn(b, size, 2, k)
			if k < length && (!stopped || p.Offset() != start+k || p.Into() != k || events != 1) {
				t.Errorf("%d bytes into event 2, reads of %d: stopped %v at %d after %d events, want at %d after 1", k, size, stopped, p.Offset(), events, start+k)
			}
			if k >= length && (stopped || events != 3) {
				t.Errorf("%d bytes into event 2, reads of %d: it has %d, so it is complete; stopped %v after %d events", k, size, length, stopped, events)
			}
		}
	}
}

// cutIn reads b until k bytes of the n-th message have come.
func cutIn(b []byte, size, n int, k int64) (p *Parser, events int, stopped bool) {
	p = &Parser{}
	for len(b) > 0 {
		piece := b[:min(size, len(b))]
		b = b[len(piece):]
		for len(piece) > 0 {
			until := int64(0)
			if events == n-1 {
				until = k
			}
			ev, used, ok := p.NextUntil(piece, until)
			piece = piece[used:]
			if ok && ev.Kind == Message {
				events++
			}
			if !ok && until > 0 && p.Into() >= until {
				return p, events, true
			}
		}
	}
	return p, events, false
}

func TestOverflow(t *testing.T) {
	field := func(n int) []byte { // an event of n bytes
		return []byte("data: " + strings.Repeat("x", n-len("data: \n\n")) + "\n\n")
	}
	after := []byte("data: y\n\n")
	for _, size := range []int{100, 64 << 10, MaxEvent, 3 * MaxEvent} {
		for _, n := range []int{MaxEvent, MaxEvent + 1, MaxEvent + 2, 2 * MaxEvent} {
			var p Parser
			var got []string
			b := append(field(n), after...)
			for len(b) > 0 {
				piece := b[:min(size, len(b))]
				p.Feed(piece, func(ev Event) {
					got = append(got, fmt.Sprint(ev.Kind, " ", ev.Offset, " ", ev.End))
					if cap(p.pend) > 0 {
						t.Errorf("event of %d bytes, reads of %d: %d bytes are held after an event", n, size, cap(p.pend))
					}
				})
				b = b[len(piece):]
			}
			want := []string{"message 0 " + fmt.Sprint(n), fmt.Sprint("message ", n, " ", n+len(after))}
			if n > MaxEvent {
				want[0] = fmt.Sprint("overflow 0 ", MaxEvent)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("event of %d bytes, reads of %d (-want +got):\n%s", n, size, d)
			}
		}
	}
}

func TestEndlessLine(t *testing.T) {
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for _, begin := range []string{"data: ", ": "} {
		var p Parser
		events := 0
		count := func(Event) { events++ }
		p.Feed([]byte(begin), count)
		for range 1 << 10 { // 1 GiB
			p.Feed(chunk, count)
		}
		if cap(p.pend) != 0 {
			t.Errorf("%q: %d bytes are held", begin, cap(p.pend))
		}
		want := 1 // the overflow; a comment is reported when it ends
		if begin == ": " {
			want = 0
		}
		if events != want {
			t.Errorf("%q: %d events, want %d", begin, events, want)
		}
		p.Feed([]byte("\n\ndata: y\n\n"), count)
		if events != 2 {
			t.Errorf("%q: %d events after its end, want 2", begin, events)
		}
	}
}

func TestIdleIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Parser{}); size > 64 {
		t.Errorf("a parser takes %d bytes, want at most 64: there are tens of thousands", size)
	}
	var p Parser
	feed(&p, []byte("data: x"), []byte("\n\n: keep-"), []byte("alive\n\n"))
	if cap(p.pend) != 0 {
		t.Errorf("%d bytes are held between events", cap(p.pend))
	}
	b := []byte(": keep-alive\n\nevent: message\ndata: {}\n\n")
	n := 0
	emit := func(Event) { n++ }
	if got := testing.AllocsPerRun(100, func() { p.Feed(b, emit) }); got != 0 {
		t.Errorf("Feed of whole events allocates %v times, want 0", got)
	}
}

func FuzzParser(f *testing.F) {
	f.Add([]byte("\xEF\xBB\xBF: hi\r\n\r\nevent: message\ndata: {\"a\":1}\ndata\n\nid: 1\rretry: 5\r\r"), uint16(3))
	f.Add([]byte("data: x\n: c\ndata: y"), uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, size uint16) {
		var whole, parts Parser
		want := feed(&whole, b)
		var got []seen
		for rest := b; len(rest) > 0; {
			n := min(int(size%64)+1, len(rest))
			got = append(got, feed(&parts, rest[:n])...)
			rest = rest[n:]
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("slicing changes the events (-whole +sliced):\n%s", d)
		}
		var messages []string
		for _, ev := range want {
			if ev.Kind == Message {
				messages = append(messages, ev.Type+"|"+ev.Data)
			}
		}
		if d := cmp.Diff(model(string(b)), messages); d != "" {
			t.Fatalf("(-standard +got):\n%s", d)
		}
	})
}

func BenchmarkFeed(b *testing.B) {
	event := AppendEvent(nil, "message", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mft-abcdefghijkmn-123-1","progress":3,"total":10}}`)
	n := 0
	emit := func(Event) { n++ }
	for _, bench := range []struct {
		name   string
		pieces [][]byte
	}{
		{"read=whole", [][]byte{event}},
		{"read=split", [][]byte{event[:40], event[40:]}},
		{"read=batch", [][]byte{bytes.Repeat(event, 32)}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var p Parser
			b.ReportAllocs()
			n = 0
			for b.Loop() {
				for _, piece := range bench.pieces {
					p.Feed(piece, emit)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/event")
		})
	}
}
