// Package load decides when calls start: pure pacers for the open model (calls
// arrive at a rate, whatever the server does) and the closed model (a fixed
// number of streams), and thin executors that follow them in real time. It
// knows no protocol.
//
// Every start has an intended time that depends on the pacer alone. Lateness of
// the executor shows as the difference between intended and actual start, and
// never moves a later start.
package load
