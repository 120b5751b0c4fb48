package sse

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestAppend(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{string(AppendEvent(nil, "message", "{}")), "event: message\ndata: {}\n\n"},
		{string(AppendEvent([]byte("x"), "", []byte("a\nb\r\nc\rd"))), "xdata: a\ndata: b\ndata: c\ndata: d\n\n"},
		{string(AppendEvent(nil, "", "")), "data: \n\n"},
		{string(AppendEvent(nil, "", " a\n")), "data:  a\ndata: \n\n"},
		{string(AppendComment(nil, "keep-alive")), ": keep-alive\n\n"},
		{string(AppendComment(nil, "a\nb")), ": a\n: b\n\n"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestAppendEventRefusesABrokenType(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a line break in a type must panic: it would forge a field")
		}
	}()
	AppendEvent(nil, "a\ndata: b", "")
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.StringMatching(`[^\r\n]*`).Draw(t, "type")
		data := rapid.OneOf(rapid.String(), rapid.StringMatching(`[\r\n :a]*`)).Draw(t, "data")
		b := AppendComment(nil, data)
		b = AppendEvent(b, kind, data)
		var p Parser
		var got []seen
		for _, ev := range feed(&p, slices(t, b)...) {
			if ev.Kind != Comment {
				ev.Offset, ev.End = 0, 0
				got = append(got, ev)
			}
		}
		lf := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(data)
		if d := cmp.Diff([]seen{{Kind: Message, Type: kind, Data: lf}}, got); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
		if p.InsideEvent() {
			t.Fatal("inside an event after a complete one")
		}
	})
}
