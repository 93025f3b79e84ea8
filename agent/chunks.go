package agent

import (
	"errors"
	"io"
	"slices"
)

const (
	// chunkSize is the maximum size of a chunk, in bytes.
	chunkSize = 1 << 20
	// firstRead is the size of the first read of a message, in bytes. Most messages are small.
	firstRead = 512
)

// chunks collects the bytes of a frame until it is complete. A single growing slice would leave five times the size of a large frame as
// garbage.
type chunks struct {
	full [][]byte // chunks of about chunkSize
	last []byte   // the chunk that is being filled
	size int      // bytes of all chunks
}

func (c *chunks) add(b []byte) {
	if len(c.last) > 0 && len(c.last)+len(b) > chunkSize {
		c.next()
	}
	c.last = append(c.last, b...)
	c.size += len(b)
}

// readFrom adds the bytes of one call of r.Read.
func (c *chunks) readFrom(r io.Reader) error {
	if len(c.last) == cap(c.last) {
		if len(c.last) >= chunkSize {
			c.next()
		} else {
			c.last = slices.Grow(c.last, firstRead)
		}
	}
	n, err := r.Read(c.last[len(c.last):cap(c.last)])
	c.last = c.last[:len(c.last)+n]
	c.size += n
	return err
}

func (c *chunks) next() { c.full, c.last = append(c.full, c.last), make([]byte, 0, chunkSize) }

// take returns all bytes and empties c. The bytes are valid until the next call of add or readFrom.
func (c *chunks) take() []byte {
	data := c.last
	c.last, c.size = c.last[:0], 0
	if c.full != nil {
		data = slices.Concat(append(c.full, data)...)
		c.full, c.last = nil, nil
	}
	return data
}

// ReadMessage reads a message of a socket to its end and sets the reservation to its size. If the budget for large frames is
// exhausted, it returns ErrBusy without reading the rest of the message.
func ReadMessage(r io.Reader, hold *Reservation) ([]byte, error) {
	hold.Release()
	var c chunks
	for {
		err := c.readFrom(r)
		if err == nil {
			err = hold.Resize(c.size)
		}
		if errors.Is(err, io.EOF) {
			return c.take(), nil
		}
		if err != nil {
			return nil, err
		}
	}
}
