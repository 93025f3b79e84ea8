package native

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/socket"
	"github.com/leat-dev/leat/internal/store/feed"
)

// transcript answers GET /api/conversations/{id}/transcript: a snapshot, or with ?before= a page of older messages.
//
// A snapshot has the form of the first batch of a stream and a cursor, so a client can read it once and
// then follow the conversation from there. A page has no cursor: older messages don't change any more,
// except by a truncate. If the message before doesn't exist, the page is refused with 404. limit is only for pages,
// and at most feed.MaxPage.
func (n *native) transcript(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	q := r.URL.Query()
	limit := 0
	if v := q.Get("limit"); v != "" {
		var err error
		if limit, err = strconv.Atoi(v); err != nil || limit < 1 || limit > feed.MaxPage {
			return server.Invalid("invalid limit %q: use 1 to %d", v, feed.MaxPage)
		}
		if q.Get("before") == "" {
			return server.Invalid("limit without before: a snapshot has no limit; send before to get a page of older messages")
		}
	}
	f, err := n.gw.Feed(r.Context(), p, r.PathValue("id"))
	if err != nil {
		return err
	}
	defer f.Release()
	var b []byte
	if before := q.Get("before"); before != "" {
		page, err := f.Page(r.Context(), before, limit)
		if err != nil {
			return err
		}
		if b, err = page.AppendJSON(nil); err != nil {
			return err
		}
	} else {
		snapshot, err := f.Poll(r.Context(), "", 0)
		if err != nil {
			return err
		}
		if b, err = snapshot.Encode(feed.JSON); err != nil {
			return err
		}
	}
	server.WriteRawJSON(w, http.StatusOK, b)
	return nil
}

// turn answers GET /api/turns/{turn}.
//
// It returns the state of a turn and its conversation, for clients that have only the id of the turn.
func (n *native) turn(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	conversation, t, err := n.gw.Turn(r.Context(), p, gateway.ActionRead, r.PathValue("turn"))
	return server.Respond(w, map[string]any{"conversation": conversation, "turn": &t}, err)
}

// readFrame is a user's read position in a conversation, whichever connection changed it.
type readFrame struct {
	Type         string `json:"type"`         // "read"
	ID           string `json:"id,omitempty"` // of the read that is answered
	Conversation string `json:"conversation"`
	// Unread says that an agent has added a message, asked a question or ended a turn after Read.
	Unread bool  `json:"unread"`
	Read   int64 `json:"read"` // seq
}

// followReadings starts to send changes of read positions. A client asks for them with its first read frame.
//
// The goroutine ends with the connection. Positions merges the changes of a conversation, so a slow client
// gets only the newest position. A conversation that the user may no longer read is skipped. Only the read loop calls
// it. It never ends the connection: a position that can't be read is logged and skipped.
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

// markRead marks a conversation as read up to a seq. The seq 0 means all of it. The new position is sent on all
// connections of the user that follow positions, and on this one also as the answer.
func (s *webSocket) markRead(f clientFrame) error {
	at, err := s.n.gw.MarkRead(s.ctx, s.principal(), f.Conversation, f.Seq)
	if err != nil {
		return s.refuse("rejected", f, err)
	}
	return s.send(readFrame{Type: "read", ID: f.ID, Conversation: f.Conversation, Unread: at.Unread, Read: at.Read})
}
