package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

const (
	// FlushEvery is how much of a history a kill -9 may cost.
	FlushEvery = time.Second
	// maxPending bounds what waits for the disk; records beyond it are lost and
	// counted, and the run is then limited by its driver.
	maxPending = 64 << 20
	// maxLine bounds one record when reading.
	maxLine = 1 << 20
)

// Appender takes records. Append never blocks on the disk and never fails: a
// record that cannot be kept is counted by the implementation.
type Appender interface{ Append(Record) }

// Writer appends records to a history file. Its methods may be called from any
// goroutine.
type Writer struct {
	clock Clock

	mu      sync.Mutex
	pending []byte
	records int64
	lost    int64
	err     error
	closed  bool

	flushMu sync.Mutex
	spare   []byte
	file    *os.File
	enc     *zstd.Encoder

	stop chan struct{}
	done chan struct{}
}

// Create makes a new history file and starts to flush it every [FlushEvery].
func Create(path string, clock Clock) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	enc, err := zstd.NewWriter(f, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("history: %w", err)
	}
	w := &Writer{clock: clock, file: f, enc: enc, stop: make(chan struct{}), done: make(chan struct{})}
	go w.loop()
	return w, nil
}

func (w *Writer) loop() {
	defer close(w.done)
	t := time.NewTicker(FlushEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			w.Flush()
		case <-w.stop:
			return
		}
	}
}

// Append stamps r with the time and adds it.
func (w *Writer) Append(r Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.err != nil || len(w.pending) > maxPending {
		w.lost++
		return
	}
	r.T = w.clock.Now()
	b, err := json.Marshal(r)
	if err != nil {
		panic("history: invariant: every record can be encoded: " + err.Error())
	}
	w.pending = append(append(w.pending, b...), '\n')
	w.records++
}

// Flush hands everything appended so far to the operating system.
func (w *Writer) Flush() error {
	w.flushMu.Lock()
	defer w.flushMu.Unlock()
	w.mu.Lock()
	b := w.pending
	w.pending = w.spare[:0]
	w.mu.Unlock()
	var err error
	if len(b) > 0 {
		if _, err = w.enc.Write(b); err == nil {
			err = w.enc.Flush()
		}
	}
	if cap(b) <= maxPending/8 {
		w.spare = b[:0]
	} else {
		w.spare = nil
	}
	if err != nil {
		w.fail(err)
	}
	return w.Err()
}

func (w *Writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = fmt.Errorf("history: writing %s: %w", w.file.Name(), err)
	}
}

// Err is the first error of the disk; records appended after it are lost.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Count tells how many records were appended and how many were lost.
func (w *Writer) Count() (records, lost int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.records, w.lost
}

// Close writes a Close record with the reason and ends the file.
func (w *Writer) Close(reason string) error {
	records, lost := w.Count()
	w.Append(Record{Close: &Close{Reason: reason, Records: records + 1, Lost: lost}})
	close(w.stop)
	<-w.done
	w.Flush()
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	if err := w.enc.Close(); err != nil {
		w.fail(err)
	}
	if err := w.file.Close(); err != nil {
		w.fail(err)
	}
	return w.Err()
}

// Reader reads a history from its start. It is not safe for concurrent use.
type Reader struct {
	file   *os.File
	dec    *zstd.Decoder
	br     *bufio.Reader
	line   []byte
	n      int64
	opened bool
	ended  bool
	cut    bool
}

// Open opens a history file.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	dec, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("history: %s: %w", path, err)
	}
	return &Reader{file: f, dec: dec, br: bufio.NewReaderSize(dec, 64<<10)}, nil
}

// Next returns the next record, or [io.EOF] after the last whole one. The first
// record must carry the schema this package writes.
func (r *Reader) Next() (Record, error) {
	line, err := r.readLine()
	if err != nil {
		return Record{}, err
	}
	var rec Record
	if err := json.Unmarshal(line, &rec); err != nil {
		return Record{}, fmt.Errorf("history: %s: record %d: %v", r.file.Name(), r.n, err)
	}
	if !r.opened {
		if rec.Run == nil || rec.Run.Schema != Schema {
			return Record{}, fmt.Errorf("history: %s is no %s: its first record carries no such schema", r.file.Name(), Schema)
		}
		r.opened = true
	}
	if rec.Close != nil {
		r.ended = true
	}
	return rec, nil
}

func (r *Reader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		part, err := r.br.ReadSlice('\n')
		r.line = append(r.line, part...)
		switch {
		case err == nil:
			r.n++
			return bytes.TrimSuffix(r.line, []byte("\n")), nil
		case errors.Is(err, bufio.ErrBufferFull):
			if len(r.line) > maxLine {
				return nil, fmt.Errorf("history: %s: record %d is longer than %d bytes", r.file.Name(), r.n+1, maxLine)
			}
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			// A history cut short ends inside a frame or a line: what came
			// before it stands.
			r.cut = r.cut || !r.ended || len(r.line) > 0
			return nil, io.EOF
		default:
			if r.n == 0 {
				return nil, fmt.Errorf("history: %s: %v", r.file.Name(), err)
			}
			r.cut = true
			return nil, io.EOF
		}
	}
}

// CutShort reports, after io.EOF, whether the history was not ended in order.
func (r *Reader) CutShort() bool { return r.cut || !r.ended }

// Close frees the file.
func (r *Reader) Close() error {
	r.dec.Close()
	return r.file.Close()
}
