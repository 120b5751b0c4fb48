package target

import (
	"context"
	"net/http"
	"time"

	"github.com/mcpflood/mcpflood/internal/mcp"
)

// job is one call of build_report on its way: it carries the pure [work] on a
// timer and does what its turns say.
type job struct {
	s      *Server
	ctx    context.Context // ends when net/http notices the hang-up
	work   *work
	out    answer
	who    identity
	caller caller
	args   arguments
	id     mcp.ID // the id in the answer
	start  time.Time
	truth  *Truth // nil: no truth file

	// For faults that meddle with other calls; guarded by live.mu.
	place int           // in live.jobs; negative: not there
	inbox [][]byte      // messages of others that will show on this stream
	kick  chan struct{} // ends the call as cancelled; nil: it cannot be
}

// maxInbox bounds the foreign messages that wait for a stream's next event.
const maxInbox = 64

// run does the call to its end, and reports whether the response is complete;
// if not, the connection is to be dropped.
func (j *job) run() bool {
	c := &j.s.counters
	c.inFlight.Add(1)
	defer c.inFlight.Add(-1)
	j.start = time.Now()
	if j.truth != nil {
		j.truth.Seen = j.start
	}
	if end := j.s.slot(j.ctx); end != "" {
		t := turn{stopLine: end == EndCancelled, end: end}
		j.apply(t)
		return j.end(t)
	}
	if j.s.meddles() {
		j.s.live.add(j)
		defer j.s.live.remove(j)
	}
	return j.end(j.loop())
}

// loop carries the work until it ends.
func (j *job) loop() turn {
	timer := time.NewTimer(j.work.next())
	defer timer.Stop()
	gone := j.ctx.Done()
	for {
		var t turn
		select {
		case <-j.s.done:
			return turn{end: EndShutdown}
		case <-gone:
			t, gone = j.hungUp(), nil
		case <-j.kick:
			t = j.work.kick()
		case <-timer.C:
			// Both may be ready, and then the hang-up came first or as good as.
			if gone != nil && j.ctx.Err() != nil {
				t, gone = j.hungUp(), nil
				j.apply(t)
				if t.end != "" {
					return t
				}
			}
			t = j.work.tick(time.Since(j.start))
		}
		j.apply(t)
		if t.end != "" {
			return t
		}
		timer.Reset(j.work.next() - time.Since(j.start))
	}
}

// hungUp tells the work that its client has left, and does what other faults
// make of that.
func (j *job) hungUp() turn {
	select {
	case <-j.s.done: // it is we who closed the connection
		return turn{end: EndShutdown}
	default:
	}
	now := time.Now()
	if j.truth != nil {
		j.truth.CutSeen = &now
	}
	j.s.live.remove(j)
	t := j.work.hangup(now.Sub(j.start))
	if !t.heard {
		return t
	}
	if j.work.faults.has(Brick) {
		j.s.bricked.Store(true)
	}
	if j.work.faults.has(Spurious) {
		j.s.live.other(j, hash(j.s.cfg.Seed, "spurious victim", j.who.id), func(k *job) bool { return len(k.kick) == 0 },
			func(k *job) { k.kick <- struct{}{} })
	}
	return t
}

// apply does what a turn says, but for its end.
func (j *job) apply(t turn) {
	if t.stopLine {
		j.s.log.cancelled(j.caller, j.work.step)
	}
	if t.step {
		j.stepped()
	}
	if t.mail {
		j.mail()
	}
}

func (j *job) stepped() {
	n, m := j.work.step, j.work.script.steps
	now := j.say(func() time.Time { return j.s.log.step(j.caller, n, m) })
	j.s.counters.steps.Add(1)
	if j.truth != nil {
		j.truth.Work = append(j.truth.Work, now)
	}
	if j.out.json || j.out.token.IsZero() {
		return
	}
	if j.work.faults.has(CrossTalk) {
		j.leak(n, m)
	}
	j.foreign()
	j.out.progress(n, m)
}

// say logs, unless the log has lied about this call, and gives the time.
func (j *job) say(log func() time.Time) time.Time {
	if j.work.lied {
		return time.Now()
	}
	return log()
}

// mail sends the e-mail: once per user and idempotency key, unless a fault
// does away with that.
func (j *job) mail() {
	if key := j.args.IdempotencyKey; key != "" && !j.work.faults.has(DoubleEffect) {
		if _, sent := j.s.mailed.remember(digestOf(j.who.user, key), struct{}{}); sent {
			return
		}
	}
	now := j.say(func() time.Time { return j.s.log.say(j.caller, "build_report effect: e-mail to the team") })
	j.s.counters.effects.Add(1)
	if j.truth != nil {
		j.truth.Effects = append(j.truth.Effects, now)
	}
}

// leak puts a copy of this call's progress on another stream.
func (j *job) leak(n, m int) {
	fits := func(k *job) bool { return !k.out.json && len(k.inbox) < maxInbox }
	j.s.live.other(j, hash(j.s.cfg.Seed, "cross-talk victim", j.who.id), fits, func(k *job) {
		k.inbox = append(k.inbox, appendProgress(nil, j.out.token, n, m))
	})
}

// foreign sends what other calls left for this stream.
func (j *job) foreign() {
	if j.s.shares[CrossTalk] == 0 {
		return
	}
	j.s.live.mu.Lock()
	inbox := j.inbox
	j.inbox = nil
	j.s.live.mu.Unlock()
	for _, msg := range inbox {
		j.out.message(func(dst []byte) []byte { return append(dst, msg...) })
	}
}

// end settles the call; see run for its result.
func (j *job) end(t turn) (complete bool) {
	c := &j.s.counters
	switch t.end {
	case EndFinished:
		j.say(func() time.Time { return j.s.log.say(j.caller, "build_report finished") })
		c.finished.Add(1)
		j.record(t.end)
		j.foreign()
		j.out.respond(mcp.AppendResult(nil, j.id, j.s.report(*j.args.Month)))
		return true
	case EndCancelled:
		c.cancelled.Add(1)
		if j.work.faults.has(SlotLeak) {
			j.s.leaked.Add(1)
		}
	case EndSpurious:
		c.cancelled.Add(1)
		j.record(t.end)
		return j.endSpuriously()
	case EndRefused:
		j.record(t.end)
		j.s.refuse(j.out.w, j.id)
		return true
	}
	j.record(t.end)
	return false
}

// endSpuriously answers a call, whose client is there, as cancelled, in one of
// three ways.
func (j *job) endSpuriously() (complete bool) {
	const text = "build_report was cancelled"
	switch hash(j.s.cfg.Seed, "spurious form", j.who.id) % 3 {
	case 0:
		// The status of an error that comes while a stream is under way.
		j.out.respond((&mcp.RPCError{HTTPStatus: http.StatusOK, Code: mcp.CodeInternal, Message: text, ID: j.id}).Body())
		return true
	case 1:
		j.out.respond(mcp.AppendResult(nil, j.id, mcp.CallResult{Text: text, IsError: true, ServerInfo: j.s.info}.JSON()))
		return true
	}
	return false
}

// record writes the call's line of truth.
func (j *job) record(end End) {
	if j.truth == nil {
		return
	}
	j.truth.Units, j.truth.End, j.truth.Ended = j.work.step, end, time.Now()
	j.s.truth.write(j.truth)
}
