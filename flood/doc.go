// Package flood composes a run: from a [Config] through discovery, clean calls,
// the load with its cuts, and the settling of evidence, to a judged run
// directory. It decides nothing about the server: everything is recorded first
// and judged afterwards from the record.
package flood
