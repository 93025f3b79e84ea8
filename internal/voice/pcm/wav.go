package pcm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	// headerSize is the length of the headers that AppendHeader writes, in bytes.
	headerSize = 44
	// maxChunk limits a chunk before the samples, in bytes. The largest usual ones are titles and comments.
	maxChunk = 1 << 20
	// unknownSize is the smallest size of samples that is taken for a placeholder: nearly 2 GiB, 12 hours of speech. espeak-ng writes
	// 0x7FFFF000, other programs 0xFFFFFFFF.
	unknownSize = 0x7FFF_0000

	formatPCM        = 1
	formatExtensible = 0xFFFE
)

// Header describes the samples that follow a WAV header.
type Header struct {
	Rate int // in Hz
	// Size is the length of the samples in bytes. It is -1 if the program that wrote the header didn't know it; then the samples end with
	// the stream.
	Size int64
}

// HasHeader reports whether p, of at least 12 bytes, begins like a WAV file.
func HasHeader(p []byte) bool {
	return len(p) >= 12 && string(p[:4]) == "RIFF" && string(p[8:12]) == "WAVE"
}

// ReadHeader reads the header of a WAV file up to the first sample. The error wraps [errHeader] or [ErrFormat], or is that of r.
func ReadHeader(r io.Reader) (Header, error) {
	var h Header
	var b [16]byte
	if err := readFull(r, b[:12]); err != nil {
		return h, err
	}
	if !HasHeader(b[:12]) {
		return h, fmt.Errorf("%w: it begins with %q", errHeader, b[:12])
	}
	for {
		if err := readFull(r, b[:8]); err != nil {
			return h, err
		}
		id, size := string(b[:4]), int64(binary.LittleEndian.Uint32(b[4:]))
		if id == "data" {
			if h.Rate == 0 {
				return h, fmt.Errorf("%w: the samples come before their format", errHeader)
			}
			if h.Size = size; size == 0 || size >= unknownSize {
				h.Size = -1
			}
			return h, nil
		}
		if size > maxChunk {
			return h, fmt.Errorf("%w: a chunk %q of %d bytes", errHeader, id, size)
		}
		padded := size + size&1 // chunks are aligned to 2 bytes
		if id == "fmt " {
			if size < 16 {
				return h, fmt.Errorf("%w: a format of %d bytes", errHeader, size)
			}
			if err := readFull(r, b[:16]); err != nil {
				return h, err
			}
			var err error
			if h.Rate, err = rateOf(b); err != nil {
				return h, err
			}
			padded -= 16
		}
		if _, err := io.CopyN(io.Discard, r, padded); err != nil {
			return h, headerError(err)
		}
	}
}

// rateOf returns the sample rate of a format.
func rateOf(format [16]byte) (int, error) {
	kind, channels := binary.LittleEndian.Uint16(format[0:]), binary.LittleEndian.Uint16(format[2:])
	rate, bits := binary.LittleEndian.Uint32(format[4:]), binary.LittleEndian.Uint16(format[14:])
	if kind != formatPCM && kind != formatExtensible || channels != 1 || bits != 16 {
		return 0, fmt.Errorf("%w: format %#x with %d channels of %d bits", ErrFormat, kind, channels, bits)
	}
	if rate < minRate || rate > maxRate {
		return 0, fmt.Errorf("%w: %d Hz", ErrRate, rate)
	}
	return int(rate), nil
}

// readFull fills p. An input that ends before is an invalid header.
func readFull(r io.Reader, p []byte) error {
	_, err := io.ReadFull(r, p)
	return headerError(err)
}

// headerError turns the end of the input into an error that wraps errHeader.
func headerError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", errHeader, io.ErrUnexpectedEOF)
	}
	return err
}

// AppendHeader appends the header of a WAV file with size bytes of samples.
func AppendHeader(dst []byte, rate, size int) []byte {
	dst = append(dst, "RIFF"...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(headerSize-8+size))
	dst = append(dst, "WAVEfmt "...)
	dst = binary.LittleEndian.AppendUint32(dst, 16)
	dst = binary.LittleEndian.AppendUint16(dst, formatPCM)
	dst = binary.LittleEndian.AppendUint16(dst, 1)              // channel
	dst = binary.LittleEndian.AppendUint32(dst, uint32(rate))   // samples per second
	dst = binary.LittleEndian.AppendUint32(dst, uint32(2*rate)) // bytes per second
	dst = binary.LittleEndian.AppendUint16(dst, 2)              // bytes of a sample
	dst = binary.LittleEndian.AppendUint16(dst, 16)             // bits of a sample
	dst = append(dst, "data"...)
	return binary.LittleEndian.AppendUint32(dst, uint32(size))
}
