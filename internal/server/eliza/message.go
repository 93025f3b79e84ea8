package eliza

import (
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// maxListed is how many messages a list holds, the newest ones; Eliza's clients expect no more.
const maxListed = 200

// clientChat is the source of what is said here. It is the one that lists leave out.
const clientChat = "client_chat"

// message is one message as Eliza's clients read it.
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
	// Interrupted says that the turn was stopped, or died, before it had said all.
	Interrupted bool   `json:"interrupted,omitempty"`
	Turn        string `json:"turn,omitempty"`

	// first and last bound what of the conversation the message stands for: ids of canonical messages. A message that
	// stands for an answer that was never given has an empty last, and first is the message before it.
	first, last string
}

// list turns a stretch of a conversation, oldest first, into the messages of Eliza's clients. A turn is one message, where
// it first spoke. What has neither text nor attachment is left out, and so are system messages, for which they have no role.
func list(messages []*transcript.Message, turns []*transcript.Turn) []message {
	at := make(map[string]int) // of a turn's answer in slots
	byID := make(map[string]*transcript.Turn, len(turns))
	silent := make(map[string][]*transcript.Turn) // turns that failed without a word, by the message that they answer
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
			i, known := at[m.Turn]
			if !known {
				i = len(slots)
				at[m.Turn] = i
				slots = append(slots, slot{answer: answer{turn: byID[m.Turn]}})
			}
			slots[i].answer.messages = append(slots[i].answer.messages, m)
		}
	}
	out := make([]message, 0, len(slots))
	for _, s := range slots {
		if e, ok := s.message(); ok {
			out = append(out, e)
		}
	}
	return out
}

// slot is one message of a list before it is rendered.
type slot struct {
	user   *transcript.Message
	answer answer
	silent bool
}

func (s slot) message() (message, bool) {
	var e message
	switch {
	case s.silent:
		end, _ := s.answer.ended()
		if end.FailureKind == "" {
			return e, false
		}
		e = message{ID: s.answer.turn.ID, Role: string(event.Assistant), Text: end.text, Timestamp: s.answer.turn.EndedAt, FailureKind: end.FailureKind, Turn: s.answer.turn.ID}
		e.first = s.user.ID
		return e, true
	case s.user != nil:
		m := s.user
		e = message{ID: m.ID, Role: string(event.User), Text: m.Visible(), Timestamp: m.At, Source: m.Source, Attachments: attachments(m), first: m.ID, last: m.ID}
		if m.Author != nil {
			e.From = m.Author.Name
		}
	default:
		a := s.answer
		m := a.messages[0]
		end, ended := a.ended()
		if !ended {
			end.text = a.text()
		}
		e = message{
			ID: m.ID, Role: string(event.Assistant), Text: a.reload(end.text), FailureKind: end.FailureKind, Timestamp: m.At, Source: m.Source, Turn: m.Turn,
			ActionCallbackHistory: a.history(), Attachments: a.attachments(), first: m.ID, last: a.messages[len(a.messages)-1].ID,
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
