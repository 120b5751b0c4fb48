package wire

import (
	"bytes"
	"fmt"
	"io"
)

const (
	maxHead     = 64 << 10 // one response head, or one trailer section
	maxFields   = 512      // header fields of one head
	maxInterim  = 16       // 1xx answers before the final one
	maxSizeLine = 4 << 10  // one chunk-size line, extensions included
	maxDigits   = 15       // of a chunk size: keeps it an int64
	maxQuote    = 32       // bytes of a bad answer that an error shows
)

// PartKind is what a [Part] is.
type PartKind uint8

// The kinds of part, in the order an answer has them.
const (
	PartNone  PartKind = iota // nothing until more bytes come
	PartHead                  // the final response head; 1xx heads are skipped
	PartBody                  // body bytes after transfer decoding
	PartEnd                   // the body is complete; comes once
	PartExtra                 // bytes after the end, which nobody asked for
)

// Part is the next piece of an answer.
type Part struct {
	Kind PartKind
	Head *Head  // of PartHead
	Body []byte // of PartBody and PartExtra: a piece of what was given to Next
}

// Response takes one HTTP/1.1 answer apart, incrementally and without I/O. The
// zero value is ready. It holds no bytes between calls, except of a head that
// has come in part.
//
// Feed it like this; stopping anywhere, at any byte of a body, is fine:
//
//	for {
//		part, n, err := r.Next(p)
//		p = p[n:]
//		if err != nil || part.Kind == wire.PartNone {
//			break
//		}
//		...
//	}
type Response struct {
	state   state
	interim uint8
	digits  uint8 // of the chunk size so far
	blank   bool  // trailers: nothing but CR on this line so far
	count   int32 // bytes of the size line, or of the trailers, so far
	left    int64 // body bytes left: of the body, or of the chunk
	head    []byte
}

type state uint8

const (
	inHead    state = iota
	inLength        // a body of known length
	inRest          // a body that ends with the connection
	inSize          // digits of a chunk size
	inExt           // the rest of a chunk-size line
	inChunk         // chunk data
	inChunkCR       // after chunk data
	inChunkLF       // after the CR that follows chunk data
	inTrailer       // after the last chunk
	atEnd           // complete, PartEnd not given yet
	over            // complete
	broken          // Next has returned an error
)

// errBroken is what Next says after it has said what is wrong.
var errBroken = &ProtocolError{What: "given up before"}

// Next looks at p, the bytes that follow those consumed so far, and returns the
// next part and how many bytes it consumed. PartNone consumes all of p. It can
// be called with no bytes: an end may be due. The error is a [*ProtocolError].
func (r *Response) Next(p []byte) (Part, int, error) {
	used := 0
	for {
		part, n, err := r.step(p[used:])
		used += n
		switch {
		case err != nil:
			*r = Response{state: broken}
			return Part{}, used, err
		case part.Kind != PartNone:
			return part, used, nil
		case used == len(p) && r.state != atEnd:
			return Part{}, used, nil
		}
	}
}

// step consumes bytes of one state. It makes progress unless p is empty.
func (r *Response) step(p []byte) (Part, int, error) {
	switch r.state {
	case atEnd:
		r.state = over
		return Part{Kind: PartEnd}, 0, nil
	case broken:
		return Part{}, 0, errBroken
	}
	if len(p) == 0 {
		return Part{}, 0, nil
	}
	switch r.state {
	case inHead:
		return r.stepHead(p)
	case inLength, inChunk:
		return r.stepCounted(p)
	case inRest:
		return Part{Kind: PartBody, Body: p}, len(p), nil
	case over:
		return Part{Kind: PartExtra, Body: p}, len(p), nil
	}
	n, err := r.stepFraming(p)
	return Part{}, n, err
}

