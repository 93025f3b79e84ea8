package outgoing

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"github.com/leat-dev/leat/internal/server/internal/netpoll"
)

// socket is the system of a connection that has a file descriptor.
type socket struct {
	conn   net.Conn
	raw    syscall.RawConn
	handle *netpoll.Handle
}

var _ system = (*socket)(nil)

// attach registers a connection with its poller.
func attach(c *Conn, config Config) error {
	sc, ok := config.Conn.(syscall.Conn)
	if !ok {
		return errors.ErrUnsupported
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return fmt.Errorf("outgoing: descriptor: %w", err)
	}
	s := &socket{conn: config.Conn, raw: raw}
	c.system = s
	c.mu.Lock() // an event before Add returns waits until the handle is stored
	defer c.mu.Unlock()
	s.handle, err = config.Poller.Add(raw, netpoll.Readable, func(events netpoll.Events) {
		if events&netpoll.Writable != 0 {
			c.writable()
		}
		if events &^= netpoll.Writable; events != 0 && config.Events != nil {
			config.Events(events)
		}
	})
	return err
}

// writeCall is one write to a descriptor. RawConn takes a function, so the arguments and the results of the write are fields. The pool
// saves the allocation of the function.
type writeCall struct {
	bytes []byte
	n     int
	err   error
	run   func(fd uintptr) bool
}

var writeCalls = sync.Pool{New: func() any {
	call := &writeCall{}
	call.run = func(fd uintptr) bool {
		call.n, call.err = syscall.Write(int(fd), call.bytes)
		for errors.Is(call.err, syscall.EINTR) {
			call.n, call.err = syscall.Write(int(fd), call.bytes)
		}
		return true // don't wait for room
	}
	return call
}}

func (s *socket) write(b []byte) (int, error) {
	call := writeCalls.Get().(*writeCall)
	call.bytes, call.n, call.err = b, 0, nil
	err := s.raw.Write(call.run)
	n, failure := max(call.n, 0), call.err
	call.bytes = nil
	writeCalls.Put(call)
	switch {
	case err != nil:
		return 0, fmt.Errorf("outgoing: write: %w", err)
	case errors.Is(failure, syscall.EAGAIN):
		return 0, errFull
	case failure != nil:
		return 0, fmt.Errorf("outgoing: write: %w", failure)
	}
	return n, nil
}

func (s *socket) await(room bool) error {
	if room {
		return s.handle.Want(netpoll.Readable | netpoll.Writable)
	}
	return s.handle.Want(netpoll.Readable)
}

func (s *socket) close() {
	s.handle.Close()
	_ = s.conn.Close() // whatever it returns, the connection has ended
}
