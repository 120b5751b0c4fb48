package oracle

import (
	"slices"
	"time"

	"github.com/mcpflood/mcpflood/history"
)

const (
	// probesDown and connectsDown in a row that fail mean that the server is
	// down.
	probesDown   = 3
	connectsDown = 20
	// maxLatencies bounds the canary's latencies that are kept; beyond it every
	// second one is dropped.
	maxLatencies = 1 << 15

	// leakedSlots is how many re-issues must suffer for a slot-leak.
	leakedSlots = 3
	// near is how far around a re-issue first attempts are compared with it.
	near = 5 * time.Second
	// slowBy and slowTimes are how much slower than these a re-issue must be.
	slowBy    = time.Second
	slowTimes = 3
	// maxFirsts bounds the first attempts and the re-issues that are compared.
	maxFirsts = 1 << 14

	// Bounds of "the whole stream arrived with its end".
	bufferedEvents = 3
	bufferedAfter  = 200 * time.Millisecond
	bufferedPart   = 20 // the last 1/20 of its time
)

// outage is a time in which nothing answered.
type outage struct {
	from, to time.Duration
	open     bool
	fails    int
}

func (o *outage) length(end time.Duration) time.Duration {
	if o.open {
		return max(end-o.from, 0)
	}
	return o.to - o.from
}

// canaryWatch follows the probes on fresh connections.
type canaryWatch struct {
	Canary
	stride, skip int
	now          outage
	longest      outage
	down         outage // the longest one that counts as down
}

func (c *canaryWatch) probe(r *history.Canary) {
	c.Probes++
	if r.OK {
		c.keep(r.Latency)
		if c.now.open {
			c.now.open, c.now.to = false, r.At
			c.close()
		}
		return
	}
	c.Failures++
	if !c.now.open {
		c.now = outage{from: r.At, open: true}
	}
	c.now.fails++
}

func (c *canaryWatch) keep(d time.Duration) {
	if c.skip > 0 {
		c.skip--
		return
	}
	c.skip = c.stride
	if c.Latencies = append(c.Latencies, d); len(c.Latencies) < maxLatencies {
		return
	}
	n := 0
	for i := 0; i < len(c.Latencies); i += 2 {
		c.Latencies[n] = c.Latencies[i]
		n++
	}
	c.Latencies = c.Latencies[:n]
	c.stride = c.stride*2 + 1
}

func (c *canaryWatch) close() {
	end := c.now.to
	if c.now.length(end) > c.longest.length(end) {
		c.longest = c.now
	}
	if c.now.fails >= probesDown && (c.down.fails == 0 || c.now.length(end) > c.down.length(end)) {
		c.down = c.now
	}
	c.now = outage{}
}

func (c *canaryWatch) finish(end time.Duration) {
	if c.now.open {
		c.now.open, c.now.to = false, end
		c.close()
	}
	c.LongestOutage = c.longest.length(end)
}

// first is a first attempt that nobody cut: what the server took to answer.
type first struct{ sent, server time.Duration }

// again is a re-issue that was refused or slow.
type again struct {
	ref     history.Ref
	sent    time.Duration
	server  time.Duration
	refused bool
	connect bool // the connection failed
	text    string
}

// damage watches what cuts do to other calls.
type damage struct {
	p     *params
	reach time.Duration // how long an answer may take to be compared

	connect outage // of new connections
	down    outage

	firsts        []first
	suspects      []again
	refusedBefore int // first attempts refused before the first cut
	leaked        []again
	leakedRefused int
	leakedConnect int
	leakedSlow    int

	streams, buffered int
}

func newDamage(p *params) *damage {
	return &damage{p: p, reach: min(max(2*p.median, near), time.Minute)}
}

