// Package history is the record of a run: the words every part of mcpflood
// shares (styles, phases, origins, verdicts), the vocabulary of events, the
// append-only writer and the reader.
//
// A history is written once, in the order things became known, and judged
// later: the driver, the chaos and the witnesses only append; oracles and cost
// are pure functions of what they find here. The file is JSON Lines, zstd
// compressed, one [Record] a line, flushed every second, so that a run ended by
// kill -9 can still be judged up to its last second.
//
// Every time is a [time.Duration] since the run's start on the driver's
// monotonic clock; keys of JSON numbers end in their unit.
package history

// Schema names the file format; the first record of every history carries it.
const Schema = "mcpflood/history/v1"
