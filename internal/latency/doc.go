// Package latency records times: HDR histograms from a microsecond to a day at
// three significant digits, with a count of censored samples beside, and an
// interval log that HdrHistogram's own tools read.
//
// Nothing is ever lost: a sample out of range is kept at the range's edge and
// counted, a censored sample (the real time is at least so long) stays in every
// statistic it touches, as a lower bound.
package latency
