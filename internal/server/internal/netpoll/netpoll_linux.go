package netpoll

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxEvents is how many events are taken from the system at once.
const maxEvents = 128

// Poller notices events of connections. All methods are safe for concurrent use.
type Poller struct {
	epoll *os.File
	raw   syscall.RawConn
	done  chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	handles []*Handle // by the number of the file
	serial  int32     // of the last handle
}

// Handle is a connection known to a poller.
type Handle struct {
	p      *Poller
	conn   syscall.RawConn
	fn     func(Events)
	fd     int32
	serial int32 // tells an event of an earlier connection with the same file number
	want   Events
}

// New starts a poller. Call Close to end it.
func New() (*Poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("netpoll: create: %w", err)
	}
	// Only a file that doesn't block is registered with Go's poller.
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(fmt.Errorf("netpoll: create: %w", err), unix.Close(fd))
	}
	p := &Poller{epoll: os.NewFile(uintptr(fd), "epoll"), done: make(chan struct{})}
	if p.raw, err = p.epoll.SyscallConn(); err != nil {
		return nil, errors.Join(fmt.Errorf("netpoll: create: %w", err), p.epoll.Close())
	}
	go p.run()
	return p, nil
}

// Close ends the poller and waits for its goroutine. It must not be called by a handler.
func (p *Poller) Close() error {
	err := p.epoll.Close()
	<-p.done
	return err
}

// run calls the handlers until the poller is closed.
func (p *Poller) run() {
	defer close(p.done)
	events := make([]unix.EpollEvent, maxEvents)
	for {
		var n int
		var failure error
		err := p.raw.Read(func(fd uintptr) bool {
			n, failure = unix.EpollWait(int(fd), events, 0)
			return n > 0 || failure != nil && !errors.Is(failure, unix.EINTR)
		})
		if err != nil || failure != nil {
			return // closed
		}
		for i := range events[:n] {
			p.dispatch(&events[i])
		}
	}
}

// dispatch calls the handler of an event.
func (p *Poller) dispatch(e *unix.EpollEvent) {
	p.mu.Lock()
	var h *Handle
	if int(e.Fd) < len(p.handles) {
		h = p.handles[e.Fd]
	}
	p.mu.Unlock()
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
	h.fn(events)
}

// Add registers a connection. fn is called for the events in want and for Closed; events that have happened already are reported as
// well.
func (p *Poller) Add(conn syscall.RawConn, want Events, fn func(Events)) (*Handle, error) {
	h := &Handle{p: p, conn: conn, fn: fn, want: want}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serial++
	h.serial = p.serial
	// With the lock held, no event of the connection is dispatched before its handle is stored.
	if err := h.control(unix.EPOLL_CTL_ADD); err != nil {
		return nil, fmt.Errorf("netpoll: add: %w", err)
	}
	for int(h.fd) >= len(p.handles) {
		p.handles = append(p.handles, make([]*Handle, max(64, len(p.handles)/2))...)
	}
	p.handles[h.fd] = h
	return h, nil
}

// Want replaces the events that are reported. An event that has happened already is reported again.
func (h *Handle) Want(want Events) error {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	if h.p.handles[h.fd] != h {
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
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	if h.p.handles[h.fd] != h {
		return
	}
	h.p.handles[h.fd] = nil
	_ = h.control(unix.EPOLL_CTL_DEL) // fails if the poller or the connection was closed, which ends the events too
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
	var err error
	return errors.Join(h.p.raw.Control(func(epoll uintptr) {
		cerr := h.conn.Control(func(fd uintptr) {
			h.fd, event.Fd = int32(fd), int32(fd)
			err = unix.EpollCtl(int(epoll), op, int(fd), &event)
		})
		err = errors.Join(err, cerr)
	}), err)
}
