package feed

import (
	"strconv"
	"strings"
)

// Cursor is a reader's position, "<epoch>.<seq>". To clients it is opaque. The empty cursor is that of a new reader.
type Cursor string

// NewCursor returns the cursor of a reader that has all up to seq of the log with that epoch.
func NewCursor(epoch string, seq int64) Cursor {
	return Cursor(strconv.AppendInt(append([]byte(epoch), '.'), seq, 10))
}

// Parse takes a cursor apart. It reports false for the empty one and for what is no cursor.
func (c Cursor) Parse() (epoch string, seq int64, ok bool) {
	i := strings.LastIndexByte(string(c), '.')
	if i <= 0 {
		return "", 0, false
	}
	digits := string(c[i+1:])
	if len(digits) == 0 || len(digits) > 18 || (digits[0] == '0' && len(digits) > 1) {
		return "", 0, false
	}
	for _, d := range []byte(digits) {
		if d < '0' || d > '9' {
			return "", 0, false
		}
		seq = seq*10 + int64(d-'0')
	}
	return string(c[:i]), seq, true
}
