// Package chaos is the seeded plan of cuts: which attempts are broken, how
// (style) and when (moment), as a pure function of the seed and the attempt's
// number.
//
// A plan is a list of clauses, STYLE@MOMENT[:SHARE] each. Moments and clauses
// have one text form: what String prints, the parser reads back to the same
// value. A plan is resolved for one attempt at a time by [Plan.Cut]; order of
// arrival plays no part, so the same seed gives the same cuts on any machine.
package chaos
