//go:build !goroutines

package netpoll

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
)

// call is one read or write of a descriptor. RawConn takes a function, so the arguments and the results are fields. The pool saves the
// allocation of the function.
type call struct {
	do    func(fd int, b []byte) (int, error)
	bytes []byte
	n     int
	err   error
	run   func(fd uintptr) bool
}

var calls = sync.Pool{New: func() any {
	c := &call{}
	c.run = func(fd uintptr) bool {
		c.n, c.err = c.do(int(fd), c.bytes)
		for errors.Is(c.err, syscall.EINTR) {
			c.n, c.err = c.do(int(fd), c.bytes)
		}
		return true // don't wait
	}
	return c
}}

// try runs a system call by a method of the connection, once and without waiting. If the call would have to wait, the error is ErrBlocked.
func try(method func(func(fd uintptr) bool) error, do func(int, []byte) (int, error), b []byte) (int, error) {
	c := calls.Get().(*call)
	c.do, c.bytes, c.n, c.err = do, b, 0, nil
	err := method(c.run)
	n, failure := max(c.n, 0), c.err
	c.bytes = nil
	calls.Put(c)
	switch {
	case err != nil:
		return 0, err
	case errors.Is(failure, syscall.EAGAIN):
		return 0, ErrBlocked
	}
	return n, failure
}

// TryRead reads the bytes that have arrived, at most len(b). If none have arrived, the error is ErrBlocked, and at the end of the connection
// [io.EOF].
func (h *Handle) TryRead(b []byte) (int, error) {
	n, err := try(h.conn.Read, syscall.Read, b)
	switch {
	case err != nil && !errors.Is(err, ErrBlocked):
		return 0, fmt.Errorf("netpoll: read: %w", err)
	case err == nil && n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return n, err
}

// TryWrite writes as many bytes as the system has room for. If it has none, the error is ErrBlocked.
func (h *Handle) TryWrite(b []byte) (int, error) {
	n, err := try(h.conn.Write, syscall.Write, b)
	if err != nil && !errors.Is(err, ErrBlocked) {
		return 0, fmt.Errorf("netpoll: write: %w", err)
	}
	return n, err
}
