package openclaw

import (
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// tight identifies a text regardless of its white space, by its length without it and an FNV-1a hash. The gateway trims and
// folds white space in final frames, so the streamed and the final form of a text can only be compared this way. The state
// stores it instead of the text.
type tight struct {
	N   int    `json:"n,omitempty"`
	Sum uint64 `json:"sum,omitempty"`
}

const (
	// These are the parameters of the 64-bit FNV-1a hash. Its value is stored, so they must not change.
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
	// space are the bytes that tight ignores, which isSpace recognizes too.
	space = " \t\r\n\v\f"
)

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// add appends s to the text.
func (t *tight) add(s string) {
	if t.N == 0 {
		t.Sum = fnvOffset
	}
	for i := range len(s) {
		if c := s[i]; !isSpace(c) {
			t.Sum = (t.Sum ^ uint64(c)) * fnvPrime
			t.N++
		}
	}
}

// begins reports whether s begins with the text, and the offset in s at which the text ends. The empty text begins
// every text, at offset 0. It reads s no further than to that end.
func (t tight) begins(s string) (end int, ok bool) {
	if t.N == 0 {
		return 0, true
	}
	if len(s) < t.N {
		return 0, false
	}
	var have tight
	for i := 0; i < len(s); i++ {
		if isSpace(s[i]) {
			continue
		}
		have.add(s[i : i+1])
		if have.N == t.N {
			return i + 1, have.Sum == t.Sum
		}
	}
	return 0, false
}

// is reports whether s is the text.
func (t tight) is(s string) bool {
	end, ok := t.begins(s)
	return ok && strings.Trim(s[end:], space) == ""
}

// snapshot is a text that upstream sends again as a whole with each addition. Besides the hash in its state, it keeps a copy of
// the text while it can, because comparing costs a tenth of hashing. The copy is not stored.
type snapshot struct {
	dialect.Snapshot
	// last is the whole text, if it has its length. Otherwise it is stale, as after Restore, and only the hash
	// counts.
	last string
}

// begins reports whether text begins with the snapshot's text. It doesn't change the snapshot.
func (s *snapshot) begins(text string) bool {
	if int64(len(s.last)) == s.Len() {
		return strings.HasPrefix(text, s.last)
	}
	next := s.Snapshot
	typ, _ := next.Next(text)
	return typ != event.PartReplace
}

// next sets the snapshot to text and returns the event that makes the change visible. The type is empty if nothing has changed.
func (s *snapshot) next(text string) (event.Type, string) {
	if int64(len(s.last)) != s.Len() || !strings.HasPrefix(text, s.last) {
		s.last = text
		return s.Next(text)
	}
	suffix := text[len(s.last):]
	s.last = text
	if suffix == "" {
		return "", ""
	}
	s.Append(suffix)
	return event.PartAppend, suffix
}
