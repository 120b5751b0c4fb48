package wire

import (
	"errors"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loopbackIsNet: all of 127.0.0.0/8 is ours without being configured.
const loopbackIsNet = true

// bindNoPort lets the kernel choose the port at connect, when it knows both
// addresses, and not at bind, when it must find one that is free for all.
func bindNoPort(_, _ string, raw syscall.RawConn) error {
	var err error
	cerr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	})
	return errors.Join(cerr, err)
}

// disconnect sends RST at once and leaves the descriptor open: the TCP form of
// connect(AF_UNSPEC), tcp_disconnect in the kernel. Closing with SO_LINGER 0
// puts the same segment on the wire, but Go defers the close of a descriptor
// that another goroutine waits on until that goroutine has run.
func disconnect(fd int) error {
	addr := unix.RawSockaddr{Family: unix.AF_UNSPEC}
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&addr)), unsafe.Sizeof(addr))
	if errno != 0 {
		return errno
	}
	return nil
}

// unacked counts bytes sent that the peer's kernel has not acknowledged.
func unacked(fd int) (int, error) { return unix.IoctlGetInt(fd, unix.SIOCOUTQ) }

// flushAck sends an acknowledgement that the kernel still holds back: later,
// it would be a sign of life.
func flushAck(fd int) { _ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) }

// deafen makes the kernel drop every segment that arrives for the socket,
// before it is acknowledged: a classic BPF program that returns 0 bytes.
func deafen(fd int) error {
	program := [1]unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: 1, Filter: &program[0]})
}

// skMemInfoDrops is SK_MEMINFO_DROPS of linux/sock_diag.h.
const skMemInfoDrops = 8

// drops counts the segments the socket has dropped.
func drops(fd int) (int, error) {
	var info [skMemInfoDrops + 1]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0, errno
	}
	return int(info[skMemInfoDrops]), nil
}
