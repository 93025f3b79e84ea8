package eliza

import (
	"context"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// loadBody is a conversation that was had elsewhere.
type loadBody struct {
	Title    string `json:"title"`
	Messages []struct {
		Role      string  `json:"role"`
		Text      string  `json:"text"`
		Content   string  `json:"content"`   // where there is no text
		Timestamp float64 `json:"timestamp"` // epoch milliseconds
	} `json:"messages"`
}

// loaded is the answer.
type loaded struct {
	ConversationID   string `json:"conversationId"`
	Inserted         int    `json:"inserted"`
	Skipped          int    `json:"skipped"`
	AlreadyPopulated bool   `json:"alreadyPopulated,omitempty"`
}

// load brings messages from elsewhere into a conversation in which nothing was said. What is blank, or of no role that is
// listed, is skipped.
func (s *surface) load(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body loadBody
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	var past []gateway.BackfillMessage
	for _, m := range body.Messages {
		text := m.Text
		if text == "" {
			text = m.Content
		}
		if role := event.Role(m.Role); strings.TrimSpace(text) != "" && (role == event.User || role == event.Assistant) {
			past = append(past, gateway.BackfillMessage{Role: role, Text: text, At: int64(min(max(0, m.Timestamp), 1<<53))})
		}
	}
	id := r.PathValue("id")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), commandLimit)
	defer cancel()
	filled, err := s.gw.Backfill(ctx, p, id, named(body.Title), past)
	if err != nil {
		return err
	}
	out := loaded{ConversationID: id, Inserted: len(past), Skipped: len(body.Messages) - len(past)}
	if !filled {
		out = loaded{ConversationID: id, Skipped: len(body.Messages), AlreadyPopulated: true}
	}
	server.WriteJSON(w, http.StatusOK, out)
	return nil
}
