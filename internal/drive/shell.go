package drive

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/stream"
	"github.com/mcpflood/mcpflood/internal/wire"
)

// shell carries one attempt's machine over one connection. It belongs to one
// goroutine at a time.
type shell struct {
	c     *Caller
	ask   Ask
	first func(at time.Duration) // told of the first event, then nil
	m     *stream.Attempt
	conn  *wire.Conn
	resp  wire.Response
	alarm time.Duration

	sink func(p []byte)
	act  func()
	op   op    // what act does
	err  error // for opEnded

	// What had come when an open cut fired, to be read on after it.
	leftBody, left []byte
}

func newShell(c *Caller) *shell {
	s := &shell{c: c}
	s.sink, s.act = s.feed, s.do // once: a method value is an allocation
	return s
}

func (s *shell) now() time.Duration { return s.c.cfg.Clock.Now() }

// run takes an attempt that was sent to its end, or to a silent cut. It keeps
// to shallow frames: see Call.
func (s *shell) run() {
	for {
		if s.c.dropped.Load() {
			s.c.cfg.Dialer.Deep(s.drop)
		}
		step := s.m.Next(s.now())
		switch step.Do {
		case stream.Wait:
			s.wait(step.Until, step.Exact)
		case stream.Cut:
			s.op = opCut
			s.c.cfg.Dialer.Deep(s.act)
		case stream.Hold, stream.Close, stream.Abort:
			s.readToEnd()
			s.c.leave(s.conn)
			return
		}
	}
}

// endWait is how long the end of a response is waited for after its result.
const endWait = 250 * time.Millisecond

// readToEnd reads what follows the result of a call nobody cut: a client that
// closed at once would answer the server's last bytes with RST, which servers
// log as an error.
func (s *shell) readToEnd() {
	end := s.m.End()
	if s.conn == nil || end.Cut != nil || end.Result == 0 {
		return
	}
	limit := time.Now().Add(endWait)
	for !s.resp.Complete() {
		if err := s.conn.ReadAvailable(limit, s.skip); err != nil && !errors.Is(err, wire.ErrWoken) {
			return
		}
	}
}

// skip follows the response without looking at it.
func (s *shell) skip(p []byte) {
	for {
		part, n, err := s.resp.Next(p)
		if err != nil || part.Kind == wire.PartNone || part.Kind == wire.PartExtra {
			return
		}
		p = p[n:]
	}
}

func (s *shell) drop() { s.m.Drop(s.now()) }

// op is what do does, on a deep stack.
type op uint8

const (
	opEnded op = iota // reading failed
	opCut             // a cut is due
)

func (s *shell) do() {
	switch s.op {
	case opEnded:
		s.peerEnded(s.err)
	case opCut:
		s.cut(s.m.Due())
	}
}

// send dials and writes; where that fails the attempt is over already.
func (s *shell) send() {
	cfg := &s.c.cfg
	req, err := cfg.Request(s.ask)
	if err != nil {
		s.m.Failed(s.now(), history.Us, err)
		return
	}
	dialer := cfg.Dialer
	if s.m.End().Ref.Attempt > 1 {
		dialer = cfg.Redialer
	}
	conn, err := dialer.Dial(s.c.dropCtx, cfg.Endpoint)
	if err != nil {
		s.fail(err)
		return
	}
	s.conn = conn
	s.c.enter(s.conn)
	s.m.Connected(s.now())
	if s.m.Due() == history.StyleNone {
		s.write(req)
	}
}

// write hands the request to the kernel, as much of it as the plan wants.
func (s *shell) write(req []byte) {
	head := bytes.Index(req, endOfHead) + len(endOfHead)
	n := s.m.Writable(head, len(req)-head)
	if err := s.conn.Write(req[:n], time.Now().Add(writeTimeout)); err != nil && wire.OriginOf(err) != history.Peer {
		s.fail(err)
		return
	}
	if n < len(req) {
		s.m.Paused(s.now())
		return
	}
	// A peer that has closed already may have answered first: read on.
	s.m.Sent(s.now())
}

