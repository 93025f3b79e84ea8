// Frames about changes of conversations for clients that list them: created, renamed, truncated, waiting for a person, deleted.

package eliza

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Updates sends sockets a frame when a conversation is created, deleted, renamed, truncated or imported, or its metadata
// change. It is a watcher of the gateway.
type Updates struct {
	// Send delivers a frame and must not block. Set it before the gateway starts. If it is nil, frames are dropped.
	Send func(hub.Frame)
}

var _ gateway.Watcher = (*Updates)(nil)

type updateFrame struct {
	Type         string  `json:"type"`
	Conversation updated `json:"conversation"`
}

// updated is a conversation without the fields that some of its readers may not see.
type updated struct {
	ID        string `json:"id"`
	Title     string `json:"title"`
	RoomID    string `json:"roomId"`
	CreatedAt string `json:"createdAt"`
	UpdatedAt string `json:"updatedAt"`
	IsWaiting bool   `json:"waiting,omitempty"`
	// The rest of the metadata is left out, because it can be large.
	Pinned   bool `json:"pinned,omitempty"`
	Archived bool `json:"archived,omitempty"`
}

// Keys of the metadata by which clients sort and hide conversations. The gateway only passes them on.
const (
	metaPinned   = "pinned"
	metaArchived = "archived"
)

// Committed implements [gateway.Watcher].
//
// It runs in the conversation's writer with every commit, so it must not block. If the commit deletes the conversation, only the
// deletion is sent. Unlisted conversations are in no client's list, so their changes are of no use to it.
func (u *Updates) Committed(s *journal.Summary, events []event.Event) {
	if u.Send == nil {
		return
	}
	if ends(events) {
		u.deleted(s)
		return
	}
	if s.Unlisted || !changes(events) {
		return
	}
	c := updated{ID: s.ID, Title: s.Title, RoomID: s.ID, CreatedAt: iso(s.Created), UpdatedAt: iso(s.Updated), IsWaiting: len(s.WaitingTurns) > 0, Pinned: isTrue(s, metaPinned), Archived: isTrue(s, metaArchived)}
	c.Title = cmp.Or(c.Title, newChat)
	b, err := server.Marshal(updateFrame{"conversation-updated", c})
	if err != nil {
		return // impossible: it contains only strings and booleans
	}
	// A socket that is behind gets only the newest of several changes.
	u.Send(hub.Frame{Conversation: s.ID, Key: updateKey + s.ID, JSON: b})
}

// isTrue reports whether a key of a conversation's metadata is true.
func isTrue(s *journal.Summary, key string) bool { return string(s.Metadata[key]) == "true" }

// updateKey is the prefix of the hub key of a conversation's newest change.
const updateKey = "conversation/"

type deletedFrame struct {
	Type           string `json:"type"`
	ConversationID string `json:"conversationId"`
}

// deleted sends the deletion to all users who could read the conversation. It replaces a change that is still queued.
//
// The summary is copied, because the writer may change it while the frame is queued. The copy has only
// what the hub needs to decide who could read the conversation.
func (u *Updates) deleted(s *journal.Summary) {
	b, err := json.Marshal(deletedFrame{"conversation-deleted", s.ID})
	if err != nil {
		return // impossible: it contains only strings
	}
	was := &journal.Summary{ID: s.ID, Tenant: s.Tenant, Owner: s.Owner, Grants: slices.Clone(s.Grants)}
	u.Send(hub.Frame{Deleted: was, Key: updateKey + s.ID, JSON: b})
}

// ends reports whether the commit deleted the conversation.
func ends(events []event.Event) bool {
	for i := range events {
		if events[i].Type == event.ConversationDelete {
			return true
		}
	}
	return false
}

// changes reports whether the commit changed what a list of conversations shows.
func changes(events []event.Event) bool {
	for i := range events {
		switch events[i].Type {
		case event.ConversationUpdate, event.ConversationTruncate, event.TurnWait, event.TurnResume:
			return true
		}
	}
	return false
}
