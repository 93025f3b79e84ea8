package openclaw

import (
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// snapshot is a text of which upstream sends the whole again and again. Beside what its state needs it remembers the
// last text while it can, since comparing costs a tenth of hashing.
type snapshot struct {
	dialect.Snapshot
	last string // all of the text, if it has its length
}

// begins reports whether text is what the snapshot stands for, or goes on from it.
func (s *snapshot) begins(text string) bool {
	if int64(len(s.last)) == s.Len() {
		return strings.HasPrefix(text, s.last)
	}
	next := s.Snapshot
	typ, _ := next.Next(text)
	return typ != event.PartReplace
}

// next makes the snapshot stand for text, and says by which operation: none where the type is empty.
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
