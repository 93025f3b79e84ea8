package speech

import (
	"io"
	"sync"
)

// buffer is a pipe between two goroutines that has room for size bytes. So a process that is faster than its listener doesn't have to
// stay for as long as the listener.
type buffer struct {
	size int

	mu sync.Mutex
	// changed uses mu. It is signaled if one of the fields below has changed.
	changed sync.Cond
	data    []byte
	// end is what Read returns after the data. It is nil while the writer writes.
	end error
	// closed is why the reader has stopped. It is nil while the reader reads.
	closed error
}

// newBuffer returns an empty buffer.
func newBuffer(size int) *buffer {
	b := &buffer{size: size}
	b.changed.L = &b.mu
	return b
}

// Write implements [io.Writer]. It blocks while the buffer is full.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	count := 0
	for len(p) > 0 {
		for b.closed == nil && len(b.data) >= b.size {
			b.changed.Wait()
		}
		if b.closed != nil {
			return count, b.closed
		}
		n := min(len(p), b.size-len(b.data))
		b.data = append(b.data, p[:n]...)
		p, count = p[n:], count+n
		b.changed.Broadcast()
	}
	return count, nil
}

// finish ends the data: after the last byte, Read returns err.
func (b *buffer) finish(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end = err
	b.changed.Broadcast()
}

// abort drops the data. Pending and later calls of Read and Write return err.
func (b *buffer) abort(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed == nil {
		b.data, b.closed = nil, err
	}
	b.changed.Broadcast()
}

// Read implements [io.Reader]. It blocks while the buffer is empty.
func (b *buffer) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.closed == nil && len(b.data) == 0 && b.end == nil {
		b.changed.Wait()
	}
	switch {
	case b.closed != nil:
		return 0, b.closed
	case len(b.data) == 0:
		return 0, b.end
	}
	n := copy(p, b.data)
	b.data = b.data[n:]
	b.changed.Broadcast()
	return n, nil
}

var _ io.ReadWriter = (*buffer)(nil)
