package target

import "time"

// script is what every call of build_report does; the same for all requests.
type script struct {
	steps     int
	stepTime  time.Duration
	tailTime  time.Duration
	stopDelay time.Duration
}

// End is how a request ended.
type End string

// The ends.
const (
	EndFinished  End = "finished"  // all steps, the e-mail and the tail are done
	EndCancelled End = "cancelled" // the client hung up and the work stopped
	EndSpurious  End = "spurious"  // ended as cancelled though its client was there
	EndRefused   End = "refused"   // no slot was free
	EndShutdown  End = "shutdown"  // the target itself was closed
)

// work is one call of build_report as a pure machine: times and hang-ups go in,
// a turn comes out and says what happened. All times count from the start of
// the work. The zero value is not usable; see newWork.
type work struct {
	script *script
	faults faultSet
	json   bool // the answer is JSON
	// headAt is the step that sends the response head; over the last step: only
	// the result does.
	headAt int

	step   int
	due    time.Duration // the step under way, or the tail, ends here
	mailed bool
	deaf   bool          // a hang-up came that this call will never hear
	lied   bool          // the log said cancelled while the work goes on
	stopAt time.Duration // slow-stop: the work stops here; negative: not set
}

// turn is what one input led to, in this order: the cancelled line, a step and
// its progress, the e-mail, the end. The zero value: nothing happened.
type turn struct {
	stopLine bool
	step     bool
	mail     bool
	end      End // empty: the work goes on
	heard    bool
}

// newWork starts a call at time 0. events says whether steps send progress.
func newWork(s *script, faults faultSet, json, events bool) *work {
	w := &work{script: s, faults: faults, json: json, headAt: s.steps + 1, due: s.stepTime, stopAt: -1}
	if events && !json {
		w.headAt = 1
	}
	return w
}

// next is when tick wants to be called.
func (w *work) next() time.Duration {
	if w.stopAt >= 0 {
		return min(w.due, w.stopAt)
	}
	return w.due
}

// tick lets the work go on to now. A step takes its time from the end of the
// one before: a late tick delays what follows and never makes steps catch up.
func (w *work) tick(now time.Duration) turn {
	switch {
	case now < w.next():
		return turn{}
	case w.stopAt >= 0 && w.stopAt <= w.due:
		return w.stop(turn{})
	case w.step == w.script.steps:
		return turn{end: EndFinished}
	}
	w.step++
	w.due = now + w.script.stepTime
	if w.step == w.script.steps {
		w.due = now + w.script.tailTime
	}
	t := turn{step: true, mail: w.step == w.mailStep()}
	w.mailed = w.mailed || t.mail
	return t
}

// mailStep is the step after which the e-mail goes out.
func (w *work) mailStep() int {
	if w.faults.has(DoubleEffect) {
		return min(2, w.script.steps)
	}
	return w.script.steps
}

// hangup tells the work, once, that the client has left.
func (w *work) hangup(now time.Duration) turn {
	if w.isDeaf() {
		w.deaf = true
		return turn{}
	}
	t := turn{heard: true}
	if w.faults.has(LyingLog) {
		t.stopLine, w.lied = true, true
	}
	switch {
	case w.faults.has(RunOn):
		return t
	case w.faults.has(SlowStop):
		w.stopAt = now + w.script.stopDelay
		return t
	case w.faults.has(LyingLog):
		return t
	}
	return w.stop(t)
}

// isDeaf reports whether a hang-up now goes unheard.
func (w *work) isDeaf() bool {
	return w.faults.has(DeafBody) ||
		w.faults.has(DeafJSON) && w.json ||
		w.faults.has(DeafBeforeHeaders) && w.step < w.headAt
}

// stop ends the work as cancelled.
func (w *work) stop(t turn) turn {
	t.stopLine = !w.lied
	t.mail = w.faults.has(EffectAfter) && !w.mailed
	w.mailed = w.mailed || t.mail
	t.end = EndCancelled
	return t
}

// kick ends the work as cancelled though the client is there.
func (w *work) kick() turn { return turn{stopLine: !w.lied, end: EndSpurious} }
