//go:build !linux

package outgoing

import "errors"

// attach returns an error, because there is no poller on this system.
func attach(*Conn, Config) error { return errors.ErrUnsupported }
