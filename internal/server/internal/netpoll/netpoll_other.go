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

// Handle can't be used on this system.
type Handle struct{}

// Add returns an error.
func (p *Poller) Add(*Handle, syscall.RawConn, Events, Handler) error { return errors.ErrUnsupported }

// Want returns an error.
func (h *Handle) Want(Events) error { return errors.ErrUnsupported }

// Close does nothing.
func (h *Handle) Close() {}

// TryRead returns an error.
func (h *Handle) TryRead([]byte) (int, error) { return 0, errors.ErrUnsupported }

// TryWrite returns an error.
func (h *Handle) TryWrite([]byte) (int, error) { return 0, errors.ErrUnsupported }
