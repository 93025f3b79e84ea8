package journal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
)

// MaxKey limits the length of a key, in bytes.
const MaxKey = 1 << 10

// Validate returns an error that wraps [ErrInvalid] if no log could accept the batch. Every implementation of Append calls it
// first.
func (b *Batch) Validate() error {
	if b.Conversation == "" {
		return fmt.Errorf("%w: conversation is missing", ErrInvalid)
	}
	if err := event.CheckID("conversation", b.Conversation); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if b.Create && b.Summary == nil {
		return fmt.Errorf("%w: creating a conversation requires a summary", ErrInvalid)
	}
	if b.Expected < 0 {
		return fmt.Errorf("%w: expected seq %d", ErrInvalid, b.Expected)
	}
	for i := range b.Events {
		if want := b.Expected + int64(i) + 1; b.Events[i].Seq != want {
			return fmt.Errorf("%w: event %d has seq %d, want %d", ErrInvalid, i, b.Events[i].Seq, want)
		}
	}
	for _, kv := range b.Keys {
		if kv.Key == "" || len(kv.Key) > MaxKey {
			return fmt.Errorf("%w: key has %d bytes, must have 1 to %d", ErrInvalid, len(kv.Key), MaxKey)
		}
	}
	return nil
}

// Compare orders summaries as a listing does: by Updated, newest first, then by ID, highest first.
func (s *Summary) Compare(o *Summary) int {
	switch {
	case s.Updated > o.Updated, s.Updated == o.Updated && s.ID > o.ID:
		return -1
	case s.Updated == o.Updated && s.ID == o.ID:
		return 0
	}
	return 1
}

// Matches reports whether q selects the summary. It ignores Limit.
func (q *Query) Matches(s *Summary) bool {
	if (q.Tenant != "" && q.Tenant != s.Tenant) || (q.Owner != "" && q.Owner != s.Owner) || (q.Unfinished && len(s.Open) == 0) || (!q.System && strings.HasPrefix(s.ID, SystemPrefix)) {
		return false
	}
	if q.IDs != nil && !slices.Contains(q.IDs, s.ID) {
		return false
	}
	if q.BeforeUpdated == 0 && q.BeforeID == "" {
		return true
	}
	return s.Compare(&Summary{Updated: q.BeforeUpdated, ID: q.BeforeID}) > 0
}
