//go:build !unix

package witness

import "io"

func newWaiter(r io.Reader) waiter { return newPumped(r) }
