package pcm

import "io"

// chunkSize is the length of a read from the source, in bytes: 85 ms at 24,000 Hz, which is less than the latency that it may add.
const chunkSize = 4 << 10

// Reader reads PCM at one rate and returns it at another. A read returns an even number of bytes, unless the caller's buffer has room for
// only one. It isn't safe for concurrent use.
type Reader struct {
	src       io.Reader
	resampler *resampler
	chunk     []byte
	buffer    []byte // memory of the output
	pending   []byte // the part of buffer that isn't read yet
	err       error  // after pending
}

// NewReader returns a reader of src. After an error of src it returns the samples before the error, and then the error.
func NewReader(src io.Reader, from, to int) (*Reader, error) {
	r, err := newResampler(from, to)
	if err != nil {
		return nil, err
	}
	return &Reader{src: src, resampler: r, chunk: make([]byte, chunkSize)}, nil
}

// Read implements [io.Reader].
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(r.pending) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		n, err := r.src.Read(r.chunk)
		r.buffer = r.resampler.Append(r.buffer[:0], r.chunk[:n])
		if err == io.EOF {
			var flushErr error
			if r.buffer, flushErr = r.resampler.Flush(r.buffer); flushErr != nil {
				err = flushErr
			}
		}
		r.err, r.pending = err, r.buffer
	}
	if len(p) > 1 {
		p = p[:len(p)&^1]
	}
	n := copy(p, r.pending)
	r.pending = r.pending[n:]
	return n, nil
}

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
