package sse

import (
	"bytes"
	"time"
)

// MaxEvent bounds one event, from the first byte of its first line to its
// blank line, in bytes. A longer one is reported as [Overflow] and skipped in
// constant memory.
const MaxEvent = 4 << 20

// Kind is what an [Event] is.
type Kind uint8

// The kinds. Only a Message is an event of the standard, the thing that counts
// as "the n-th event" of a stream.
const (
	KindNone Kind = iota
	Message       // a dispatched event; its data may be empty
	Comment       // one comment line: a keep-alive
	Bare          // a block of fields without data; the standard dispatches nothing
	Overflow      // an event grew past [MaxEvent]; reported once, at that byte
)

var kindNames = [...]string{"", "message", "comment", "bare", "overflow"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

// Event is one thing found in a stream. Its byte slices may alias the bytes
// given to the parser: they are valid until the parser is called again or
// those bytes change. They are as sent: UTF-8 is not checked.
type Event struct {
	Kind Kind
	// Type is the value of the last event field; empty stands for "message".
	Type []byte
	// Data is the lines of data joined by LF, without a last LF.
	Data []byte
	// ID is the value of the last valid id field of this block, if HasID. The
	// standard's memory of the last id over events is left to the caller.
	ID    []byte
	HasID bool
	// Retry is the reconnection time of this block, if HasRetry.
	Retry    time.Duration
	HasRetry bool
	// Offset is the place in the stream of the first byte of the first line,
	// comment lines in front of an event not included; the stream's first byte
	// is 0, and a byte order mark counts. End is the place just after its blank
	// line, or after the line of a comment. Where that line ends in CR LF, End
	// is between the two, since an event is complete with the CR and no later
	// byte is waited for.
	Offset, End int64
}

// Parser reads one stream, in pieces of any size. The zero value is ready. It
// holds memory only while an event has begun and is not complete. It is not
// safe for concurrent use.
type Parser struct {
	off   int64  // of the next byte
	start int64  // of the current event's first byte, if inside
	line  int64  // of the current line's first byte
	pend  []byte // bytes of the current event from earlier pieces
	mode  mode
}

type mode uint8

const (
	inside   mode = 1 << iota // an event has begun
	inLine                    // the next byte is not the first of a line
	comment                   // the current line is a comment
	afterCR                   // an LF that comes next belongs to the line before
	skipping                  // the current event has overflowed
	noBOM                     // no byte order mark can come any more
)

var bom = []byte("\xEF\xBB\xBF")

// Offset is how many bytes of the stream were read.
func (p *Parser) Offset() int64 { return p.off }

// EventStart tells where the current event's first byte is. inside is false
// between events, on blank lines and in comments outside an event.
func (p *Parser) EventStart() (offset int64, inside bool) {
	if !p.InsideEvent() {
		return 0, false
	}
	return p.start, true
}

// InsideEvent reports whether bytes of an event were read that is not complete:
// a stream that ends now was cut inside an event.
func (p *Parser) InsideEvent() bool { return p.mode&inside != 0 }

// Into is how many bytes of the current event were read; 0 between events.
func (p *Parser) Into() int64 {
	if !p.InsideEvent() {
		return 0
	}
	return p.off - p.start
}

// Feed reads all of b and calls emit for each event, in order.
func (p *Parser) Feed(b []byte, emit func(Event)) {
	for len(b) > 0 {
		ev, n, ok := p.Next(b)
		if ok {
			emit(ev)
		}
		b = b[n:]
	}
}

// Next reads b up to the end of the first event in it. It returns that event
// and how many bytes it read; ok is false if all of b was read and no event
// was completed. Call it again with b[n:] until b is empty.
func (p *Parser) Next(b []byte) (ev Event, n int, ok bool) { return p.NextUntil(b, 0) }

// NextUntil is [Parser.Next] that also stops, with ok false, once k bytes of
// the current event, or of the one that begins in b, were read: then Into() is
// at least k. It is how to stop inside an event whose bytes came together with
// others. k 0 means no stop.
func (p *Parser) NextUntil(b []byte, k int64) (ev Event, n int, ok bool) {
	if p.mode&noBOM == 0 {
		n = p.skipBOM(b)
	}
	from := n // the current event's bytes of b that are not in pend begin here
	for n < len(b) {
		if k > 0 && p.Into() >= k {
			break
		}
		if p.mode&skipping == 0 && p.Into() >= MaxEvent {
			p.mode |= skipping
			p.pend = nil
			return Event{Kind: Overflow, Offset: p.start, End: p.off}, n, true
		}
		was := p.mode
		size, what := p.step(b[n:], k)
		if was&inside == 0 && p.mode&inside != 0 {
			from = n
		}
		p.off += int64(size)
		n += size
		switch what {
		case commentLine:
			p.keep(b[from:n])
			return Event{Kind: Comment, Offset: p.line, End: p.off}, n, true
		case blankLine:
			if ev, ok := p.finish(b[from:n]); ok {
				return ev, n, true
			}
		}
	}
	p.keep(b[from:n])
	return Event{}, n, false
}

// skipBOM reads a byte order mark at the start of the stream. What it has read
// of one is not kept: the offset tells it.
func (p *Parser) skipBOM(b []byte) (n int) {
	for n < len(b) && p.off < int64(len(bom)) && b[n] == bom[p.off] {
		p.off++
		n++
	}
	switch {
	case p.off == int64(len(bom)):
		p.mode |= noBOM
	case n < len(b):
		p.mode |= noBOM
		if p.off > 0 { // no mark after all: those bytes begin a line
			p.mode |= inside | inLine
			p.pend = append(p.pend, bom[:p.off]...)
		}
	}
	return n
}

// found is what a step has come to the end of.
type found uint8

const (
	nothing found = iota
	commentLine
	blankLine
)

// step reads at least one byte of b and at most one line, and stays inside
// the limits of the current event.
func (p *Parser) step(b []byte, k int64) (size int, what found) {
	if p.mode&afterCR != 0 {
		p.mode &^= afterCR
		if b[0] == '\n' {
			return 1, nothing
		}
	}
	if p.mode&inLine == 0 {
		switch {
		case b[0] == '\r':
			p.mode |= afterCR
			return 1, blankLine
		case b[0] == '\n':
			return 1, blankLine
		case b[0] == ':':
			p.mode |= comment
		case p.mode&inside == 0:
			p.mode |= inside
			p.start = p.off
		}
		p.mode |= inLine
		p.line = p.off
	}
	b = b[:p.room(len(b), k)]
	end := lineEnd(b)
	if end < 0 {
		return len(b), nothing
	}
	if b[end] == '\r' {
		p.mode |= afterCR
	}
	if p.mode&comment != 0 {
		what = commentLine
	}
	p.mode &^= inLine | comment
	return end + 1, what
}

// room is how many of n bytes may be read before a limit of the current event
// has to be looked at.
func (p *Parser) room(n int, k int64) int {
	if p.mode&inside == 0 {
		return n
	}
	room := int64(n)
	if p.mode&skipping == 0 {
		room = min(room, MaxEvent-p.Into())
	}
	if k > 0 {
		room = min(room, k-p.Into())
	}
	return int(room)
}

// keep saves the current event's bytes until more of it comes.
func (p *Parser) keep(b []byte) {
	if p.mode&(inside|skipping) == inside {
		p.pend = append(p.pend, b...)
	}
}

// finish ends the current event, if there is one, at a blank line. last is its
// bytes that are not in pend.
func (p *Parser) finish(last []byte) (Event, bool) {
	was := p.mode
	p.mode &^= inside | skipping
	if was&(inside|skipping) != inside {
		return Event{}, false
	}
	block := last
	if p.pend != nil {
		block = append(p.pend, last...)
		p.pend = nil
	}
	ev := parseBlock(block)
	ev.Offset, ev.End = p.start, p.off
	return ev, true
}

// parseBlock reads the fields of one complete event.
func parseBlock(b []byte) Event {
	ev := Event{Kind: Bare}
	joined := false
	for len(b) > 0 {
		end := lineEnd(b)
		if end < 0 {
			break
		}
		line := b[:end]
		b = b[end+1:]
		// The LF of a CR LF reads as an empty line: those mean nothing here.
		name, value, _ := bytes.Cut(line, colon)
		value = bytes.TrimPrefix(value, space)
		switch string(name) {
		case "data":
			switch {
			case ev.Kind == Bare:
				ev.Kind, ev.Data = Message, value
			case !joined:
				joined = true
				ev.Data = append(make([]byte, 0, len(ev.Data)+1+len(value)+len(b)), ev.Data...)
				fallthrough
			default:
				ev.Data = append(append(ev.Data, '\n'), value...)
			}
		case "event":
			ev.Type = value
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				ev.ID, ev.HasID = value, true
			}
		case "retry":
			if d, ok := parseRetry(value); ok {
				ev.Retry, ev.HasRetry = d, true
			}
		}
	}
	return ev
}

var (
	colon = []byte(":")
	space = []byte(" ")
)

// maxRetryDigits keeps a retry time inside an int64 of nanoseconds: 11 years.
const maxRetryDigits = 12

// parseRetry reads a reconnection time: digits only, in milliseconds. A longer
// one than any that makes sense is ignored.
func parseRetry(b []byte) (time.Duration, bool) {
	if len(b) == 0 || len(b) > maxRetryDigits {
		return 0, false
	}
	var ms int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		ms = ms*10 + int64(c-'0')
	}
	return time.Duration(ms) * time.Millisecond, true
}

// window bounds how far one line end is searched for at a time: without it, a
// stream that ends its lines in CR would be searched for LF to its end again
// for every line.
const window = 1 << 10

// lineEnd is the place of the first CR or LF in b, or -1.
func lineEnd(b []byte) int {
	for base := 0; base < len(b); base += window {
		w := b[base:min(base+window, len(b))]
		lf := bytes.IndexByte(w, '\n')
		if lf >= 0 {
			w = w[:lf]
		}
		if cr := bytes.IndexByte(w, '\r'); cr >= 0 {
			return base + cr
		}
		if lf >= 0 {
			return base + lf
		}
	}
	return -1
}
