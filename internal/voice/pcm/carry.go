package pcm

import "io"

// carry joins samples that were split over two chunks.
type carry struct {
	low    byte
	isHalf bool // low is the first byte of a sample
	buffer []byte
}

// join returns the whole samples of what was carried over and chunk, and carries over an odd byte. The result is valid until the next call.
func (c *carry) join(chunk []byte) []byte {
	if len(chunk) == 0 {
		return nil
	}
	if c.isHalf {
		c.buffer = append(append(c.buffer[:0], c.low), chunk...)
		chunk = c.buffer
	}
	n := len(chunk) &^ 1
	if c.isHalf = n < len(chunk); c.isHalf {
		c.low = chunk[n]
	}
	return chunk[:n]
}

// end returns io.ErrUnexpectedEOF if the input ended within a sample.
func (c *carry) end() error {
	if c.isHalf {
		return io.ErrUnexpectedEOF
	}
	return nil
}
