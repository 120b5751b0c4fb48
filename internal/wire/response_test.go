package wire

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// reading is everything a Response said about some bytes.
type reading struct {
	Head  *Head
	Body  string
	Extra string
	Ended bool
	Err   string // of Next, or else of EOF
}

// read feeds text to a fresh Response, cut after each of the given sizes in
// turn, then ends the stream.
func read(text string, sizes ...int) reading {
	var (
		r    Response
		out  reading
		turn int
	)
	for text != "" || turn == 0 {
		n := len(text)
		if len(sizes) > 0 {
			n = min(n, sizes[turn%len(sizes)])
		}
		turn++
		if err := out.feed(&r, []byte(text[:n])); err != nil {
			out.Err = err.Error()
			return out
		}
		text = text[n:]
	}
	if err := r.EOF(); err != nil {
		out.Err = err.Error()
	}
	return out
}

func (out *reading) feed(r *Response, p []byte) error {
	for {
		part, n, err := r.Next(p)
		p = p[n:]
		if err != nil {
			return err
		}
		switch part.Kind {
		case PartNone:
			if len(p) > 0 {
				return fmt.Errorf("PartNone left %d bytes", len(p))
			}
			return nil
		case PartHead:
			out.Head = part.Head
		case PartBody:
			out.Body += string(part.Body)
		case PartEnd:
			out.Ended = true
		case PartExtra:
			out.Extra += string(part.Body)
		}
	}
}

func TestResponse(t *testing.T) {
	chunked := []Field{{"Transfer-Encoding", "chunked"}}
	ok := func(fields ...Field) *Head { return &Head{Status: 200, Minor: 1, Fields: fields} }
	tests := []struct {
		name, in string
		want     reading
	}{
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
			reading{Head: ok(Field{"Content-Length", "5"}), Body: "hello", Ended: true}},
		{"length 0", "HTTP/1.1 202 Accepted\r\ncontent-length:0\r\n\r\n",
			reading{Head: &Head{202, 1, []Field{{"content-length", "0"}}}, Ended: true}},
		{"same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\nhi",
			reading{Head: ok(Field{"Content-Length", "2, 2"}, Field{"Content-Length", "2"}), Body: "hi", Ended: true}},
		{"until close", "HTTP/1.1 200\r\n\r\nhello",
			reading{Head: ok(), Body: "hello"}},
		{"http/1.0", "HTTP/1.0 200 OK\nX: y\n\nhello",
			reading{Head: &Head{200, 0, []Field{{"X", "y"}}}, Body: "hello"}},
		{"no content", "HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n",
			reading{Head: &Head{204, 1, []Field{{"Content-Length", "7"}}}, Ended: true}},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0006\r\n world\r\n0\r\n\r\n",
			reading{Head: ok(chunked...), Body: "hello world", Ended: true}},
		{"chunk forms", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA;a=\"b;c\"\r\n0123456789\r\n1 \n!\n00;x\r\nT: 1\r\nU: 2\r\n\r\n",
			reading{Head: ok(chunked...), Body: "0123456789!", Ended: true}},
		{"both framings", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nContent-Length: 99\r\n\r\n1\r\na\r\n0\r\n\r\n",
			reading{Head: ok(Field{"Transfer-Encoding", "Chunked"}, Field{"Content-Length", "99"}), Body: "a", Ended: true}},
		{"interim", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
			reading{Head: ok(Field{"Content-Length", "1"}), Body: "a", Ended: true}},
		{"extra", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\n\r\n",
			reading{Head: ok(Field{"Content-Length", "1"}), Body: "a", Ended: true, Extra: "HTTP/1.1 200 OK\r\n\r\n"}},
		{"folded", "HTTP/1.1 200 OK\r\nX: a\r\n\t b\r\nContent-Length : 0\r\n\r\n",
			reading{Head: ok(Field{"X", "a b"}, Field{"Content-Length", "0"}), Ended: true}},

		{"silence", "", reading{Err: "the stream ended before any byte of an answer: unexpected EOF"}},
		{"half a head", "HTTP/1.1 200 OK\r\nContent", reading{Err: "the stream ended inside the response head: unexpected EOF"}},
		{"short body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
			reading{Head: ok(Field{"Content-Length", "5"}), Body: "hel", Err: "the stream ended 2 bytes short of its Content-Length: unexpected EOF"}},
		{"short chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
			reading{Head: ok(chunked...), Body: "hel", Err: "the stream ended inside a chunk, 2 bytes short: unexpected EOF"}},
		{"no last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
			reading{Head: ok(chunked...), Body: "a", Err: "the stream ended before the last chunk: unexpected EOF"}},
		{"half a trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: 1\r\n",
			reading{Head: ok(chunked...), Err: "the stream ended before the last chunk: unexpected EOF"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, sizes := range [][]int{nil, {1}, {2}, {3, 1}, {7}} {
				if diff := cmp.Diff(tt.want, read(tt.in, sizes...)); diff != "" {
					t.Errorf("in pieces of %v (-want +got):\n%s", sizes, diff)
				}
			}
		})
	}
}

