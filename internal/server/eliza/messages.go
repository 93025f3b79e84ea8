// Messages over Eliza's API without a stream: reading, sending, truncating, finding and aborting them.

package eliza

import (
	"context"
	"net/http"
	"slices"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// messages answers GET /api/conversations/{id}/messages, even while a turn runs.
func (s *surface) messages(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	f, err := s.gw.Feed(r.Context(), p, r.PathValue("id"))
	if err != nil {
		return err
	}
	defer f.Release()
	messages, err := newestMessages(r.Context(), f.Feed)
	return server.Respond(w, map[string]any{"messages": messages}, err)
}

// send answers POST /api/conversations/{id}/messages: it adds a message and waits for the end of its turn.
//
// The response is sent only when the turn has ended, even if that takes minutes. A client that disconnects
// before that doesn't stop the turn, and a repeated request with the same clientMessageId waits for the
// same turn. The answer counts as read once it was written.
func (s *surface) send(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	_, c, err := readSend(r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	ack, err := server.Do(r.Context(), s.gw, p, id, c)
	if err != nil {
		return err
	}
	var last answer
	err = s.follow(r.Context(), p, id, ack.Turn, true, follower{State: func(s *state) (bool, error) {
		last = s.answer
		return s.hasEnded(), nil
	}})
	if err != nil {
		return err
	}
	end, _ := last.outcome()
	end.UserMessageID = ack.Message
	server.WriteJSON(w, http.StatusOK, reply{Text: end.text, outcome: end})
	s.markSeen(r.Context(), p, id, last.turn.EndSeq)
	return nil
}

// truncate removes the messages after one, and with inclusive that one too.
//
// It maps Eliza's message, which can be several transcript messages, to one truncate command. deletedCount
// counts Eliza's messages.
func (s *surface) truncate(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body struct {
		MessageID string `json:"messageId"`
		Inclusive bool   `json:"inclusive"`
	}
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	if body.MessageID == "" {
		return server.Invalid("messageId is required")
	}
	id := r.PathValue("id")
	after, count, err := s.truncatePoint(r.Context(), p, id, body.MessageID, body.Inclusive)
	if err != nil {
		return err
	}
	c := gateway.Command{Type: gateway.CommandTruncate, Key: r.Header.Get("Idempotency-Key"), After: after}
	if _, err := server.Do(r.Context(), s.gw, p, id, c); err != nil {
		return err
	}
	server.WriteJSON(w, http.StatusOK, struct {
		okay
		DeletedCount int `json:"deletedCount"`
	}{okay{true}, count})
	return nil
}

// truncatePoint returns the transcript message after which a truncate removes everything, and how many of Eliza's messages that
// removes.
//
// The page that contains the message is not enough: the result is the id of the message before it, so the
// history is read until that one is included or the conversation starts. If nothing is left, after is "",
// which the gateway takes as the start.
func (s *surface) truncatePoint(ctx context.Context, p gateway.Principal, id, messageID string, inclusive bool) (after string, count int, err error) {
	f, err := s.gw.Feed(ctx, p, id)
	if err != nil {
		return "", 0, err
	}
	defer f.Release()
	at := func(st *history, id string) int {
		return slices.IndexFunc(st.messages, func(m *transcript.Message) bool { return m.ID == id })
	}
	st, err := readHistory(ctx, f.Feed, func(st *history) bool {
		// the message before it is needed too
		m := find(list(st.messages, st.turns), messageID)
		return m != nil && at(st, m.firstID) > 0
	})
	if err != nil {
		return "", 0, err
	}
	before := list(st.messages, st.turns)
	m := find(before, messageID)
	if m == nil {
		return "", 0, server.Errorf(http.StatusNotFound, server.ReasonNotFound, "Message not found")
	}
	last := m.lastID
	if last == "" {
		last = m.firstID // the message of a failed turn without a text can only be removed together with the user's message
	} else if inclusive {
		last = ""
	}
	end := at(st, m.firstID)
	if last != "" {
		end = at(st, last) + 1
	}
	if end > 0 {
		after = st.messages[end-1].ID
	}
	return after, len(before) - len(list(st.messages[:end], st.turns)), nil
}

func find(messages []message, id string) *message {
	for i := range messages {
		if messages[i].ID == id {
			return &messages[i]
		}
	}
	return nil
}

// abort stops the turn that runs in a room. Room is another name of a conversation.
//
// It also stops a turn that the upstream itself started. If none runs, it succeeds with aborted false, as
// the turn may have ended just before the request arrived.
func (s *surface) abort(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	id := r.PathValue("id")
	// A user who may only read must not learn whether a turn runs.
	if _, err := s.gw.Conversation(r.Context(), p, gateway.ActionWrite, id); err != nil {
		return err
	}
	f, err := s.gw.Feed(r.Context(), p, id)
	if err != nil {
		return err
	}
	turn := runningTurn(f.Feed, true)
	f.Release()
	response := struct {
		okay
		Aborted bool   `json:"aborted"`
		Turn    string `json:"turn,omitempty"`
	}{okay: okay{true}, Turn: turn}
	if turn != "" {
		ack, err := server.Do(r.Context(), s.gw, p, id, gateway.Command{Type: gateway.CommandStop, Turn: turn})
		if err != nil {
			return err
		}
		response.Aborted = !ack.AlreadyEnded
	}
	return server.Respond(w, response, nil)
}