// stepHead collects a head and parses it.
func (r *Response) stepHead(p []byte) (Part, int, error) {
	if at := misfit(r.head, p); at >= 0 {
		return Part{}, at, protocolErrorf("it begins with %q", quotable(r.head, p))
	}
	had := len(r.head)
	n := headEnd(r.head, p)
	if n < 0 {
		if had+len(p) > maxHead {
			return Part{}, 0, protocolErrorf("its head is over %d bytes", maxHead)
		}
		r.head = append(r.head, p...)
		return Part{}, len(p), nil
	}
	if had+n > maxHead {
		return Part{}, 0, protocolErrorf("its head is over %d bytes", maxHead)
	}
	block := p[:n]
	if had > 0 {
		block = append(r.head, block...)
	}
	r.head = nil
	head, err := parseHead(string(block))
	if err != nil {
		return Part{}, n, err
	}
	if head.Status < 200 {
		if r.interim++; r.interim > maxInterim || head.Status == 101 {
			return Part{}, n, protocolErrorf("status %d again or unasked", head.Status)
		}
		return Part{}, n, nil
	}
	if err := r.frame(head); err != nil {
		return Part{}, n, err
	}
	return Part{Kind: PartHead, Head: head}, n, nil
}

// magic begins every answer.
const magic = "HTTP/1."

// misfit returns the index in p of the first byte that cannot begin an answer,
// or -1: a peer of another protocol may wait for us, so the mistake must show
// before a whole head has come.
func misfit(had, p []byte) int {
	for i := range p {
		at := len(had) + i
		if at >= len(magic) {
			return -1
		}
		if p[i] != magic[at] {
			return i
		}
	}
	return -1
}

func quotable(had, p []byte) []byte {
	all := append(bytes.Clone(had), p[:min(len(p), maxQuote)]...)
	return all[:min(len(all), maxQuote)]
}

// headEnd returns how many bytes of p belong to the head, of which had is the
// beginning, or -1 if it goes on. A head ends with an empty line; a bare LF ends
// a line too (RFC 9112, section 2.2).
func headEnd(had, p []byte) int {
	// The last bytes of what came before decide how p's first ones count.
	afterLF := len(had) > 0 && had[len(had)-1] == '\n'
	afterCR := len(had) > 1 && had[len(had)-1] == '\r' && had[len(had)-2] == '\n'
	for i := 0; i < len(p); i++ {
		switch {
		case p[i] == '\n' && (afterLF || afterCR):
			return i + 1
		case p[i] == '\n':
			afterLF, afterCR = true, false
			continue
		case p[i] == '\r' && afterLF:
			afterLF, afterCR = false, true
			continue
		}
		afterLF, afterCR = false, false
		next := bytes.IndexByte(p[i:], '\n')
		if next < 0 {
			return -1
		}
		i += next - 1
	}
	return -1
}

// frame decides where the body ends (RFC 9112, section 6.3).
func (r *Response) frame(h *Head) error {
	length, err := h.contentLength()
	if err != nil {
		return err
	}
	codings := h.transferCodings()
	switch {
	case h.Status == 204 || h.Status == 304:
		r.state = atEnd
	case len(codings) > 0 && h.Minor == 0:
		return protocolErrorf("Transfer-Encoding in HTTP/1.0")
	case len(codings) == 1 && codings[0] == "chunked":
		r.chunk()
	case len(codings) > 0:
		return protocolErrorf("Transfer-Encoding %q: only chunked is known", codings)
	case length == 0:
		r.state = atEnd
	case length > 0:
		r.state, r.left = inLength, length
	default:
		r.state = inRest
	}
	return nil
}

// stepCounted gives the body bytes up to a known end.
func (r *Response) stepCounted(p []byte) (Part, int, error) {
	n := int(min(int64(len(p)), r.left))
	r.left -= int64(n)
	if r.left == 0 {
		if r.state == inChunk {
			r.state = inChunkCR
		} else {
			r.state = atEnd
		}
	}
	return Part{Kind: PartBody, Body: p[:n]}, n, nil
}