func TestResponseRefuses(t *testing.T) {
	const chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	tests := []struct{ name, in, want string }{
		{"another protocol", "SSH-2.0-OpenSSH_9.6\r\n", "it begins with \"S"},
		{"http/2", "\x00\x00\x12\x04", "it begins with \"\\x00"},
		{"empty line first", "\r\nHTTP/1.1 200 OK\r\n\r\n", "it begins with"},
		{"version", "HTTP/1.7 200 OK\r\n\r\n", "status line"},
		{"no status", "HTTP/1.1\r\n\r\n", "status line"},
		{"short status", "HTTP/1.1 20 OK\r\n\r\n", "status line"},
		{"signed status", "HTTP/1.1 +20 OK\r\n\r\n", "status line"},
		{"low status", "HTTP/1.1 099 X\r\n\r\n", "status line"},
		{"upgrade", "HTTP/1.1 101 Switching\r\n\r\n", "101"},
		{"no colon", "HTTP/1.1 200 OK\r\nabc\r\n\r\n", "without colon"},
		{"no name", "HTTP/1.1 200 OK\r\n: x\r\n\r\n", "header name"},
		{"blank in name", "HTTP/1.1 200 OK\r\na b: x\r\n\r\n", "header name"},
		{"fold first", "HTTP/1.1 200 OK\r\n x: y\r\n\r\n", "before it began"},
		{"bare CR", "HTTP/1.1 200 OK\r\na: x\ry\r\n\r\n", "control character"},
		{"NUL", "HTTP/1.1 200 OK\r\na: \x00\r\n\r\n", "control character"},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n", "Content-Length"},
		{"bad length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "Content-Length"},
		{"huge length", "HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n", "Content-Length"},
		{"coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "only chunked"},
		{"coding in 1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0"},
		{"no size", chunks + "\r\n", "chunk size must be"},
		{"bad size", chunks + "5x\r\n", "in a chunk size"},
		{"negative size", chunks + "-5\r\n", "chunk size must be"},
		{"huge size", chunks + "1234567890123456\r\n", "over 15 digits"},
		{"size too small", chunks + "2\r\nabc\r\n", "its size is wrong"},
		{"lone CR after data", chunks + "2\r\nab\rx", "its size is wrong"},
		{"long head", "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", maxHead), "over 65536 bytes"},
		{"long ended head", "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", maxHead) + "\r\n\r\n", "over 65536 bytes"},
		{"many fields", "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: x\r\n", maxFields+1) + "\r\n", "over 512"},
		{"interim for ever", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", maxInterim+1), "102"},
		{"long size line", chunks + "1;" + strings.Repeat("x", maxSizeLine), "over 4096 bytes"},
		{"long trailers", chunks + "0\r\n" + strings.Repeat("A: x\r\n", maxHead/6+1), "trailers are over"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, sizes := range [][]int{nil, {1}, {5}} {
				got := read(tt.in, sizes...)
				if !strings.Contains(got.Err, tt.want) {
					t.Errorf("in pieces of %v: error %q, want %q in it", sizes, got.Err, tt.want)
				}
			}
		})
	}
}

func TestResponseErrors(t *testing.T) {
	var r Response
	_, _, err := r.Next([]byte("nonsense"))
	var proto *ProtocolError
	if !errors.As(err, &proto) {
		t.Errorf("Next(nonsense) = %v, want a *ProtocolError", err)
	}
	if _, _, err := r.Next([]byte("more")); !errors.As(err, &proto) {
		t.Errorf("Next after an error = %v, want a *ProtocolError", err)
	}
	r = Response{}
	if err := r.EOF(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("EOF() of nothing = %v, want io.ErrUnexpectedEOF in it", err)
	}
}

