package native

import (
	"errors"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server/internal/socket"
)

// readFrame is a user's read position in a conversation, whichever connection changed it.
type readFrame struct {
	Type         string `json:"type"`         // "read"
	ID           string `json:"id,omitempty"` // of the read that is answered
	Conversation string `json:"conversation"`
	Unread       bool   `json:"unread"`
	Read         int64  `json:"read"` // seq
}

// followReadings starts to send changes of read positions. A client asks for them with its first read frame.
//
// The goroutine ends with the connection. Positions merges the changes of a conversation, so a slow client
// gets only the newest position. A conversation that the user may no longer read is skipped.
func (s *webSocket) followReadings() {
	if s.followsReadings {
		return
	}
	s.followsReadings = true
	positions := s.n.gw.Positions(s.principal())
	s.conn.Go(func() {
		defer positions.Close()
		for {
			select {
			case <-s.ctx.Done():
				return
			case <-positions.Changed():
			}
			for _, id := range positions.Take() {
				at, err := s.position(id)
				if err == nil {
					err = s.send(readFrame{Type: "read", Conversation: id, Unread: at.Unread, Read: at.Read})
				}
				if errors.Is(err, socket.ErrDisconnected) {
					return
				}
				if err != nil && !errors.Is(err, gateway.ErrNotFound) && s.ctx.Err() == nil {
					s.n.s.Log().Warn("read position not sent", "conversation", id, "error", err)
				}
			}
		}
	})
}

// position reads the current position instead of carrying it in the notification, so that merged
// notifications can't report an old one.
func (s *webSocket) position(conversation string) (at gateway.Position, err error) {
	p := s.principal()
	summary, err := s.n.gw.Conversation(s.ctx, p, gateway.ActionRead, conversation)
	if err != nil {
		return at, err
	}
	return s.n.gw.Position(s.ctx, p, &summary)
}

// markRead marks a conversation as read up to a seq. The seq 0 means all of it.
func (s *webSocket) markRead(f clientFrame) error {
	at, err := s.n.gw.MarkRead(s.ctx, s.principal(), f.Conversation, f.Seq)
	if err != nil {
		return s.refuse("rejected", f, err)
	}
	return s.send(readFrame{Type: "read", ID: f.ID, Conversation: f.Conversation, Unread: at.Unread, Read: at.Read})
}
