package agent

import (
	"errors"
	"io"
	"slices"
)

const (
	// chunkSize is how large a chunk grows before another one begins, in bytes.
	chunkSize = 1 << 20
	// firstRead is how many bytes of a message are read at first; most messages are small.
	firstRead = 512
)

// chunks collects the bytes of a frame until it is whole. A slice that grew with a large frame would leave five times its size as
// garbage.
type chunks struct {
	full [][]byte
	last []byte
	size int
}

func (c *chunks) add(b []byte) {
	if len(c.last) > 0 && len(c.last)+len(b) > chunkSize {
		c.next()
	}
	c.last = append(c.last, b...)
	c.size += len(b)
}

// readFrom adds what one call of Read gives.
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

// take returns all that was added, and starts over. The bytes are valid until more is added.
func (c *chunks) take() []byte {
	all := c.last
	c.last, c.size = c.last[:0], 0
	if c.full != nil {
		all = slices.Concat(append(c.full, all)...)
		c.full, c.last = nil, nil
	}
	return all
}

// ReadMessage reads a message of a socket to its end. What the reader holds of the budget for large frames becomes the message's
// size; it returns ErrBusy if there is no room for more, and then the rest of the message is not read.
func ReadMessage(r io.Reader, hold *Hold) ([]byte, error) {
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
