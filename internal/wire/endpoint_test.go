package wire

import (
	"strings"
	"testing"
)

func TestParseEndpoint(t *testing.T) {
	tests := []struct {
		in   string
		want Endpoint
		text string
	}{
		{"http://localhost:3000/mcp", Endpoint{false, "localhost", 3000, "localhost:3000", "/mcp"}, "http://localhost:3000/mcp"},
		{"http://localhost", Endpoint{false, "localhost", 80, "localhost", "/"}, "http://localhost/"},
		{"https://example.com/a%20b?key=s&x=1", Endpoint{true, "example.com", 443, "example.com", "/a%20b?key=s&x=1"}, "https://example.com/a%20b"},
		{"https://example.com:8443?q", Endpoint{true, "example.com", 8443, "example.com:8443", "/?q"}, "https://example.com:8443/"},
		{"http://example.com:443/", Endpoint{false, "example.com", 443, "example.com:443", "/"}, "http://example.com:443/"},
		{"http://[::1]:3000/mcp", Endpoint{false, "::1", 3000, "[::1]:3000", "/mcp"}, "http://[::1]:3000/mcp"},
		{"https://[::1]/", Endpoint{true, "::1", 443, "[::1]", "/"}, "https://[::1]/"},
		{"http://[fe80::1%25eth0]:80/x", Endpoint{false, "fe80::1%eth0", 80, "[fe80::1]", "/x"}, "http://[fe80::1]/x"},
		{"HTTP://127.0.0.1:1/", Endpoint{false, "127.0.0.1", 1, "127.0.0.1:1", "/"}, "http://127.0.0.1:1/"},
	}
	for _, tt := range tests {
		got, err := ParseEndpoint(tt.in)
		if err != nil || got != tt.want {
			t.Errorf("ParseEndpoint(%q) = %+v, %v, want %+v", tt.in, got, err, tt.want)
		}
		if got.String() != tt.text {
			t.Errorf("ParseEndpoint(%q).String() = %q, want %q", tt.in, got.String(), tt.text)
		}
	}
}

func TestParseEndpointRefuses(t *testing.T) {
	tests := []struct{ in, want string }{
		{"localhost:3000/mcp", "http://"},
		{"/mcp", "http://"},
		{"ftp://localhost/", "http://"},
		{"http://s3cret:s3cret@localhost/", "--bearer"},
		{"http://s3cret@localhost/", "--bearer"},
		{"http://localhost:s3cret/", "not a URL"},
		{"http://localhost:0/", "port"},
		{"http://localhost:65536/", "port"},
		{"http:///mcp", "host"},
		{"http://bücher.example/", "xn--"},
		{"http://localhost/#frag", "#fragment"},
		{"http://localhost/mcp?s3cret=a b", "escaped"},
		{"http://localhost/mcp?s3cret\r\nX: y", "not a URL"},
		{"http:opaque", "host"},
	}
	for _, tt := range tests {
		_, err := ParseEndpoint(tt.in)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ParseEndpoint(%q) = %v, want an error with %q", tt.in, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("ParseEndpoint(%q): the error shows the secret: %v", tt.in, err)
		}
	}
}

func TestLoopback(t *testing.T) {
	tests := []struct {
		host string
		want bool
	}{
		{"127.0.0.1", true},
		{"127.9.9.9", true},
		{"::1", true},
		{"::ffff:127.0.0.1", true},
		{"localhost", true},
		{"0.0.0.0", false},
		{"192.0.2.1", false},
		{"2001:db8::1", false},
	}
	for _, tt := range tests {
		got, err := Loopback(t.Context(), tt.host)
		if err != nil || got != tt.want {
			t.Errorf("Loopback(%q) = %v, %v, want %v", tt.host, got, err, tt.want)
		}
	}
}
