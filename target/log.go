package target

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// stampLayout is RFC 3339 with all nine digits: a text of fixed width says how
// fine its clock is even when the last digits are zero.
const stampLayout = "2006-01-02T15:04:05.000000000Z07:00"

// maxLogValue bounds each value that a client chose and the log repeats.
const maxLogValue = 256

// logger writes one line an event, in the order of the lines' own times. With
// a buffer it writes whole blocks only, which may end inside a line, as the
// standard output of most programs does when it is no terminal.
type logger struct {
	mu    sync.Mutex
	w     io.Writer // nil: no log, only times
	block int
	buf   []byte
	err   error // the first failed write; nothing is written after it
}

// caller is who a request says it is, ready to be appended to a log line.
type caller string

// newCaller quotes what a client chose wherever it could break a line apart.
func newCaller(id, marker, trace, user string) caller {
	return caller(" id=" + logValue(id) + " marker=" + logValue(marker) +
		" trace=" + logValue(trace) + " user=" + logValue(user) + " t=")
}

// logValue is "-" for an absent value, the value itself if it is one plain
// word, and otherwise its Go quoted form.
func logValue(s string) string {
	if s == "" {
		return "-"
	}
	if len(s) > maxLogValue {
		s = s[:maxLogValue]
	}
	plain := s != "-" && strings.IndexFunc(s, func(r rune) bool {
		return r <= ' ' || r == '"' || r == '=' || r == '\\' || r > '~'
	}) < 0
	if plain {
		return s
	}
	return strconv.QuoteToASCII(s)
}

// step logs that step n of m is done.
func (l *logger) step(c caller, n, m int) time.Time {
	return l.line(c, func(b []byte) []byte {
		b = append(b, "build_report step "...)
		b = strconv.AppendInt(b, int64(n), 10)
		b = append(b, " of "...)
		return strconv.AppendInt(b, int64(m), 10)
	})
}

// cancelled logs that the stream was closed after n steps were done.
func (l *logger) cancelled(c caller, n int) time.Time {
	return l.line(c, func(b []byte) []byte {
		b = append(b, "build_report cancelled at step "...)
		b = strconv.AppendInt(b, int64(n), 10)
		return append(b, " (stream closed)"...)
	})
}

// say logs a fixed text.
func (l *logger) say(c caller, text string) time.Time {
	return l.line(c, func(b []byte) []byte { return append(b, text...) })
}

// line writes one line and returns its time, taken under the lock so that the
// order of lines is the order of their times.
func (l *logger) line(c caller, text func([]byte) []byte) time.Time {
	if l.w == nil {
		return time.Now()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.buf = text(l.buf)
	l.buf = append(l.buf, c...)
	l.buf = now.UTC().AppendFormat(l.buf, stampLayout)
	l.buf = append(l.buf, '\n')
	l.spill(l.block)
	return now
}

// spill writes what is buffered in blocks of the given size; 0: all of it.
func (l *logger) spill(block int) {
	n := len(l.buf)
	if block > 0 {
		n -= n % block
	}
	if n == 0 {
		return
	}
	if l.err == nil {
		if _, err := l.w.Write(l.buf[:n]); err != nil {
			l.err = fmt.Errorf("log is incomplete: %w", err)
		}
	}
	l.buf = l.buf[:copy(l.buf, l.buf[n:])]
}

// close writes what is left and returns the first error there was.
func (l *logger) close() error {
	if l.w == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spill(0)
	return l.err
}
