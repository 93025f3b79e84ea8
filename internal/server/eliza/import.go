package eliza

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// importBody is a conversation from another program.
type importBody struct {
	Title    string `json:"title"`
	Messages []struct {
		Role      string  `json:"role"`
		Text      string  `json:"text"`
		Content   string  `json:"content"`   // used if text is empty
		Timestamp float64 `json:"timestamp"` // epoch milliseconds
	} `json:"messages"`
}

type importResponse struct {
	ConversationID   string `json:"conversationId"`
	Inserted         int    `json:"inserted"`
	Skipped          int    `json:"skipped"`
	AlreadyPopulated bool   `json:"alreadyPopulated,omitempty"`
}

// importMessages imports messages into a conversation that has none. Blank messages and unknown roles are skipped.
//
// The import is all or nothing and not abandoned if the client disconnects, and the gateway refuses it for
// a conversation that has messages already. So a client may send it again after a timeout: the repetition
// reports alreadyPopulated and changes nothing. Timestamps are limited to integers that JavaScript
// represents exactly; negative ones become 0.
func (s *surface) importMessages(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body importBody
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	var messages []gateway.BackfillMessage
	for _, m := range body.Messages {
		text := cmp.Or(m.Text, m.Content)
		if role := event.Role(m.Role); strings.TrimSpace(text) != "" && (role == event.User || role == event.Assistant) {
			messages = append(messages, gateway.BackfillMessage{Role: role, Text: text, At: int64(min(max(0, m.Timestamp), 1<<53))})
		}
	}
	id := r.PathValue("id")
	ctx, cancel := server.CommandContext(r.Context())
	defer cancel()
	imported, err := s.gw.Backfill(ctx, p, id, titleOf(body.Title), messages)
	if err != nil {
		return err
	}
	response := importResponse{ConversationID: id, Inserted: len(messages), Skipped: len(body.Messages) - len(messages)}
	if !imported {
		response = importResponse{ConversationID: id, Skipped: len(body.Messages), AlreadyPopulated: true}
	}
	return server.Respond(w, response, nil)
}
