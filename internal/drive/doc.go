// Package drive is the shell that carries stream machines over connections: one
// goroutine a call, which waits without a buffer and on its smallest stack. It
// dials, writes, feeds what arrives to the machine, carries out the cuts the
// machine asks for, holds the sockets of silent ones, and issues lost calls
// again.
package drive
