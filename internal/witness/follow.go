package witness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	// followEvery is how often a file is looked at. Polling sees what file
	// events miss (network file systems, bind mounts, events merged) at the cost
	// of two system calls a look.
	followEvery = 20 * time.Millisecond
	// vanishGrace is how long a file may be away before that is a gap: rotation
	// renames it first and creates it after.
	vanishGrace = 2 * time.Second
	// rotatedLinger is how long a rotated file is still read after its last
	// line: its writer may not have been told yet.
	rotatedLinger = 10 * time.Second
	// maxRotated bounds how many rotated files are held open.
	maxRotated = 4

	chunkSize  = 64 << 10 // one read
	readBudget = 1 << 20  // read of one file before the others are looked at
	printSize  = 64       // bytes by which a file is known again
)

// follower reads a file as it grows. It reads renamed files to their end,
// starts over in truncated ones and waits for vanished ones. It does the work
// itself, for two reasons: the tail libraries keep a line of any length in
// memory, and drop what was written between the last read and a rename.
type follower struct {
	path string
	in   *intake

	buf   []byte
	files []*tailed     // oldest first; the last one is at path
	clear time.Duration // everything written before was read

	blindFrom time.Duration // when sight was lost; 0: not
	blindWhy  string
	reported  bool // it lasted, and counts as a gap
}

// tailed is one open file.
type tailed struct {
	f     *os.File
	info  fs.FileInfo
	off   int64
	print []byte // the bytes before off
	lines lines
	quiet time.Duration // when it last gave a byte
}

func (f *follower) poll() time.Duration              { return followEvery }
func (f *follower) settle(ctx context.Context) error { return nil }

func (f *follower) check(context.Context) error {
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no such file%s", f.near())
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("it is a directory: want a file in it")
	case !info.Mode().IsRegular():
		return fmt.Errorf("it is no regular file: use --log - < %s, or --log 'exec:cat %s'", f.path, f.path)
	}
	file, err := os.Open(f.path)
	if err != nil {
		return err
	}
	return file.Close()
}

// near names the files of the directory that are most like the one wanted.
func (f *follower) near() string {
	dir := filepath.Dir(f.path)
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Sprintf(", nor its directory %s", dir)
	}
	defer d.Close()
	entries, _ := d.ReadDir(maxCandidates)
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if hint := nearestHint(filepath.Base(f.path), names); hint != "" {
		return "; " + hint
	}
	return fmt.Sprintf("; %s has no files", dir)
}

func (f *follower) open() error {
	if err := f.check(context.Background()); err != nil {
		return err
	}
	t, err := f.openAt()
	if err != nil {
		return err
	}
	t.off = t.info.Size()
	t.print = make([]byte, min(t.off, printSize))
	if _, err := t.f.ReadAt(t.print, t.off-int64(len(t.print))); err != nil && !errors.Is(err, io.EOF) {
		t.f.Close()
		return err
	}
	t.lines.skip = len(t.print) > 0 && t.print[len(t.print)-1] != '\n'
	f.files = []*tailed{t}
	f.buf = make([]byte, chunkSize)
	f.clear = f.in.out.clock.Now()
	return nil
}

func (f *follower) openAt() (*tailed, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, err
	}
	return &tailed{f: file, info: info, quiet: f.in.out.clock.Now()}, nil
}

func (f *follower) run(ctx context.Context, stop <-chan struct{}) {
	defer f.end()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		more := f.look()
		if more {
			select {
			case <-ctx.Done():
				return
			case <-stop:
				f.drain(ctx)
				return
			default:
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-stop:
			f.drain(ctx)
			return
		case <-tick.C:
		}
	}
}

// drain reads to the end of what is there now.
func (f *follower) drain(ctx context.Context) {
	clock := f.in.out.clock
	for deadline := clock.Now() + drainLimit; f.look(); {
		if now := clock.Now(); now > deadline || ctx.Err() != nil {
			f.in.out.gap(f.clear, 0, "the log grew faster than it could be read: its end was not read")
			return
		}
	}
}

