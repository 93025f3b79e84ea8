package eliza

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Updates tells sockets of conversations that were made or deleted, whose title or metadata were changed, or that were
// truncated or imported, on whatever surface that was asked for. It is a watcher of the gateway.
type Updates struct {
	// Send takes the frames, and must not block. It is set before the gateway starts; nil tells nobody.
	Send func(hub.Frame)
}

var _ gateway.Watcher = (*Updates)(nil)

type updateFrame struct {
	Type         string  `json:"type"`
	Conversation updated `json:"conversation"`
}

// updated is a conversation without what not everybody may see who may read it.
type updated struct {
	ID        string `json:"id"`
	Title     string `json:"title"`
	RoomID    string `json:"roomId"`
	CreatedAt string `json:"createdAt"`
	UpdatedAt string `json:"updatedAt"`
}

// Committed implements [gateway.Watcher].
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
	c := updated{ID: s.ID, Title: s.Title, RoomID: s.ID, CreatedAt: iso(s.Created), UpdatedAt: iso(s.Updated)}
	if c.Title == "" {
		c.Title = newChat
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(updateFrame{"conversation-updated", c}); err != nil {
		return // it holds strings only
	}
	// Of several changes a socket that is behind gets the newest.
	u.Send(hub.Frame{Conversation: s.ID, Key: updateKey + s.ID, JSON: bytes.TrimSuffix(b.Bytes(), []byte("\n"))})
}

// updateKey is before a conversation's id in the key of what is told of it last.
const updateKey = "conversation/"

type deletedFrame struct {
	Type           string `json:"type"`
	ConversationID string `json:"conversationId"`
}

// deleted tells those who could read a conversation that it is gone. It takes the place of what they have not been told of it.
func (u *Updates) deleted(s *journal.Summary) {
	b, err := json.Marshal(deletedFrame{"conversation-deleted", s.ID})
	if err != nil {
		return // it holds strings only
	}
	was := &journal.Summary{ID: s.ID, Tenant: s.Tenant, Owner: s.Owner, Grants: slices.Clone(s.Grants)}
	u.Send(hub.Frame{Gone: was, Key: updateKey + s.ID, JSON: b})
}

func ends(events []event.Event) bool {
	for i := range events {
		if events[i].Type == event.ConversationDelete {
			return true
		}
	}
	return false
}

func changes(events []event.Event) bool {
	for i := range events {
		if t := events[i].Type; t == event.ConversationUpdate || t == event.ConversationTruncate {
			return true
		}
	}
	return false
}
