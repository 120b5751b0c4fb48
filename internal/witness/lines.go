package witness

import "bytes"

// MaxLine bounds a log line, in bytes. Of a longer one the start is matched,
// the rest is skipped, and the log has a gap there.
const MaxLine = 64 << 10

// lines cuts a stream of bytes into lines. The zero value is ready; an idle one
// holds no buffer.
type lines struct {
	partial []byte
	skip    bool // the rest of a line that was too long, or begun before us
}

// feed takes the next bytes of the stream and calls line for each line that
// ends, without its line end, and once for a line that is too long, cut. A line
// is valid only during the call.
func (l *lines) feed(p []byte, line func(b []byte, cut bool)) {
	for len(p) > 0 {
		if len(l.partial) == 0 && !l.skip {
			// A file truncated under a writer that keeps its offset starts with
			// a hole of zeros.
			p = bytes.TrimLeft(p, "\x00")
		}
		i := bytes.IndexByte(p, '\n')
		switch {
		case i < 0:
			l.keep(p, line)
			return
		case l.skip:
			l.skip = false
		case len(l.partial) == 0 && i <= MaxLine:
			line(bytes.TrimSuffix(p[:i], []byte("\r")), false)
		default:
			l.keep(p[:i], line)
			if !l.skip {
				line(bytes.TrimSuffix(l.partial, []byte("\r")), false)
			}
			l.reset()
		}
		p = p[i+1:]
	}
}

// keep adds to the partial line, and hands it out once it is too long.
func (l *lines) keep(p []byte, line func(b []byte, cut bool)) {
	if l.skip {
		return
	}
	room := MaxLine - len(l.partial)
	if len(p) <= room {
		l.partial = append(l.partial, p...)
		return
	}
	l.partial = append(l.partial, p[:room]...)
	line(l.partial, true)
	l.reset()
	l.skip = true
}

// reset forgets the partial line and reports whether there was one.
func (l *lines) reset() bool {
	had := len(l.partial) > 0
	l.partial, l.skip = nil, false
	return had
}