// stepFraming consumes the bytes between chunks.
func (r *Response) stepFraming(p []byte) (int, error) {
	switch r.state {
	case inChunkCR, inChunkLF:
		return r.stepChunkEnd(p[0])
	case inSize:
		return r.stepSize(p[0])
	case inExt:
		return r.stepExt(p)
	}
	return r.stepTrailer(p)
}

// chunk expects the next chunk-size line.
func (r *Response) chunk() {
	r.state, r.left, r.digits, r.count = inSize, 0, 0, 0
}

func (r *Response) stepSize(c byte) (int, error) {
	value, ok := hexValue(c)
	if ok {
		if r.digits == maxDigits {
			return 0, protocolErrorf("a chunk size of over %d digits", maxDigits)
		}
		r.digits++
		r.left = r.left<<4 | int64(value)
		return 1, nil
	}
	if r.digits == 0 {
		return 0, protocolErrorf("%q where a chunk size must be", c)
	}
	switch c {
	case ';', ' ', '\t', '\r', '\n':
		r.state = inExt
		return 0, nil
	}
	return 0, protocolErrorf("%q in a chunk size", c)
}

// stepExt skips chunk extensions: they are for whoever agreed on them (RFC
// 9112, section 7.1.1).
func (r *Response) stepExt(p []byte) (int, error) {
	at := bytes.IndexByte(p, '\n')
	n := at + 1
	if at < 0 {
		n = len(p)
	}
	if int(r.count)+n > maxSizeLine {
		return 0, protocolErrorf("a chunk-size line of over %d bytes", maxSizeLine)
	}
	r.count += int32(n)
	switch {
	case at < 0:
	case r.left > 0:
		r.state = inChunk
	default:
		r.state, r.blank, r.count = inTrailer, true, 0
	}
	return n, nil
}

func (r *Response) stepChunkEnd(c byte) (int, error) {
	switch {
	case c == '\n':
		r.chunk()
	case c == '\r' && r.state == inChunkCR:
		r.state = inChunkLF
	default:
		return 0, protocolErrorf("%q after a chunk's data: its size is wrong", c)
	}
	return 1, nil
}

// stepTrailer skips trailer fields up to an empty line.
func (r *Response) stepTrailer(p []byte) (int, error) {
	for i, c := range p {
		if int(r.count) >= maxHead {
			return i, protocolErrorf("its trailers are over %d bytes", maxHead)
		}
		r.count++
		switch {
		case c == '\n' && r.blank:
			r.state = atEnd
			return i + 1, nil
		case c == '\n':
			r.blank = true
		case c != '\r':
			r.blank = false
		}
	}
	return len(p), nil
}

func hexValue(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// Complete reports whether the answer has been read to its end.
func (r *Response) Complete() bool { return r.state == atEnd || r.state == over }

// Begun reports whether any byte of an answer has come.
func (r *Response) Begun() bool {
	return r.state != inHead || len(r.head) > 0 || r.interim > 0
}

// EOF tells that the peer has ended the stream. It returns nil where an answer
// may end, an error that wraps [io.ErrUnexpectedEOF] elsewhere, and ends the
// answer. A body that only the connection's end delimits is complete by it.
func (r *Response) EOF() error {
	was, left := r.state, r.left
	begun := r.Begun()
	r.state, r.head = over, nil
	switch was {
	case inRest, atEnd, over:
		return nil
	case inLength:
		return truncated("%d bytes short of its Content-Length", left)
	case inHead:
		if !begun {
			return truncated("before any byte of an answer")
		}
		return truncated("inside the response head")
	case inChunk:
		return truncated("inside a chunk, %d bytes short", left)
	}
	return truncated("before the last chunk")
}

func truncated(format string, args ...any) error {
	return fmt.Errorf("the stream ended "+format+": %w", append(args, io.ErrUnexpectedEOF)...)
}
