package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/mcpflood/mcpflood/history"
)

func TestOriginOf(t *testing.T) {
	tests := []struct {
		err  error
		want history.Origin
		how  string
	}{
		{nil, history.OriginNone, ""},
		{io.EOF, history.Peer, "eof"},
		{truncated("inside the response head"), history.Peer, ""},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, history.Peer, "reset"},
		{syscall.EPIPE, history.Peer, "reset"},
		{syscall.ENOTCONN, history.Peer, "reset"},
		{protocolErrorf("x"), history.Peer, ""},
		{tls.AlertError(40), history.Peer, ""},
		{fmt.Errorf("x: %w", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), history.Peer, ""},
		{syscall.ECONNREFUSED, history.Network, ""},
		{syscall.ETIMEDOUT, history.Network, ""},
		{syscall.ENETUNREACH, history.Network, ""},
		{syscall.EMFILE, history.Us, ""},
		{syscall.EADDRNOTAVAIL, history.Us, ""},
		{os.ErrDeadlineExceeded, history.Us, ""},
		{context.Canceled, history.Us, ""},
		{ErrWoken, history.Us, ""},
		{net.ErrClosed, history.Us, ""},
		{errors.New("never seen before"), history.Us, ""},
		{ErrCut, history.Chaos, ""},
		{&Error{Op: "dial", Origin: history.Network, Err: io.EOF}, history.Network, "eof"},
		{&Error{Op: "write", Err: syscall.EPIPE}, history.Peer, "reset"},
	}
	for _, tt := range tests {
		if got := OriginOf(tt.err); got != tt.want {
			t.Errorf("OriginOf(%v) = %v, want %v", tt.err, got, tt.want)
		}
		if got := How(tt.err); got != tt.how {
			t.Errorf("How(%v) = %q, want %q", tt.err, got, tt.how)
		}
	}
}
