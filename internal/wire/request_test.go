package wire

import (
	"bytes"
	"strings"
	"testing"
)

// field stands for a caller's own type.
type field struct{ Name, Value string }

func TestAppendRequest(t *testing.T) {
	e, err := ParseEndpoint("http://[::1]:3000/mcp?a=b")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		fields []field
		body   string
		want   string
	}{
		{nil, "", "POST /mcp?a=b HTTP/1.1\r\nHost: [::1]:3000\r\nContent-Length: 0\r\n\r\n"},
		{
			[]field{{"Accept", "application/json, text/event-stream"}, {"Mcp-Name", ""}}, "{}",
			"POST /mcp?a=b HTTP/1.1\r\nHost: [::1]:3000\r\nAccept: application/json, text/event-stream\r\nMcp-Name: \r\nContent-Length: 2\r\n\r\n{}",
		},
		{
			[]field{{"X", "1"}, {"host", "other.example"}}, "",
			"POST /mcp?a=b HTTP/1.1\r\nHost: other.example\r\nX: 1\r\nContent-Length: 0\r\n\r\n",
		},
	}
	for _, tt := range tests {
		got, err := AppendRequest([]byte("<"), e, tt.fields, []byte(tt.body))
		if err != nil || string(got) != "<"+tt.want {
			t.Errorf("AppendRequest(%v, %q) = %q, %v, want %q", tt.fields, tt.body, got, err, tt.want)
		}
	}
}

func TestAppendRequestRefuses(t *testing.T) {
	tests := []struct {
		field Field
		want  string
	}{
		{Field{"", "x"}, "no name"},
		{Field{"A B", "x"}, "header name"},
		{Field{"A:", "x"}, "header name"},
		{Field{"Ä", "x"}, "header name"},
		{Field{"A", "x\r\nB: y"}, "control character"},
		{Field{"A", "x\x00"}, "control character"},
		{Field{"Host", "x\r\n"}, "control character"},
		{Field{"content-length", "3"}, "leave it out"},
		{Field{"Transfer-Encoding", "chunked"}, "leave it out"},
		{Field{"Connection", "close"}, "leave it out"},
	}
	for _, tt := range tests {
		dst := []byte("kept")
		got, err := AppendRequest(dst, Endpoint{Authority: "h", Target: "/"}, []Field{tt.field}, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("AppendRequest with %q = %v, want an error with %q", tt.field, err, tt.want)
		}
		if !bytes.Equal(got, dst) {
			t.Errorf("AppendRequest with %q changed dst to %q", tt.field, got)
		}
	}
}
