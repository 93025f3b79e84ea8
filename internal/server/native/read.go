package native

import (
	"errors"

	"github.com/leat-dev/leat/internal/gateway"
)

// readFrame says how far the socket's user has read a conversation, here or elsewhere.
type readFrame struct {
	Type         string `json:"type"`         // "read"
	ID           string `json:"id,omitempty"` // of the read that is answered
	Conversation string `json:"conversation"`
	Unread       bool   `json:"unread"`
	Read         int64  `json:"read"` // seq
}

// attend begins to tell the client what is read and what has become unread. A client that never asks is told nothing.
func (s *socket) attend() {
	if s.attends {
		return
	}
	s.attends = true
	f := s.n.gw.Positions(s.principal())
	s.tasks.Go(func() {
		defer f.Close()
		for {
			select {
			case <-s.ctx.Done():
				return
			case <-f.Changed():
			}
			for _, id := range f.Take() {
				at, err := s.position(id)
				if err == nil {
					err = s.send(readFrame{Type: "read", Conversation: id, Unread: at.Unread, Read: at.Read})
				}
				if errors.Is(err, errGone) {
					return
				}
				if err != nil && !errors.Is(err, gateway.ErrNotFound) && s.ctx.Err() == nil {
					s.n.s.Log().Warn("read position not told", "conversation", id, "error", err)
				}
			}
		}
	})
}

func (s *socket) position(id string) (at gateway.Position, err error) {
	p := s.principal()
	c, err := s.n.gw.Conversation(s.ctx, p, gateway.ActionRead, id)
	if err != nil {
		return at, err
	}
	return s.n.gw.Position(s.ctx, p, &c)
}

// markRead marks a conversation as read, up to a seq; 0 is all of it.
func (s *socket) markRead(f clientFrame) error {
	at, err := s.n.gw.MarkRead(s.ctx, s.principal(), f.Conversation, f.Seq)
	if err != nil {
		return s.refuse("rejected", f, err)
	}
	return s.send(readFrame{Type: "read", ID: f.ID, Conversation: f.Conversation, Unread: at.Unread, Read: at.Read})
}