// An idle stream's parser must cost next to nothing.
func TestResponseIsSmallWhenIdle(t *testing.T) {
	if n := unsafe.Sizeof(Response{}); n > 96 {
		t.Errorf("Response has %d bytes, want at most 96", n)
	}
	var r Response
	var out reading
	in := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n2\r\nh"
	for i := range len(in) {
		if err := out.feed(&r, []byte(in[i:i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if r.head != nil {
		t.Errorf("the parser holds %d bytes inside a body, want none", cap(r.head))
	}
	event := []byte("5\r\nhello\r\n")
	out.feed(&r, []byte("i\r\n"))
	if n := testing.AllocsPerRun(100, func() {
		for p := event; ; {
			part, n, err := r.Next(p)
			if p = p[n:]; err != nil || part.Kind == PartNone {
				return
			}
		}
	}); n != 0 {
		t.Errorf("a chunk costs %v allocations, want none", n)
	}
}

func TestHead(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"7", 7 * time.Second, true},
		{"0", 0, true},
		{"Mon, 30 Nov 2026 12:00:30 GMT", 30 * time.Second, true},
		{"Mon, 30 Nov 2026 11:00:00 GMT", 0, true},
		{"9999999999999", (1 << 31) * time.Second, true},
		{"-1", 0, false},
		{"soon", 0, false},
		{"", 0, false},
	}
	for _, tt := range tests {
		h := Head{Fields: []Field{{"X", "y"}, {"retry-after", tt.value}}}
		if got, ok := h.RetryAfter(now); got != tt.want || ok != tt.ok {
			t.Errorf("RetryAfter of %q = %v, %v, want %v, %v", tt.value, got, ok, tt.want, tt.ok)
		}
	}
}

// Any slicing of the bytes gives the same answer.
func TestResponseSlicing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := answer(t)
		sizes := rapid.SliceOfN(rapid.IntRange(1, 40), 1, 6).Draw(t, "sizes")
		if diff := cmp.Diff(read(in), read(in, sizes...)); diff != "" {
			t.Fatalf("%q in pieces of %v (-whole +pieces):\n%s", in, sizes, diff)
		}
	})
}

// answer draws a well-formed answer.
func answer(t *rapid.T) string {
	eol := rapid.SampledFrom([]string{"\r\n", "\n"})
	body := rapid.StringN(0, 60, 200)
	var b strings.Builder
	for range rapid.IntRange(0, 2).Draw(t, "interim") {
		b.WriteString("HTTP/1.1 100 Continue" + eol.Draw(t, "eol") + eol.Draw(t, "eol"))
	}
	b.WriteString("HTTP/1.1 200 OK" + eol.Draw(t, "eol"))
	if rapid.Bool().Draw(t, "plain") {
		text := body.Draw(t, "body")
		fmt.Fprintf(&b, "Content-Length: %d%s%s%s", len(text), eol.Draw(t, "eol"), eol.Draw(t, "eol"), text)
	} else {
		b.WriteString("Transfer-Encoding: chunked" + eol.Draw(t, "eol") + eol.Draw(t, "eol"))
		for range rapid.IntRange(0, 4).Draw(t, "chunks") {
			if text := body.Draw(t, "chunk"); text != "" {
				ext := rapid.SampledFrom([]string{"", ";a", ";a=\"b\"", " "}).Draw(t, "ext")
				fmt.Fprintf(&b, "%x%s%s%s%s", len(text), ext, eol.Draw(t, "eol"), text, eol.Draw(t, "eol"))
			}
		}
		b.WriteString("0" + eol.Draw(t, "eol"))
		b.WriteString(rapid.SampledFrom([]string{"", "T: v\r\n"}).Draw(t, "trailer") + eol.Draw(t, "eol"))
	}
	return b.String() + rapid.SampledFrom([]string{"", "more"}).Draw(t, "extra")
}

// FuzzResponse looks for panics, for lost bytes, and for answers that depend on
// how the bytes are sliced.
func FuzzResponse(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), byte(3))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nT: v\r\n\r\nx"), byte(1))
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200\n\nrest"), byte(7))
	f.Add([]byte("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n"), byte(2))
	f.Fuzz(func(t *testing.T, in []byte, size byte) {
		whole, pieces := read(string(in)), read(string(in), int(size)+1)
		// How much of a bad beginning an error quotes depends on what was there.
		if strings.Contains(whole.Err, "it begins with") && strings.Contains(pieces.Err, "it begins with") {
			pieces.Err = whole.Err
		}
		if diff := cmp.Diff(whole, pieces); diff != "" {
			t.Errorf("in pieces of %d (-whole +pieces):\n%s", int(size)+1, diff)
		}
		if n := len(whole.Body) + len(whole.Extra); n > len(in) {
			t.Errorf("%d bytes of body from %d bytes", n, len(in))
		}
	})
}
