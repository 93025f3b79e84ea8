package eliza

import (
	"context"
	"net/http"
	"slices"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// messages lists what was said so far, also while a turn runs.
func (s *surface) messages(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	f, err := s.gw.Feed(r.Context(), p, r.PathValue("id"))
	if err != nil {
		return err
	}
	defer f.Release()
	all, err := newest(r.Context(), f.Feed)
	if err != nil {
		return err
	}
	server.WriteJSON(w, http.StatusOK, map[string]any{"messages": all})
	return nil
}

// send adds a message and waits for the end of the turn that answers it.
func (s *surface) send(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	_, c, err := readSend(r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	ack, err := s.do(r.Context(), p, id, c)
	if err != nil {
		return err
	}
	var last answer
	err = s.follow(r.Context(), p, id, ack.Turn, true, follower{State: func(s *state) (bool, error) {
		last = s.answer
		return s.ended(), nil
	}})
	if err != nil {
		return err
	}
	out, _ := last.ended()
	out.UserMessageID = ack.Message
	server.WriteJSON(w, http.StatusOK, reply{Text: out.text, outcome: out})
	s.shown(r.Context(), p, id, last.turn.EndSeq)
	return nil
}

// truncate drops what comes after a message, and with inclusive the message itself.
func (s *surface) truncate(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body struct {
		MessageID string `json:"messageId"`
		Inclusive bool   `json:"inclusive"`
	}
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	if body.MessageID == "" {
		return invalid("messageId is required")
	}
	id := r.PathValue("id")
	after, count, err := s.cut(r.Context(), p, id, body.MessageID, body.Inclusive)
	if err != nil {
		return err
	}
	c := gateway.Command{Type: gateway.CommandTruncate, Key: r.Header.Get("Idempotency-Key"), After: after}
	if _, err := s.do(r.Context(), p, id, c); err != nil {
		return err
	}
	server.WriteJSON(w, http.StatusOK, struct {
		okay
		DeletedCount int `json:"deletedCount"`
	}{okay{true}, count})
	return nil
}

// cut finds the canonical message after which a truncate drops everything, and how many of Eliza's messages go with it.
func (s *surface) cut(ctx context.Context, p gateway.Principal, id, messageID string, inclusive bool) (after string, count int, err error) {
	f, err := s.gw.Feed(ctx, p, id)
	if err != nil {
		return "", 0, err
	}
	defer f.Release()
	at := func(st *stretch, id string) int {
		return slices.IndexFunc(st.messages, func(m *transcript.Message) bool { return m.ID == id })
	}
	st, err := gather(ctx, f.Feed, func(st *stretch) bool {
		// The one before it is needed too.
		m := find(list(st.messages, st.turns), messageID)
		return m != nil && at(st, m.first) > 0
	})
	if err != nil {
		return "", 0, err
	}
	all := list(st.messages, st.turns)
	m := find(all, messageID)
	if m == nil {
		return "", 0, server.Errorf(http.StatusNotFound, server.ReasonNotFound, "Message not found")
	}
	last := m.last
	if last == "" {
		last = m.first // a failure without a word can't be dropped without the message that it answers
	} else if inclusive {
		last = ""
	}
	keep := at(st, m.first)
	if last != "" {
		keep = at(st, last) + 1
	}
	if keep > 0 {
		after = st.messages[keep-1].ID
	}
	return after, len(all) - len(list(st.messages[:keep], st.turns)), nil
}

func find(all []message, id string) *message {
	for i := range all {
		if all[i].ID == id {
			return &all[i]
		}
	}
	return nil
}

// abort stops the turn that runs in a room, which is a conversation's other name.
func (s *surface) abort(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	id := r.PathValue("id")
	// Whoever may only read does not learn whether something runs.
	if _, err := s.gw.Conversation(r.Context(), p, gateway.ActionWrite, id); err != nil {
		return err
	}
	f, err := s.gw.Feed(r.Context(), p, id)
	if err != nil {
		return err
	}
	turn := running(f.Feed, true)
	f.Release()
	out := struct {
		okay
		Aborted bool   `json:"aborted"`
		Turn    string `json:"turn,omitempty"`
	}{okay: okay{true}, Turn: turn}
	if turn != "" {
		ack, err := s.do(r.Context(), p, id, gateway.Command{Type: gateway.CommandStop, Turn: turn})
		if err != nil {
			return err
		}
		out.Aborted = !ack.AlreadyEnded
	}
	server.WriteJSON(w, http.StatusOK, out)
	return nil
}
