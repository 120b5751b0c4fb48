// Package wire makes connections that can be broken exactly: one attempt is one
// HTTP/1.1 connection that we own down to its socket, plain or TLS, over IPv4
// or IPv6.
//
// An [Endpoint] is a parsed target. A [Dialer] turns it into a [Conn], a few
// connections at a time. [AppendRequest] lays out the request, [Response] takes
// the answer apart.
//
// A stream that waits costs about 4 KiB of user space: a goroutine with its
// first 2 KiB of stack and a few small objects, no buffer. It stays at that
// because all that needs a deeper stack runs elsewhere: dials and sinks by
// themselves, the rest by [Dialer.Deep].
//
// # Who may do what
//
// One goroutine owns a Conn: it writes, calls [Conn.ReadAvailable] in a loop
// and closes it in the end. Anyone else may call [Conn.Wake], and may cut the
// connection while holding its lock:
//
//	c.Lock()
//	cut, err := c.Fin(now, sink)
//	c.Unlock()
//
// ReadAvailable holds the same lock from the moment it takes bytes out of the
// kernel until its sink has returned. So a cut never falls between bytes that
// were read and bytes that were handled, and what a cut drains comes after
// both. The lock may guard the caller's own state of the stream too.
//
// # Cuts
//
// [Conn.Fin], [Conn.Reset], [Conn.HalfClose], [Conn.Stall] and [Conn.Vanish]
// carry out a style and stamp the time just before and just after the system
// call. None of them waits. After any of them but HalfClose, ReadAvailable
// answers [ErrCut]; the owner then closes the connection, at once or, for the
// silent styles, when it is settled. Where the peer turns out to have ended the
// stream before, Fin, Stall and Vanish do nothing and say so.
package wire
