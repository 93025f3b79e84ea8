//go:build !linux

package server

import "net"

// limitUnsent does nothing here: the kernel decides how much it buffers for a reader that stalls.
func limitUnsent(net.Conn) error { return nil }
