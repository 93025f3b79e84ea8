// Titles, metadata and summaries of conversations: their limits, and reading one with the decision about access.

package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Limits of a conversation's title, metadata and id, in bytes. They are written with every commit, so they must stay small.
const (
	maxTitle    = 1 << 10
	maxMetadata = 64 << 10
	maxConvID   = 128
)

// system reports whether an id is that of one of the gateway's own logs, which have no routes.
func system(id string) bool { return strings.HasPrefix(id, journal.SystemPrefix) }

// checkMeta returns a *Rejection if a title or metadata are too large.
func checkMeta(title *string, metadata map[string]json.RawMessage) error {
	if title != nil && len(*title) > maxTitle {
		return reject(ReasonTooLarge, "title of %d bytes, at most %d", len(*title), maxTitle)
	}
	size := 0
	for k, v := range metadata {
		size += len(k) + len(v)
	}
	if size > maxMetadata {
		return reject(ReasonTooLarge, "metadata of %d bytes, at most %d", size, maxMetadata)
	}
	return nil
}

// setMeta applies the title and metadata of a conversation.update to a summary. A value that is null deletes its name.
func setMeta(s *journal.Summary, title *string, metadata map[string]json.RawMessage) {
	if title != nil {
		s.Title = *title
	}
	if len(metadata) == 0 {
		return
	}
	// A new map, because readers of the current summary share the old one.
	merged := make(map[string]json.RawMessage, len(s.Metadata)+len(metadata))
	for k, v := range s.Metadata {
		merged[k] = v
	}
	for k, v := range metadata {
		if string(v) == "null" {
			delete(merged, k)
		} else {
			merged[k] = v
		}
	}
	s.Metadata = merged
}

// readSummary returns a conversation that is not being deleted. It doesn't check access. The gateway's own logs are
// never found here, so no route can reach them.
func readSummary(ctx context.Context, j Journal, id string) (journal.Summary, error) {
	if system(id) {
		return journal.Summary{}, ErrNotFound
	}
	s, err := j.Conversation(ctx, id)
	if err != nil {
		return s, JournalError("look up conversation", err)
	}
	// A delete that is committed but not completed counts as done, for all callers.
	if _, err := j.Get(ctx, journalkey.Deleting(id)); err == nil {
		return s, ErrNotFound
	}
	return s, nil
}

// summaryFor returns one summary, if the principal may do action with the conversation. The error is ErrNotFound or
// ErrForbidden if it may not, as Decide says.
func summaryFor(ctx context.Context, j Journal, p Principal, action Action, id string) (journal.Summary, error) {
	s, err := readSummary(ctx, j, id)
	if errors.Is(err, ErrDamaged) { // its owner can't be read, so only an admin learns that it exists
		return s, cmp.Or(Decide(p, action, &journal.Summary{ID: id}), err)
	}
	if err != nil {
		return s, err
	}
	return s, Decide(p, action, &s)
}
