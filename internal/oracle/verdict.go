package oracle

import (
	"fmt"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

// Reasons of a verdict.
const (
	reasonNeverSeen   = "never_seen"
	reasonTooLate     = "too_late"
	reasonNoWitness   = "no_witness"
	reasonFewClean    = "few_clean"
	reasonUnclear     = "unclear_time"
	reasonCompletion  = "completion_unclear"
	reasonGap         = "gap"
	reasonWatch       = "watch_too_short"
	reasonBuffered    = "buffered"
	reasonLate        = "late_evidence"
	reasonCutShort    = "cut_short"
	reasonTooMuch     = "too_much_evidence"
	reasonGauge       = "gauge"
	reasonClaim       = "stop_evidence"
	reasonSilence     = "silence"
	reasonRanToEnd    = "ran_to_end"
	reasonStillAtWork = "still_at_work"
)

// addWitness is the fix where no evidence names attempts.
const addWitness = "add --log FILE with a --log-work pattern that has an id group, or --metrics URL with --metric inflight=NAME"

// ruling is a verdict with what it rests on.
type ruling struct {
	verdict history.Verdict
	reason  string
	fix     string
	grade   history.Grade
	proof   []*item
	working bool
	// disputed is a claim that the verdict's evidence contradicts.
	disputed *item
}

func (v *view) rule(verdict history.Verdict, reason string, proof ...*item) ruling {
	r := ruling{verdict: verdict, reason: reason}
	for _, it := range proof {
		if it == nil {
			continue
		}
		r.proof = append(r.proof, it)
		if g := v.source(it).Grade; r.grade == history.GradeNone || g < r.grade {
			r.grade = g
		}
	}
	return r
}

func unknown(reason, fix string) ruling {
	return ruling{verdict: history.Unknown, reason: reason, fix: fix}
}

// signal judges a cut that tells the server that the client has left (judging
// section 5): the first rule that matches wins.
func (v *view) signal() ruling {
	if v.end.Outcome == history.Delivered { // cut after its result
		return ruling{verdict: history.Finished, grade: v.p.sources.get(wire).Grade}
	}
	if it := v.beyond(); it != nil {
		return v.pastBudget(it)
	}
	if s := v.firstStop; s != nil && s.lo > v.limit {
		return v.rule(history.Late, reasonClaim, s)
	}
	for _, it := range v.completions {
		if it.hi <= v.limit {
			return v.rule(history.Finished, "", it)
		}
	}
	switch {
	case len(v.completions) > 0:
		return unknown(reasonCompletion, "its end is timed too coarsely to tell whether it came before the cut could be known: log a finer time, or set a larger --stop-within")
	case v.lossy:
		return unknown(reasonTooMuch, "one call gave more evidence than is kept: match fewer lines with --log-work")
	case v.lateUnclear:
		return unknown(reasonLate, "evidence came after the watch and without a time that places it: log the time of each record (group time)")
	case v.unfinished():
		return unknown(reasonCutShort, "the history ends before its watch did")
	}
	if s := v.stopClaim(); s != nil {
		return v.rule(history.Stopped, reasonClaim, s, v.lastWork)
	}
	return v.silence()
}

// pastBudget is rule 2: work, effect or completion past S is proven.
func (v *view) pastBudget(first *item) ruling {
	var r ruling
	near := v.atWork()
	stop, rested := v.stopFollows(), v.rested()
	switch {
	case len(v.completions) > 0:
		r = v.rule(history.RanOn, reasonRanToEnd, first, v.lastWork, v.completions[len(v.completions)-1])
	case v.reachedClean():
		r = v.rule(history.RanOn, reasonRanToEnd, first, v.lastWork)
	case near != nil:
		r = v.rule(history.RanOn, reasonStillAtWork, first, near)
		r.working = true
	case stop != nil:
		r = v.rule(history.Late, reasonClaim, first, v.lastWork, stop)
	case rested != nil:
		r = v.rule(history.Late, reasonSilence, first, v.lastWork)
	default:
		r = v.rule(history.RanOn, reasonStillAtWork, first, v.lastWork)
	}
	for _, s := range v.stops {
		if s.hi < first.lo || s.source == first.source && s.seq < first.seq {
			r.disputed = s
			r.proof = append(r.proof, s)
			break
		}
	}
	return r
}

// silence is rule 4 (b), and rule 5 where it does not hold.
func (v *view) silence() ruling {
	if !v.discriminates() {
		return unknown(reasonTooLate, fmt.Sprintf("the cut came too near the end to tell a stop from an ordinary end: cut earlier, use a longer call, or set a smaller --stop-within than %s", text(v.p.stopWithin())))
	}
	if it := v.lastProof; it != nil && it.hi > v.limit {
		return unknown(reasonUnclear, fmt.Sprintf("its last record lies somewhere in %s around the end of --stop-within: log the time of each record (group time), or set a larger --stop-within", text(it.hi-it.lo)))
	}
	best := unknown(reasonNoWitness, addWitness)
	var found *source
	for _, src := range v.p.sources.sorted() {
		if src.Source == wire || src.whole() || !src.shows(history.Work) && src.worked == 0 {
			continue
		}
		switch why := v.silent(src); {
		case why.verdict == history.Stopped:
			if found == nil || src.Grade < found.Grade {
				found, best = src, why
			}
		case found == nil && (best.reason == reasonNoWitness || best.reason == reasonFewClean):
			best = why
		}
	}
	return best
}

// silent applies rule 4 (b) with one source.
func (v *view) silent(src *source) ruling {
	s, g := v.p.stopWithin(), src.gap()
	switch {
	case src.worked < workedClean:
		return unknown(reasonFewClean, fmt.Sprintf("%s showed work in %s only and needs %d: check that its id pattern matches, or run more clean calls with --clean", src.Name, plural(src.worked, "clean call"), workedClean))
	case src.blind(v.cut.C1, v.wend+src.lag()):
		return unknown(reasonGap, src.Name+" could not be read all the time: "+src.gapReason(v.cut.C1, v.wend+src.lag()))
	case v.p.run.Watch < s+2*g:
		return unknown(reasonWatch, fmt.Sprintf("this tool is quiet for up to %s: --watch %s", text(g), flagText(s+2*g)))
	case src.confirmed() <= v.wend:
		return unknown(reasonBuffered, "the log is buffered: nothing that "+src.Name+" wrote after the watch was seen; flush it after each line")
	}
	r := ruling{verdict: history.Stopped, reason: reasonSilence, grade: src.Grade}
	if v.lastProof != nil {
		r.proof = []*item{v.lastProof}
	} else if !v.seen {
		r.reason = reasonNeverSeen
	}
	return r
}

func (s *source) gapReason(from, to time.Duration) string {
	for _, g := range s.gaps {
		if g.From <= to && (g.To == 0 || g.To >= from) {
			return g.Reason
		}
	}
	return ""
}

// quiet judges a cut that looks like a slow or dead network (judging section 2).
func (v *view) quiet() ruling {
	near := v.atWork()
	switch {
	case len(v.completions) > 0:
		return v.rule(history.Unnoticed, reasonRanToEnd, v.lastWork, v.completions[len(v.completions)-1])
	case v.reachedClean():
		return v.rule(history.Unnoticed, reasonRanToEnd, v.lastWork)
	case v.lossy:
		return unknown(reasonTooMuch, "one call gave more evidence than is kept: match fewer lines with --log-work")
	case v.unfinished():
		return unknown(reasonCutShort, "the history ends before its watch did")
	case near != nil:
		r := v.rule(history.Unnoticed, reasonStillAtWork, near)
		r.working = true
		return r
	}
	if s := v.stopFollows(); s != nil && s.hi <= v.wend {
		return v.rule(history.Noticed, reasonClaim, s)
	}
	if src := v.rested(); src != nil {
		r := v.rule(history.Noticed, reasonSilence, v.lastProof)
		r.grade = src.Grade
		if !v.seen {
			r.reason = reasonNeverSeen
		}
		return r
	}
	if r := v.silence(); r.verdict == history.Unknown && r.reason != reasonTooLate && r.reason != reasonUnclear {
		return r
	}
	return unknown(reasonWatch, "the watch is too short to tell a pause from a stop: set a longer --watch")
}

// open judges a cut that leaves the answer wanted: what the server did.
func (v *view) open() ruling {
	after := v.end.After
	if after == nil {
		after = &history.After{}
	}
	workAfter := func() *item {
		for _, it := range v.work {
			if it.lo > v.cut.C1 {
				return it
			}
		}
		return nil
	}()
	wireGrade := v.p.sources.get(wire).Grade
	switch {
	case v.end.Outcome == history.Delivered && !v.end.IsError, after.Result != 0 && !after.IsError:
		return ruling{verdict: history.WentOn, grade: wireGrade}
	case v.firstStop != nil:
		return v.rule(history.HungUp, reasonClaim, v.firstStop)
	case after.PeerEnd != 0 || after.Result != 0:
		return ruling{verdict: history.HungUp, grade: wireGrade}
	case len(v.completions) > 0:
		return v.rule(history.WentOn, "", v.completions[0])
	case workAfter != nil:
		return v.rule(history.WentOn, "", workAfter)
	case after.Messages > 0:
		return ruling{verdict: history.WentOn, grade: wireGrade}
	}
	return unknown(reasonWatch, "the server neither answered nor hung up within the watch: set a longer --watch")
}
