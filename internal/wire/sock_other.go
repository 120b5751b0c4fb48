//go:build unix && !linux

package wire

import (
	"errors"
	"syscall"
)

const loopbackIsNet = false

func bindNoPort(_, _ string, _ syscall.RawConn) error { return nil }

func disconnect(int) error { return errors.ErrUnsupported }

func unacked(int) (int, error) { return 0, nil }

func flushAck(int) {}

func deafen(int) error { return ErrNoVanish }

func drops(int) (int, error) { return 0, errors.ErrUnsupported }
