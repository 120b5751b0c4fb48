// Package results is the run directory: what a run leaves behind, and the
// judgement of it.
//
//	manifest.json      the recipe: config, seed, nonce, versions, era, budgets
//	history.jsonl.zst  the record of the run (package history)
//	summary.json       what it came to, schema mcpflood/summary/v1
//	report.txt         the same for people
//	times.hlog         times by interval, for HdrHistogram's tools
//
// [Judge] turns the first two into the rest. A run calls it at its end, and
// anyone may call it again later: the same history gives the same bytes.
package results
