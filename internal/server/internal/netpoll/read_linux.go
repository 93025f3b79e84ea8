//go:build !goroutines

package netpoll

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
)

// readCall is one read of a descriptor. RawConn takes a function, so the arguments and the results of the read are fields. The pool
// saves the allocation of the function.
type readCall struct {
	bytes []byte
	n     int
	err   error
	run   func(fd uintptr) bool
}

var readCalls = sync.Pool{New: func() any {
	call := &readCall{}
	call.run = func(fd uintptr) bool {
		call.n, call.err = syscall.Read(int(fd), call.bytes)
		for errors.Is(call.err, syscall.EINTR) {
			call.n, call.err = syscall.Read(int(fd), call.bytes)
		}
		return true // don't wait for bytes
	}
	return call
}}

// TryRead reads the bytes that have arrived, at most len(b). If none have arrived, the error is ErrEmpty, and at the end of the connection
// [io.EOF].
func TryRead(conn syscall.RawConn, b []byte) (int, error) {
	call := readCalls.Get().(*readCall)
	call.bytes, call.n, call.err = b, 0, nil
	err := conn.Read(call.run)
	n, failure := call.n, call.err
	call.bytes = nil
	readCalls.Put(call)
	switch {
	case err != nil:
		return 0, fmt.Errorf("netpoll: read: %w", err)
	case errors.Is(failure, syscall.EAGAIN):
		return 0, ErrEmpty
	case failure != nil:
		return 0, fmt.Errorf("netpoll: read: %w", failure)
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return n, nil
}
