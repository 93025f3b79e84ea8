package memory

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// maxUnread is how many bytes a pipe holds in one direction, as a socket does. On a connection without a buffer two peers that ping
// each other at the same moment would wait for each other forever, because each reads the other's answer only after it has total its own.
const maxUnread = 64 << 10

// newPipe returns the two ends of a connection in memory. Unlike those of [net.Pipe] they are buffered. They know no deadlines. Goroutines
// that wait for them are durably blocked in the sense of testing/synctest.
func newPipe() (client, server net.Conn) {
	requests, responses := newBuffer(), newBuffer()
	return &end{source: responses, target: requests}, &end{source: requests, target: responses}
}

// end is one end of a pipe. It is safe for concurrent use.
type end struct{ source, target *buffer }

var _ net.Conn = (*end)(nil)

// Read returns io.EOF after the other end was closed and everything was read, and [io.ErrClosedPipe] after this end was closed.
func (e *end) Read(p []byte) (int, error) { return e.source.take(p) }

// Write blocks while the buffer is full. It returns [io.ErrClosedPipe] after one of the ends was closed.
func (e *end) Write(p []byte) (int, error) { return e.target.write(p) }

// Close ends both directions. The other end can still read what was written before.
func (e *end) Close() error {
	e.target.close(false)
	e.source.close(true)
	return nil
}

func (e *end) LocalAddr() net.Addr  { return addr{} }
func (e *end) RemoteAddr() net.Addr { return addr{} }

func (e *end) SetDeadline(t time.Time) error {
	if t.IsZero() {
		return nil
	}
	return os.ErrNoDeadline
}

func (e *end) SetReadDeadline(t time.Time) error  { return e.SetDeadline(t) }
func (e *end) SetWriteDeadline(t time.Time) error { return e.SetDeadline(t) }

type addr struct{}

func (addr) Network() string { return "pipe" }
func (addr) String() string  { return "pipe" }

// buffer is one direction of a pipe.
type buffer struct {
	mu       sync.Mutex
	changed  *sync.Cond
	unread   []byte
	isClosed bool // nothing is written any more
	isCut    bool // nothing is read any more
}

func newBuffer() *buffer {
	b := &buffer{}
	b.changed = sync.NewCond(&b.mu)
	return b
}

func (b *buffer) take(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(p) > 0 && len(b.unread) == 0 && !b.isClosed {
		b.changed.Wait()
	}
	if b.isCut {
		return 0, io.ErrClosedPipe
	}
	if len(p) > 0 && len(b.unread) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.unread)
	b.unread = b.unread[n:]
	b.changed.Broadcast()
	return n, nil
}

func (b *buffer) write(p []byte) (total int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if b.isClosed {
			return total, io.ErrClosedPipe
		}
		n := min(len(p)-total, maxUnread-len(b.unread))
		b.unread = append(b.unread, p[total:total+n]...)
		total += n
		b.changed.Broadcast()
		if total == len(p) {
			return total, nil
		}
		b.changed.Wait()
	}
}

// close ends the direction. If isCut is set, its reader gets an error instead of what is unread.
func (b *buffer) close(isCut bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isClosed, b.isCut = true, b.isCut || isCut
	b.changed.Broadcast()
}
