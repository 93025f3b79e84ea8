package feed

import (
	"strconv"
	"strings"
)

// Cursor is a reader's position: "<epoch>.<seq>", or "<epoch>~<term>.<seq>" if the log has terms. Clients treat it as opaque. The
// empty cursor is the position of a new reader.
type Cursor string

// Term is the stretch of a log that was written during one opening of its store. If the log loses its newest events, later events
// get the same seqs in a new term.
type Term struct {
	FirstSeq int64 // seq of its first event
	ID       string
}

// NewCursor returns the cursor at seq of a log without terms.
func NewCursor(epoch string, seq int64) Cursor { return newCursor(epoch, "", seq) }

// newCursor formats a cursor. An empty term is omitted, so that logs without terms keep the short form.
func newCursor(epoch, term string, seq int64) Cursor {
	b := make([]byte, 0, len(epoch)+len(term)+20)
	if b = append(b, epoch...); term != "" {
		b = append(append(b, '~'), term...)
	}
	return Cursor(strconv.AppendInt(append(b, '.'), seq, 10))
}

// Parse returns the epoch and the seq of a cursor. It returns false if c is empty or malformed.
func (c Cursor) Parse() (epoch string, seq int64, ok bool) {
	epoch, _, seq, ok = c.parse()
	return epoch, seq, ok
}

// parse is Parse with the term. It refuses other spellings of a number, such as leading zeros, because cursors are compared as
// text.
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

// cursor returns the cursor at seq.
func (s *state) cursor(seq int64) Cursor { return newCursor(s.epoch, s.term(seq), seq) }

// term returns the id of the term to which seq belongs, or will belong. It is empty for a log without terms. The
// search goes backward, because most cursors are in the newest term.
func (s *state) term(seq int64) string {
	for i := len(s.terms) - 1; i >= 0; i-- {
		if s.terms[i].FirstSeq <= seq {
			return s.terms[i].ID
		}
	}
	return ""
}

// CursorAt returns the cursor at seq.
func (f *Feed) CursorAt(seq int64) Cursor {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cursor(seq)
}

// Knows reports whether the cursor's seq still identifies the event that it identified when the cursor was created.
func (f *Feed) Knows(c Cursor) bool {
	epoch, term, seq, ok := c.parse()
	f.mu.Lock()
	defer f.mu.Unlock()
	return ok && epoch == f.epoch && term == f.term(seq)
}
