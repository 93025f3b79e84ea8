//go:build !linux

package outgoing

import "errors"

// New returns an error, because this system lacks a poller.
func New(Config) (*Conn, error) { return nil, errors.ErrUnsupported }
