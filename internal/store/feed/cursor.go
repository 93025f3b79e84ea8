package feed

import (
	"strconv"
	"strings"
)

// Cursor is a reader's position, "<epoch>.<seq>", or "<epoch>~<term>.<seq>" if the log has terms. To clients it is opaque. The
// empty cursor is that of a new reader.
type Cursor string

// Term is the stretch of a log that was written during one opening of its store. If the log loses its newest events, their
// seqs are used again in a later term.
type Term struct {
	FirstSeq int64 // seq of its first event
	ID       string
}

// NewCursor returns the cursor of a reader that has all up to seq of the log with that epoch, which has no terms.
func NewCursor(epoch string, seq int64) Cursor { return newCursor(epoch, "", seq) }

func newCursor(epoch, term string, seq int64) Cursor {
	b := make([]byte, 0, len(epoch)+len(term)+20)
	if b = append(b, epoch...); term != "" {
		b = append(append(b, '~'), term...)
	}
	return Cursor(strconv.AppendInt(append(b, '.'), seq, 10))
}

// Parse takes a cursor apart, without its term. It reports false if c is empty or malformed.
func (c Cursor) Parse() (epoch string, seq int64, ok bool) {
	epoch, _, seq, ok = c.parse()
	return epoch, seq, ok
}

func (c Cursor) parse() (epoch, term string, seq int64, ok bool) {
	i := strings.LastIndexByte(string(c), '.')
	if i <= 0 {
		return "", "", 0, false
	}
	digits := string(c[i+1:])
	if len(digits) == 0 || len(digits) > 18 || (digits[0] == '0' && len(digits) > 1) {
		return "", "", 0, false
	}
	for _, d := range []byte(digits) {
		if d < '0' || d > '9' {
			return "", "", 0, false
		}
		seq = seq*10 + int64(d-'0')
	}
	epoch, term, hasTerm := strings.Cut(string(c[:i]), "~")
	if epoch == "" || hasTerm && term == "" {
		return "", "", 0, false
	}
	return epoch, term, seq, true
}

// cursor returns the cursor of a reader that has all up to seq.
func (s *state) cursor(seq int64) Cursor { return newCursor(s.epoch, s.term(seq), seq) }

// term returns the id of the term in which the event with that seq was written, or will be.
func (s *state) term(seq int64) string {
	for i := len(s.terms) - 1; i >= 0; i-- {
		if s.terms[i].FirstSeq <= seq {
			return s.terms[i].ID
		}
	}
	return ""
}

// CursorAt returns the cursor of a reader that has all up to seq.
func (f *Feed) CursorAt(seq int64) Cursor {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cursor(seq)
}

// Knows reports whether the cursor's seq means the same event to the log as it did when the cursor was made.
func (f *Feed) Knows(c Cursor) bool {
	epoch, term, seq, ok := c.parse()
	f.mu.Lock()
	defer f.mu.Unlock()
	return ok && epoch == f.epoch && term == f.term(seq)
}