func (f *follower) end() {
	for _, t := range f.files {
		t.f.Close()
	}
	if f.reported {
		f.in.out.gap(f.blindFrom, 0, f.blindWhy)
	}
}

// look reads what is new and reports whether there is more. A newer file is
// read only once the older ones are at their end, so that order is kept.
func (f *follower) look() (more bool) {
	now := f.in.out.clock.Now()
	f.findRotated(now)
	for _, t := range f.files {
		more, err := f.read(t, now)
		if err != nil {
			f.blind(now, "the log cannot be read: "+err.Error())
			return false
		}
		if more {
			return true
		}
	}
	f.clear = now
	for len(f.files) > 1 && now-f.files[0].quiet > rotatedLinger {
		f.retire() // nobody seems to write it any more
	}
	f.in.tick(now)
	return false
}

// findRotated looks whether another file stands at the path.
func (f *follower) findRotated(now time.Duration) {
	info, err := os.Stat(f.path)
	if err == nil && os.SameFile(info, f.newest().info) {
		f.sighted(now)
		return
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file any more", f.path)
	}
	var t *tailed
	if err == nil {
		t, err = f.openAt()
	}
	if err != nil {
		f.blind(now, "the log file is away: "+err.Error())
		return
	}
	f.files = append(f.files, t)
	f.sighted(now)
	if len(f.files) > maxRotated+1 {
		old := f.files[0]
		if info, err := old.f.Stat(); err != nil || info.Size() > old.off {
			f.in.out.gap(f.clear, now, "the log was rotated faster than it could be read")
		}
		f.retire()
	}
}

func (f *follower) newest() *tailed { return f.files[len(f.files)-1] }

// blind notes that the log cannot be seen; past the grace it is a gap, written
// once it ends.
func (f *follower) blind(now time.Duration, why string) {
	if f.blindFrom == 0 {
		f.blindFrom, f.blindWhy = max(f.clear, 1), why
	}
	if !f.reported && now-f.blindFrom > vanishGrace {
		f.reported = true
		f.in.out.count(func(s *Stats) { s.Trouble = printable(why) })
	}
}

// sighted notes that the log can be seen.
func (f *follower) sighted(now time.Duration) {
	if f.reported {
		f.in.out.gap(f.blindFrom, now, f.blindWhy)
	}
	f.blindFrom, f.blindWhy, f.reported = 0, "", false
}

// retire closes the oldest rotated file.
func (f *follower) retire() {
	t := f.files[0]
	f.in.unfinished(&t.lines)
	t.f.Close()
	f.files = f.files[1:]
}

// read takes what t has, up to the budget.
func (f *follower) read(t *tailed, now time.Duration) (more bool, err error) {
	info, err := t.f.Stat()
	if err != nil {
		return false, err
	}
	if info.Size() == t.off {
		return false, nil
	}
	if info.Size() < t.off || !t.same(f.buf) {
		// What was written between the last look and the truncation is lost.
		f.in.out.gap(f.clear, now, "the log file was truncated")
		t.off, t.print = 0, nil
		t.lines.reset()
	}
	for budget := readBudget; budget > 0; {
		n, err := t.f.ReadAt(f.buf, t.off)
		if n > 0 {
			t.quiet = now
			t.off += int64(n)
			budget -= n
			t.lines.feed(f.buf[:n], f.in.line)
			t.print = append(t.print[:0], f.buf[max(0, n-printSize):n]...)
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// same reports whether the bytes before the offset are those read there: a file
// that was truncated and has grown past the offset since is another one.
func (t *tailed) same(buf []byte) bool {
	n, err := t.f.ReadAt(buf[:len(t.print)], t.off-int64(len(t.print)))
	return err == nil && bytes.Equal(buf[:n], t.print)
}