var endOfHead = []byte("\r\n\r\n")

// writeTimeout bounds how long a request may wait for a server that does not
// read.
const writeTimeout = 30 * time.Second

func (s *shell) fail(err error) {
	if s.c.dropped.Load() {
		s.m.Drop(s.now())
		return
	}
	s.m.Failed(s.now(), wire.OriginOf(err), err)
}

// wait reads what comes, until a time: a deadline, or a cut's exact moment.
func (s *shell) wait(until time.Duration, exact bool) {
	var deadline time.Time
	switch {
	case exact && s.alarm != until:
		s.alarm = until
		s.c.cfg.Alarm.Set(until, s.conn)
	case !exact && until != 0:
		deadline = s.c.cfg.Clock.Time(until)
	}
	err := s.conn.ReadAvailable(deadline, s.sink)
	if err != nil && !errors.Is(err, wire.ErrWoken) && !errors.Is(err, os.ErrDeadlineExceeded) {
		s.op, s.err = opEnded, err
		s.c.cfg.Dialer.Deep(s.act)
	}
}

// peerEnded handles the end of what can be read.
func (s *shell) peerEnded(err error) {
	now := s.now()
	how := wire.How(err)
	switch {
	case how == "":
		s.m.ReadFailed(now, wire.OriginOf(err), err)
		return
	case how == "eof" && s.resp.Begun() && s.resp.EOF() == nil:
		s.m.BodyEnd(now)
	}
	s.m.PeerEnded(now, how)
}

// feed is the sink of reads. It takes bytes from the connection apart and hands
// them to the machine. At a cut that is due between them it stops: what is left
// is drained (read for a result only) or, where reading goes on after the cut,
// kept.
func (s *shell) feed(p []byte) {
	s.m.Arrived(s.now())
	body, rest := s.parse(nil, p)
	if at := s.m.End().FirstEvent; s.first != nil && at != 0 {
		s.first(at)
		s.first = nil
	}
	if len(body)+len(rest) == 0 {
		return
	}
	switch s.m.Due() {
	case history.StyleNone, history.Reset: // over; or nobody reads it any more
	case history.HalfClose:
		s.leftBody, s.left = bytes.Clone(body), bytes.Clone(rest)
	default:
		s.parse(body, rest)
	}
}

// parse feeds body, which was decoded already, then p. It returns what is left
// of both when a cut falls due, and nothing when all was taken.
func (s *shell) parse(body, p []byte) (leftBody, left []byte) {
	now := s.now()
	draining := s.m.Due() != history.StyleNone
	for {
		if len(body) > 0 {
			body = body[s.m.Body(now, body):]
		}
		switch {
		case s.m.Over():
			s.skip(p)
			return nil, nil
		case !draining && s.m.Due() != history.StyleNone:
			return body, p
		}
		part, n, err := s.resp.Next(p)
		if err != nil {
			s.m.Garbled(now, err)
			return nil, nil
		}
		p = p[n:]
		switch part.Kind {
		case wire.PartNone, wire.PartExtra:
			return nil, nil
		case wire.PartHead:
			s.m.Head(now, head(part.Head))
		case wire.PartBody:
			body = part.Body
		case wire.PartEnd:
			s.m.BodyEnd(now)
		}
	}
}

func head(h *wire.Head) stream.Head {
	out := stream.Head{Status: h.Status, ContentType: h.Get("Content-Type"), Encoding: strings.ToLower(h.Get("Content-Encoding")), Location: h.Get("Location")}
	if d, ok := h.RetryAfter(time.Now()); ok {
		out.RetryAfter = d
	}
	return out
}

// drain is the sink of a cut: it tells whether a result was found.
func (s *shell) drain(p []byte) bool {
	s.parse(nil, p)
	return s.m.Over()
}

// cut carries out the cut that is due.
func (s *shell) cut(style history.Style) {
	s.conn.Lock()
	done, fallback, err := s.carryOut(style)
	s.conn.Unlock()
	switch {
	case done.Stopped: // the drain found the end of the call
	case err != nil && style == history.WrongSignal: // it went another way
		s.m.CutFailed(s.now())
	case err != nil:
		s.peerEnded(err)
	default:
		s.m.CutDone(done.C0, done.C1, fallback)
		s.readOn()
	}
}

