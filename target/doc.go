// Package target is a reference MCP server (revision 2026-07-28, Streamable
// HTTP) for testing tools that cut streams: it honours hang-ups, tells in its
// log and counters what it did, and can be made to misbehave in known ways.
//
// # The tool
//
// build_report(month, idempotency_key?) does ten steps of one second, sends one
// e-mail to the team (once per user and idempotency key; without a key at every
// call), tidies up for 300 ms and returns its result. It reports progress after
// every step when the request carries a progress token. The response head goes
// out with the first event. The request body is read to its end before the work
// begins, because net/http watches a connection for a hang-up only from there.
//
// A hang-up stops the work at once, also before the first response byte.
// Nothing is written for the request afterwards: the connection is closed
// without so much as an end of the stream.
//
// # The log
//
// A line for each thing that happens, in the order of their times:
//
//	build_report step 3 of 10 id=7 marker=- trace=- user=alice t=2026-12-01T05:04:03.000000000Z
//	build_report effect: e-mail to the team id=… marker=… trace=… user=… t=…
//	build_report finished id=… marker=… trace=… user=… t=…
//	build_report cancelled at step 3 (stream closed) id=… marker=… trace=… user=… t=…
//
// A step is logged when it is done, before its progress is sent; the number of
// a cancelled line counts the steps that were done. marker is the argument
// idempotency_key, else the entry mcpflood.call of the request's baggage; trace
// is the trace id of its traceparent; both are read from _meta, else from HTTP
// headers. user is the text of the bearer token. "-" stands for a missing value; a value that is no
// plain word is quoted as in Go. Times are UTC, RFC 3339, nine digits.
//
// # Counters
//
// GET /metrics: target_in_flight, target_steps_total, target_cancelled_total,
// target_finished_total and target_effects_total, labelled by tool.
//
// # Faults
//
// Faults combine, and each can be limited to a share of the requests, drawn
// from the seed and the JSON-RPC id. What each does, and how a client with
// witnesses could see it:
//
//   - run-on: a hang-up is noticed and ignored. Seen as work, effect and
//     completion after the cut; the in-flight gauge stays up.
//   - slow-stop: the work goes on for a while after a hang-up and stops then.
//     Seen as a few steps after the cut and a late cancelled line.
//   - deaf-before-headers: a hang-up before the response head is out is not
//     heard. Seen as cuts at sent that run on where cuts at mid stop.
//   - deaf-json: hang-ups are not heard when the answer is JSON. Seen as JSON
//     calls that run on where streamed ones stop.
//   - deaf-body: the work begins before the body is read to its end, so that
//     net/http never watches the connection. Seen as every cut running on.
//   - lying-log: the cancelled line comes at once and no line after it, while
//     the work runs to its end. Seen as counters and a gauge that go on.
//   - effect-after: the steps stop at once, the e-mail is sent all the same.
//     Seen as an effect line after the cancelled line. A call that was cut
//     after its e-mail sends no second one.
//   - double-effect: the e-mail goes out after step 2 and its key is not looked
//     at. Seen as two effects for one call that was cut and issued again.
//   - cross-talk: each progress notification of the request also goes out on
//     the stream of another live request, with that one's next event. Seen as a
//     message with a foreign token.
//   - wrong-id: a re-issue (same user and marker; without a marker, same
//     arguments) is answered with the id of the first request. Seen as a result
//     with an id that was not asked. First requests are answered rightly.
//   - spurious: one client's hang-up also ends another live call as cancelled,
//     by a JSON-RPC error, an isError result or a closed stream. Seen as calls
//     that nobody cut and that end as cancelled. The share is that of the
//     hang-ups, drawn from the id of the call that was hung up.
//   - slot-leak: a cancelled call keeps a slot for ever. Calls are not limited
//     otherwise; once all slots are kept, a call waits a while and gets 503.
//     Seen as refused calls and re-issues; discovery still works.
//   - brick: once one client has hung up, every later request gets HTTP 500.
//     Seen as a canary that fails and does not recover.
//   - cancel-any: a notifications/cancelled by POST ends the live call that has
//     the id it names, whoever sends it, in one of the ways of spurious. Seen as
//     a call that ends as cancelled because another client named its id. The
//     share is that of the calls that can be ended so.
//
// An attempt that was deaf when it was cut runs to its end, whatever other
// faults it has; errors of writing to it are ignored. Where several faults
// decide what a heard hang-up does, run-on comes before slow-stop, and
// lying-log only adds its lie to them. A slow-stop that lied stops silently.
package target
