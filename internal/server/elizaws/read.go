package elizaws

import (
	"encoding/json"
	"errors"

	"github.com/leat-dev/leat/internal/gateway"
)

// readFrame is the user's read position in a conversation, whichever device changed it. It is Leat's addition; Eliza's clients
// ignore it.
type readFrame struct {
	Type           string `json:"type"`
	ConversationID string `json:"conversationId"`
	Unread         bool   `json:"unread"`
	Read           int64  `json:"read"`
}

// sendPositions sends changes of read positions until the socket ends. A message in a conversation that the user has open, on
// this socket or another one, is read at once.
//
// Positions merges notifications, so a slow socket gets the newest position of a conversation only. A
// position that was sent before is not repeated. It ends with the connection and closes f.
func (c *webSocket) sendPositions(f *gateway.Positions) {
	defer f.Close()
	lastSent := map[string]gateway.Position{}
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-f.Changed():
		}
		for _, id := range f.Take() {
			at, looks, err := c.position(id)
			if err != nil {
				c.logUnread(id, err)
				continue
			}
			if was, isSent := lastSent[id]; looks || isSent && was == at {
				continue
			}
			lastSent[id] = at
			b, err := json.Marshal(readFrame{"conversation-read", id, at.Unread, at.Read})
			if err != nil {
				continue // impossible: it contains only strings and numbers
			}
			select {
			case c.answers <- b:
			case <-c.ctx.Done():
				return
			}
		}
	}
}

// position returns the user's read position in a conversation. If the user has the conversation open, position marks it as
// read, and looks is true: MarkRead causes its own notification.
//
// Being open on any socket of the user counts, so a message that is read on one device is read on all.
func (c *webSocket) position(id string) (at gateway.Position, looks bool, err error) {
	p := c.principal()
	s, err := c.s.gw.Conversation(c.ctx, p, gateway.ActionRead, id)
	if err != nil {
		return at, false, err
	}
	if at, err = c.s.gw.Position(c.ctx, p, &s); err != nil || !at.Unread || !c.s.Hub.Looks(p, id) {
		return at, false, err
	}
	at, err = c.s.gw.MarkRead(c.ctx, p, id, 0)
	return at, true, err
}

// markRead marks a conversation as read up to a seq. The seq 0 means all of it.
func (c *webSocket) markRead(id string, seq int64) {
	if _, err := c.s.gw.MarkRead(c.ctx, c.principal(), id, seq); err != nil {
		c.logUnread(id, err)
	}
}

// logUnread logs a read position that was not saved or sent. An unknown conversation is not logged, because clients may name
// any.
func (c *webSocket) logUnread(id string, err error) {
	if _, isRejected := errors.AsType[*gateway.Rejection](err); isRejected || c.ctx.Err() != nil || errors.Is(err, gateway.ErrNotFound) || errors.Is(err, gateway.ErrForbidden) || errors.Is(err, gateway.ErrClosed) {
		return
	}
	c.s.srv.Log().Warn("read position not saved", "conversation", id, "error", err)
}