func (s *shell) carryOut(style history.Style) (done wire.Cut, fallback history.Style, err error) {
	switch style {
	case history.Fin:
		done, err = s.conn.Fin(s.now, s.drain)
	case history.Reset:
		done, err = s.conn.Reset(s.now)
	case history.HalfClose:
		done, err = s.conn.HalfClose(s.now)
	case history.Stall:
		done, err = s.conn.Stall(s.now, s.drain)
	case history.Slow:
		done, err = s.conn.Slow(s.now, s.drain)
	case history.Vanish:
		return s.vanish()
	case history.WrongSignal:
		done, err = s.wrongSignal()
	default:
		panic("drive: invariant: the plan holds only styles that this wire can do, not " + style.String())
	}
	return done, history.StyleNone, err
}

// signalTimeout bounds the wait for an answer to a notification; it proves
// nothing either way.
const signalTimeout = 2 * time.Second

// wrongSignal posts notifications/cancelled for this attempt on a connection of
// its own and leaves the stream alone. Over HTTP nobody is required to heed it
// (basic/patterns/cancellation, "Transport-Specific Cancellation").
func (s *shell) wrongSignal() (wire.Cut, error) {
	cfg := &s.c.cfg
	req, err := cfg.Signal(s.m.End().Ref)
	if err != nil {
		return wire.Cut{}, err
	}
	conn, err := cfg.Dialer.Dial(s.c.dropCtx, cfg.Endpoint)
	if err != nil {
		return wire.Cut{}, err
	}
	done := wire.Cut{C0: s.now()}
	err = conn.Write(req, time.Now().Add(signalTimeout))
	done.C1 = s.now()
	s.c.held.Go(func() {
		defer conn.Close()
		_ = conn.ReadAvailable(time.Now().Add(signalTimeout), func([]byte) {})
	})
	return done, err
}

// vanish waits a little for the send queue to empty; where the connection
// cannot be made to vanish it stalls.
func (s *shell) vanish() (wire.Cut, history.Style, error) {
	limit := s.now() + wire.VanishWait
	for {
		done, err := s.conn.Vanish(s.now, s.drain)
		switch {
		case err == nil:
			return done, history.StyleNone, nil
		case errors.Is(err, wire.ErrUnacked) && s.now() < limit:
			s.conn.Unlock()
			time.Sleep(time.Millisecond)
			s.conn.Lock()
		default:
			done, err = s.conn.Stall(s.now, s.drain)
			return done, history.Stall, err
		}
	}
}

// readOn feeds what had come before an open cut.
func (s *shell) readOn() {
	body, rest := s.leftBody, s.left
	s.leftBody, s.left = nil, nil
	if len(body)+len(rest) > 0 {
		s.parse(body, rest)
	}
}

// hold keeps the socket of a silent cut until it is settled.
func (s *shell) hold() {
	defer s.c.held.Done()
	defer s.c.live.Held.Add(-1)
	for {
		step := s.m.Next(s.now())
		if step.Do != stream.Hold {
			break
		}
		s.holdOn(step.Until)
	}
	if n, err := s.conn.Drops(); err == nil && n > 0 {
		s.m.End().After = &history.After{Dropped: n}
	}
	s.close()
	s.c.cfg.History.Append(history.Record{End: s.m.End()})
}

// holdOn waits, and reads meanwhile as slow connections do.
func (s *shell) holdOn(until time.Duration) {
	end := s.m.End()
	for end.Cut.Style == history.Slow && end.After == nil && until-s.now() > wire.SlowEvery {
		time.Sleep(wire.SlowEvery)
		if _, err := s.conn.Sip(); err != nil {
			end.After = &history.After{PeerEnd: s.now(), How: wire.How(err)}
		}
	}
	time.Sleep(until - s.now())
}

func (s *shell) close() {
	if s.conn != nil {
		s.conn.Close()
	}
}
