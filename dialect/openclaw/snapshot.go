package openclaw

import (
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// snapshot is a text that upstream sends again as a whole with each addition. Besides the hash in its state, it keeps a copy of
// the text while it can, because comparing costs a tenth of hashing. The copy is not stored.
type snapshot struct {
	dialect.Snapshot
	last string // all of the text, if it has its length
}

// begins reports whether text begins with the snapshot's text.
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
