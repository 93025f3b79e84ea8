//go:build !linux

package outgoing

import "errors"

// attach returns an error, because this system lacks a poller.
func attach(*Conn, Config) error { return errors.ErrUnsupported }
