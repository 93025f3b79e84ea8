package eliza

import (
	"context"
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// markRead answers POST /api/conversations/{id}/read: it marks the conversation as read up to a seq, or all of it without one.
func (s *surface) markRead(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
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

// markSeen marks as read an answer that was sent to the client. A failure is only logged, because the client has its answer.
func (s *surface) markSeen(ctx context.Context, p gateway.Principal, conversation string, seq int64) {
	if _, err := s.gw.MarkRead(ctx, p, conversation, seq); err != nil && ctx.Err() == nil && !server.Restarting(err) {
		s.srv.Log().Info("read position not saved", "conversation", conversation, "error", err)
	}
}
