package sse

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func collect(p *Parser, pieces ...string) []string {
	var out []string
	for _, s := range pieces {
		b := []byte(s)
		p.Feed(b, func(ev Event) {
			out = append(out, ev.Kind.String()+" "+string(ev.Type)+"|"+string(ev.Data))
		})
		clear(b) // what the parser keeps must not alias our bytes
	}
	return out
}

func TestSmoke(t *testing.T) {
	var p Parser
	got := collect(&p, "\xEF\xBB\xBF: hi\n\nevent: message\nda", "ta: {}\r\n\r\ndata\n\ndata\ndata\n\ndata:", "x")
	want := []string{"comment |", "message message|{}", "message |", "message |\n"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if !p.InsideEvent() || p.Into() != 6 {
		t.Error(p.InsideEvent(), p.Into())
	}
}
