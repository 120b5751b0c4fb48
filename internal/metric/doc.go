// Package metric holds the metrics of a run: their names and kinds, the figures
// by selection of tags, and the thresholds that a run is held to, in the
// grammar of k6.
//
// The package only counts what it is given. A figure that nothing could have
// moved is unknown, not 0: a counter of judged cuts says nothing while no cut
// was judged.
package metric
