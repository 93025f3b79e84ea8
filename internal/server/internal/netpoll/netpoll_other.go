//go:build !linux || goroutines

package netpoll

import (
	"errors"
	"syscall"
)

// IsSupported reports whether connections can be polled.
const IsSupported = false

// Poller has no handles on this system.
type Poller struct{}

// Handle can't be created on this system.
type Handle struct{}

// Add returns an error.
func (p *Poller) Add(syscall.RawConn, Events, func(Events)) (*Handle, error) {
	return nil, errors.ErrUnsupported
}

// Want returns an error.
func (h *Handle) Want(Events) error { return errors.ErrUnsupported }

// Close does nothing.
func (h *Handle) Close() {}

// TryRead returns an error.
func TryRead(syscall.RawConn, []byte) (int, error) { return 0, errors.ErrUnsupported }
