package eliza

import (
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// maxListed is how many messages a list contains, the newest ones. Eliza's clients expect at most that many.
const maxListed = 200

// clientChat is the source of messages that were sent here. Lists omit it.
const clientChat = "client_chat"

// message is a message as Eliza's clients read it.
type message struct {
	ID                    string       `json:"id"`
	Role                  string       `json:"role"` // user or assistant
	Text                  string       `json:"text"`
	Timestamp             int64        `json:"timestamp"` // epoch milliseconds
	Source                string       `json:"source,omitempty"`
	ActionCallbackHistory []string     `json:"actionCallbackHistory,omitempty"`
	From                  string       `json:"from,omitempty"`
	Attachments           []attachment `json:"attachments,omitempty"`
	FailureKind           string       `json:"failureKind,omitempty"`
	// Interrupted reports that the turn was stopped or failed before its text was complete.
	Interrupted bool   `json:"interrupted,omitempty"`
	Turn        string `json:"turn,omitempty"`

	// first and last are the ids of the first and the last transcript message that this message stands for. The message of a
	// failed turn without a text has no last, and first is the user's message before it.
	firstID, lastID string
}

// list converts a part of a conversation, oldest first, into messages of Eliza's clients. A turn becomes one message, at the
// position of its first text. Messages without text and attachments are omitted, and so are system messages, for which the
// clients have no role.
//
// A failed turn without a text has no assistant message, but the user must see that the question got no
// answer. It becomes a message of its own right after the user's message, with the id of the turn.
func list(messages []*transcript.Message, turns []*transcript.Turn) []message {
	at := make(map[string]int) // index in slots, by turn
	byID := make(map[string]*transcript.Turn, len(turns))
	silent := make(map[string][]*transcript.Turn) // failed turns without a text, by the user's message
	spoke := make(map[string]bool)
	for _, m := range messages {
		if m.Role == event.Assistant {
			spoke[m.Turn] = true
		}
	}
	for _, t := range turns {
		byID[t.ID] = t
		if !spoke[t.ID] && t.Answers != "" {
			silent[t.Answers] = append(silent[t.Answers], t)
		}
	}
	var slots []slot
	for _, m := range messages {
		switch {
		case m.Role == event.User:
			slots = append(slots, slot{user: m})
			for _, t := range silent[m.ID] {
				slots = append(slots, slot{user: m, answer: answer{turn: t}, silent: true})
			}
		case m.Role != event.Assistant:
		case m.Turn == "":
			slots = append(slots, slot{answer: answer{messages: []*transcript.Message{m}}})
		default:
			i, exists := at[m.Turn]
			if !exists {
				i = len(slots)
				at[m.Turn] = i
				slots = append(slots, slot{answer: answer{turn: byID[m.Turn]}})
			}
			slots[i].answer.messages = append(slots[i].answer.messages, m)
		}
	}
	result := make([]message, 0, len(slots))
	for _, s := range slots {
		if e, ok := s.message(); ok {
			result = append(result, e)
		}
	}
	return result
}

// slot is a message of a list before it is rendered.
//
// If silent is true, user is the message that the failed turn answers, and answer has only the turn.
// Otherwise exactly one of user and answer is set.
type slot struct {
	user   *transcript.Message
	answer answer
	silent bool
}

// message renders the slot. It returns false if clients have nothing to show: no text and no attachment,
// or a turn that didn't fail.
func (s slot) message() (message, bool) {
	var e message
	switch {
	case s.silent:
		end, _ := s.answer.outcome()
		if end.FailureKind == "" {
			return e, false
		}
		e = message{ID: s.answer.turn.ID, Role: string(event.Assistant), Text: end.text, Timestamp: s.answer.turn.EndedAt, FailureKind: end.FailureKind, Turn: s.answer.turn.ID}
		e.firstID = s.user.ID
		return e, true
	case s.user != nil:
		m := s.user
		e = message{ID: m.ID, Role: string(event.User), Text: m.Visible(), Timestamp: m.At, Source: m.Source, Attachments: attachments(m), firstID: m.ID, lastID: m.ID}
		if m.Author != nil {
			e.From = m.Author.Name
		}
	default:
		a := s.answer
		m := a.messages[0]
		end, hasEnded := a.outcome()
		if !hasEnded {
			end.text = a.text()
		}
		e = message{
			ID: m.ID, Role: string(event.Assistant), Text: a.reload(end.text), FailureKind: end.FailureKind, Timestamp: m.At, Source: m.Source, Turn: m.Turn,
			ActionCallbackHistory: a.history(), Attachments: a.attachments(), firstID: m.ID, lastID: a.messages[len(a.messages)-1].ID,
		}
		if a.turn != nil {
			e.Interrupted = a.turn.Outcome == event.Cancelled || a.turn.Outcome == event.Interrupted
		}
	}
	if e.Source == clientChat {
		e.Source = ""
	}
	return e, strings.TrimSpace(e.Text) != "" || len(e.Attachments) > 0
}