// end takes an attempt's end. prev is the outcome of the attempt before it.
func (d *damage) end(e *history.End, prev history.Outcome) {
	if e.Ref.Role == history.Probe {
		return
	}
	d.stream(e)
	refused := e.Outcome == history.Refused && (e.Status == 429 || e.Status == 503)
	connect := e.Outcome == history.Failed && e.Origin != history.Us
	if e.Ref.Attempt == 1 {
		if (refused || connect) && (d.p.firstCut == 0 || e.Begun < d.p.firstCut) {
			d.refusedBefore++
		}
		if e.Cut == nil && e.FirstEvent != 0 && e.Sent != 0 && len(d.firsts) < maxFirsts {
			d.firsts = append(d.firsts, first{e.Sent, e.FirstEvent - e.Sent})
		}
		return
	}
	if prev == history.MoreInput || prev == history.OutcomeNone {
		return
	}
	x := again{ref: e.Ref, sent: e.Sent, refused: refused, connect: connect, text: e.Error}
	switch {
	case x.sent == 0:
		x.sent = e.Begun
	case e.FirstEvent != 0:
		x.server = e.FirstEvent - e.Sent
	case e.Cut != nil:
		x.server = e.Cut.C0 - e.Sent // it took at least so long
	}
	if (refused || connect || x.server > slowBy) && len(d.suspects) < maxFirsts {
		d.suspects = append(d.suspects, x)
	}
}

// stream notes whether a stream's events all came with its end.
func (d *damage) stream(e *history.End) {
	if e.Outcome != history.Delivered || e.Cut != nil || e.Form != "sse" || e.Events < bufferedEvents {
		return
	}
	took := e.Result - e.Sent
	if took < bufferedAfter {
		return
	}
	d.streams++
	if e.Result-e.FirstEvent < took/bufferedPart {
		d.buffered++
	}
}

// connected follows new connections: the first attempts of the load's calls, in
// the order of the calls. In the order of their ends, a call that connected
// before an outage and answered during it would hide it.
func (d *damage) connected(e *history.End) {
	if e.Connected != 0 {
		if d.connect.open {
			d.connect.open, d.connect.to = false, e.Connected
			d.closeOutage()
		}
		return
	}
	if e.Outcome != history.Failed || e.Origin == history.Us {
		return
	}
	if !d.connect.open {
		d.connect = outage{from: e.Begun, open: true}
	}
	d.connect.fails++
}

func (d *damage) closeOutage() {
	if d.connect.fails >= connectsDown && d.connect.length(d.connect.to) > d.down.length(d.down.to) {
		d.down = d.connect
	}
	d.connect = outage{}
}

// advance judges the re-issues whose neighbours have all answered by now.
func (d *damage) advance(now time.Duration) {
	n := 0
	for n < len(d.suspects) && d.suspects[n].sent+near+d.reach < now {
		d.compare(&d.suspects[n])
		n++
	}
	d.suspects = d.suspects[n:]
	old := now - 2*near - 2*d.reach
	n = 0
	for n < len(d.firsts) && d.firsts[n].sent < old {
		n++
	}
	d.firsts = d.firsts[n:]
}

func (d *damage) finish() {
	for i := range d.suspects {
		d.compare(&d.suspects[i])
	}
	if d.connect.open {
		d.connect.open, d.connect.to = false, d.p.last
		d.closeOutage()
	}
}

// compare holds one re-issue against the first attempts sent near it; where
// there are none, against the clean calls.
func (d *damage) compare(x *again) {
	if !x.refused && !x.connect {
		p99 := d.p.cleanServer
		var close []time.Duration
		for _, f := range d.firsts {
			if f.sent >= x.sent-near && f.sent <= x.sent+near {
				close = append(close, f.server)
			}
		}
		if len(close) > 0 {
			slices.Sort(close)
			p99 = close[(len(close)*99+99)/100-1]
		}
		if x.server <= slowTimes*p99 || x.server <= p99+slowBy {
			return
		}
	}
	switch {
	case x.refused:
		d.leakedRefused++
	case x.connect:
		d.leakedConnect++
	default:
		d.leakedSlow++
	}
	if len(d.leaked) < MaxAttempts {
		d.leaked = append(d.leaked, *x)
	}
}
