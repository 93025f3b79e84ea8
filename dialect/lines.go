package dialect

import (
	"bytes"
	"errors"
	"fmt"
)

// MaxLine is the limit of an NDJSON line, in bytes. It equals the limit of an SSE event.
const MaxLine = 32 << 20

// ErrTooLong reports a line above the limit.
var ErrTooLong = errors.New("dialect: line too long")

// lineReader splits a stream of bytes into lines. How the stream is divided into calls of feed changes nothing. Lines end in LF or
// CRLF; blank lines are skipped.
type lineReader struct {
	limit   int
	total   int64 // bytes of all calls of feed before this one
	offset  int64 // end of the last line
	partial []byte
}

// feed calls emit for each line that p completes. The line is valid until emit returns. If emit fails, feed stops, and offset stays
// before the failed line.
func (l *lineReader) feed(p []byte, emit func([]byte) error) error {
	pos := 0
	for pos < len(p) {
		i := bytes.IndexByte(p[pos:], '\n')
		end := pos + i
		if i < 0 {
			end = len(p)
		}
		if len(l.partial)+end-pos > l.limit {
			return fmt.Errorf("%w: more than %d bytes", ErrTooLong, l.limit)
		}
		if i < 0 {
			l.partial = append(l.partial, p[pos:]...)
			break
		}
		line := p[pos:end]
		if len(l.partial) > 0 {
			l.partial = append(l.partial, line...)
			line = l.partial
		}
		pos = end + 1
		before := l.offset
		l.offset = l.total + int64(pos)
		if line = trimLine(line); len(line) > 0 {
			if err := emit(line); err != nil {
				l.offset = before
				return err
			}
		}
		if l.partial = l.partial[:0]; cap(l.partial) > 64<<10 {
			l.partial = nil // release the memory of a huge line, because a stream may last for hours
		}
	}
	l.total += int64(len(p))
	return nil
}

// trimLine removes white space and a byte order mark, with which some servers begin a body and which isn't JSON.
func trimLine(line []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(line, bom))
}

var bom = []byte("\xef\xbb\xbf")
