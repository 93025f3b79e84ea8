package elizaws

import (
	"encoding/json"
	"errors"

	"github.com/leat-dev/leat/internal/gateway"
)

// readFrame says how far the client's user has read a conversation, here or on any other device. It is Leat's own; Eliza's
// clients ignore it.
type readFrame struct {
	Type           string `json:"type"`
	ConversationID string `json:"conversationId"`
	Unread         bool   `json:"unread"`
	Read           int64  `json:"read"`
}

// sendPositions tells the client what is read and what has become unread, until the socket ends. What is said in a conversation that
// its user looks at, on this socket or another one, is read.
func (c *webSocket) sendPositions(f *gateway.Positions) {
	defer f.Close()
	told := map[string]gateway.Position{}
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-f.Changed():
		}
		for _, id := range f.Take() {
			at, looks, err := c.position(id)
			if err != nil {
				c.missed(id, err)
				continue
			}
			if was, known := told[id]; looks || known && was == at {
				continue
			}
			told[id] = at
			b, err := json.Marshal(readFrame{"conversation-read", id, at.Unread, at.Read})
			if err != nil {
				continue // it holds words and numbers only
			}
			select {
			case c.answers <- b:
			case <-c.ctx.Done():
				return
			}
		}
	}
}

// position is how far the user has read a conversation. looks says that the user was looking at what was unread, and has read
// it by now: that is told for itself.
func (c *webSocket) position(id string) (at gateway.Position, looks bool, err error) {
	p := c.principal()
	s, err := c.s.gw.Conversation(c.ctx, p, gateway.ActionRead, id)
	if err != nil {
		return at, false, err
	}
	if at, err = c.s.gw.Position(c.ctx, p, &s); err != nil || !at.Unread || !c.s.opt.Hub.Looks(p, id) {
		return at, false, err
	}
	at, err = c.s.gw.MarkRead(c.ctx, p, id, 0)
	return at, true, err
}

// markRead marks a conversation as read, up to a seq; 0 is all of it.
func (c *webSocket) markRead(id string, seq int64) {
	if _, err := c.s.gw.MarkRead(c.ctx, c.principal(), id, seq); err != nil {
		c.missed(id, err)
	}
}

// missed logs what was not marked or told. That there is no such conversation is no fault: clients name what they like.
func (c *webSocket) missed(id string, err error) {
	var refused *gateway.Rejection
	if c.ctx.Err() != nil || errors.As(err, &refused) || errors.Is(err, gateway.ErrNotFound) || errors.Is(err, gateway.ErrForbidden) || errors.Is(err, gateway.ErrClosed) {
		return
	}
	c.s.srv.Log().Warn("read position not kept", "conversation", id, "error", err)
}
