// Package stream is the life of one attempt, as a pure machine: heads, bytes
// and times go in, actions come out. It owns no socket, starts no goroutine and
// reads no clock, so that one machine serves every shell and every HTTP version
// and can be tested in virtual time.
//
// The shell tells the machine what happened (Connected, Sent, Head, Body,
// BodyEnd, PeerEnded, ReadFailed, Garbled, Failed, Drop) and asks Next what to
// do. A cut is carried out by the shell and reported back with CutDone. An
// attempt ends once: what is told of it afterwards changes nothing.
package stream
