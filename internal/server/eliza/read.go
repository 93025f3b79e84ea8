package eliza

import (
	"context"
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// read says that whoever asks has read a conversation up to a seq; without one, all of it.
func (s *surface) read(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body struct {
		Seq int64 `json:"seq"`
	}
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	at, err := s.gw.MarkRead(r.Context(), p, r.PathValue("id"), body.Seq)
	if err != nil {
		return err
	}
	server.WriteJSON(w, http.StatusOK, struct {
		okay
		Unread bool  `json:"unread"`
		Read   int64 `json:"read"`
	}{okay{true}, at.Unread, at.Read})
	return nil
}

// shown marks as read what a client was sent as the answer to its own message. It has the answer, whether or not this is kept.
func (s *surface) shown(ctx context.Context, p gateway.Principal, conversation string, seq int64) {
	if _, err := s.gw.MarkRead(ctx, p, conversation, seq); err != nil && ctx.Err() == nil && !server.Restarting(err) {
		s.srv.Log().Info("read position not kept", "conversation", conversation, "error", err)
	}
}
