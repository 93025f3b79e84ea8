//go:build !goroutines

package netpoll

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// IsSupported reports whether connections can be polled.
const IsSupported = true

// maxEvents is how many events are taken from the system at once.
const maxEvents = 128

// Poller notices events of connections. The zero value is ready to use. All methods are safe for concurrent use. A poller has its
// epoll instance and its goroutine only while it has handles, so it needs no end.
type Poller struct {
	mu       sync.Mutex
	instance *instance
	// Of the last handle.
	serial int32
}

// instance is an epoll instance and the handles that it knows. The mutex of the poller guards the handles.
type instance struct {
	p    *Poller
	file *os.File
	raw  syscall.RawConn
	// By the number of the file.
	handles []*Handle
	count   int
}

func (in *instance) lock()   { in.p.mu.Lock() }
func (in *instance) unlock() { in.p.mu.Unlock() }

// Handle is a connection that a poller may know. It may be part of the value that owns the connection, but must not be copied.
type Handle struct {
	in      *instance
	conn    syscall.RawConn
	handler Handler
	fd      int32
	// Tells an event of an earlier connection with the same file number.
	serial int32
	want   Events
}

// start creates an epoll instance and its goroutine.
func (p *Poller) start() (*instance, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	// Only a file that doesn't block is registered with Go's poller.
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	in := &instance{p: p, file: os.NewFile(uintptr(fd), "epoll")}
	if in.raw, err = in.file.SyscallConn(); err != nil {
		return nil, errors.Join(err, in.file.Close())
	}
	go in.run() // ends when the last handle is closed
	return in, nil
}

// run calls the handlers until the instance is closed.
func (in *instance) run() {
	events := make([]unix.EpollEvent, maxEvents)
	for {
		var n int
		var failure error
		err := in.raw.Read(func(fd uintptr) bool {
			n, failure = unix.EpollWait(int(fd), events, 0)
			return n > 0 || failure != nil && !errors.Is(failure, unix.EINTR)
		})
		if err != nil || failure != nil {
			return // closed
		}
		for i := range events[:n] {
			in.dispatch(&events[i])
		}
	}
}

// dispatch calls the handler of an event.
func (in *instance) dispatch(e *unix.EpollEvent) {
	in.lock()
	var h *Handle
	if int(e.Fd) < len(in.handles) {
		h = in.handles[e.Fd]
	}
	in.unlock()
	if h == nil || h.serial != e.Pad {
		return // closed meanwhile
	}
	var events Events
	if e.Events&unix.EPOLLIN != 0 {
		events |= Readable
	}
	if e.Events&unix.EPOLLOUT != 0 {
		events |= Writable
	}
	if e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		events |= Closed
	}
	h.handler.OnEvents(events)
}

// Add registers a connection, with a handle that is in no use. The handler is called for the events in want and for Closed; events that have
// happened already are reported as well.
func (p *Poller) Add(h *Handle, conn syscall.RawConn, want Events, handler Handler) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	in := p.instance
	if in == nil {
		var err error
		if in, err = p.start(); err != nil {
			return fmt.Errorf("netpoll: start: %w", err)
		}
		p.instance = in
	}
	p.serial++
	*h = Handle{in: in, conn: conn, handler: handler, want: want, serial: p.serial}
	// With the lock held, no event of the connection is dispatched before its handle is stored.
	if err := h.control(unix.EPOLL_CTL_ADD); err != nil {
		in.release()
		return fmt.Errorf("netpoll: add: %w", err)
	}
	for int(h.fd) >= len(in.handles) {
		in.handles = append(in.handles, make([]*Handle, max(64, len(in.handles)/2))...)
	}
	if in.handles[h.fd] == nil {
		in.count++
	} // otherwise the earlier connection was closed before its handle, whose Close has no effect from now on
	in.handles[h.fd] = h
	return nil
}

// release ends an instance without handles. The caller holds the mutex.
func (in *instance) release() {
	if in.count == 0 {
		in.p.instance = nil
		_ = in.file.Close() // run returns
	}
}

// Want replaces the events that are reported. An event that has happened already is reported again.
func (h *Handle) Want(want Events) error {
	h.in.lock()
	defer h.in.unlock()
	if h.in.handles[h.fd] != h {
		return nil // closed
	}
	h.want = want
	if err := h.control(unix.EPOLL_CTL_MOD); err != nil {
		return fmt.Errorf("netpoll: modify: %w", err)
	}
	return nil
}

// Close ends the events. It may be called twice.
func (h *Handle) Close() {
	h.in.lock()
	defer h.in.unlock()
	if h.in.handles[h.fd] != h {
		return
	}
	h.in.handles[h.fd] = nil
	_ = h.control(unix.EPOLL_CTL_DEL) // fails if the connection was closed, which ends the events too
	h.in.count--
	h.in.release()
}

// control changes the registration of the connection.
func (h *Handle) control(op int) error {
	event := unix.EpollEvent{Events: unix.EPOLLRDHUP | unix.EPOLLET, Pad: h.serial}
	if h.want&Readable != 0 {
		event.Events |= unix.EPOLLIN
	}
	if h.want&Writable != 0 {
		event.Events |= unix.EPOLLOUT
	}
	var closed, failed error
	err := h.in.raw.Control(func(epoll uintptr) {
		closed = h.conn.Control(func(fd uintptr) {
			h.fd, event.Fd = int32(fd), int32(fd)
			failed = unix.EpollCtl(int(epoll), op, int(fd), &event)
		})
	})
	return errors.Join(err, closed, failed)
}
