package witness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// idleLook is how long a wait for bytes lasts before the stop is looked at.
const idleLook = 50 * time.Millisecond

// errIdle says that nothing came within the wait.
var errIdle = errors.New("nothing to read yet")

// waiter is a reader that can wait for a while only.
type waiter interface {
	// next reads what is there, or returns errIdle after wait.
	next(buf []byte, wait time.Duration) (int, error)
	// close lets go of the reader; it does not close it.
	close()
}

// stream feeds the lines of a reader to an intake.
type stream struct {
	r     waiter
	in    *intake
	buf   []byte
	lines lines
}

func newStream(r io.Reader, in *intake) *stream {
	return &stream{r: newWaiter(r), in: in, buf: make([]byte, chunkSize)}
}

// step takes what comes within wait.
func (s *stream) step(wait time.Duration) error {
	n, err := s.r.next(s.buf, wait)
	s.lines.feed(s.buf[:n], s.in.line)
	if err != nil && !errors.Is(err, errIdle) {
		s.in.unfinished(&s.lines)
	}
	return err
}

// carry feeds the intake until the reader fails, whose error it returns, or
// stop is closed or ctx ends.
func (s *stream) carry(ctx context.Context, stop <-chan struct{}) error {
	for {
		err := s.step(idleLook)
		if err != nil && !errors.Is(err, errIdle) {
			return err
		}
		s.in.tick(s.in.out.clock.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-stop:
			return nil
		default:
		}
	}
}

// drain reads on until nothing comes for a moment, at most for [drainLimit].
func (s *stream) drain(ctx context.Context) {
	began := s.in.out.clock.Now()
	for ctx.Err() == nil {
		if err := s.step(idleLook); err != nil {
			return
		}
		if now := s.in.out.clock.Now(); now > began+drainLimit {
			s.in.out.gap(began, 0, "the log grew faster than it could be read: its end was not read")
			return
		}
	}
}

// stdin reads the log that is piped into mcpflood.
type stdin struct {
	from io.Reader
	in   *intake
	s    *stream
}

func (s *stdin) poll() time.Duration          { return 0 }
func (s *stdin) settle(context.Context) error { return nil }

func (s *stdin) check(context.Context) error {
	if s.from == nil {
		return errors.New("there is no standard input")
	}
	if f, ok := s.from.(*os.File); ok {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if info.Mode()&os.ModeCharDevice != 0 {
			return errors.New("standard input is a terminal or device: pipe the log into mcpflood, or give --log FILE")
		}
	}
	return nil
}

func (s *stdin) open() error {
	if err := s.check(context.Background()); err != nil {
		return err
	}
	s.s = newStream(s.from, s.in)
	return nil
}

func (s *stdin) run(ctx context.Context, stop <-chan struct{}) {
	defer s.s.r.close()
	if err := s.s.carry(ctx, stop); err != nil {
		s.in.out.gap(s.in.out.clock.Now(), 0, fmt.Sprintf("standard input ended (%v); %s", err, s.in.lastWords()))
		return
	}
	s.s.drain(ctx)
}

// pumped waits for a reader that cannot be waited for: another goroutine reads
// it, and is left behind if it is still in a Read at the end.
type pumped struct {
	chunks chan []byte
	more   chan struct{}
	quit   chan struct{}
	rest   []byte
	err    error // set before chunks is closed
}

func newPumped(r io.Reader) *pumped {
	p := &pumped{chunks: make(chan []byte), more: make(chan struct{}), quit: make(chan struct{})}
	go func() {
		defer close(p.chunks)
		buf := make([]byte, chunkSize)
		for {
			n, err := r.Read(buf)
			if n > 0 {
				select {
				case p.chunks <- buf[:n]:
				case <-p.quit:
					return
				}
				select {
				case <-p.more: // buf is free again
				case <-p.quit:
					return
				}
			}
			if err != nil {
				p.err = err
				return
			}
		}
	}()
	return p
}

func (p *pumped) next(buf []byte, wait time.Duration) (int, error) {
	if len(p.rest) == 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case b, ok := <-p.chunks:
			if !ok {
				return 0, p.err
			}
			p.rest = b
		case <-t.C:
			return 0, errIdle
		}
	}
	n := copy(buf, p.rest)
	if p.rest = p.rest[n:]; len(p.rest) == 0 {
		p.more <- struct{}{}
	}
	return n, nil
}

func (p *pumped) close() { close(p.quit) }
