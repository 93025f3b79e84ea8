// Messages that a client sends again: edited, to get another answer, or because the response was lost.

package chats

import (
	"context"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// Message is a user's message that a conversation has.
type Message struct {
	gateway.CommandMessage
	Before string // id of the message before it; may be empty
	Turn   string // that answers it
}

// Message returns a user's message of a conversation, or nil.
//
// The message may be older than what is in memory, and so may the one before it. Then the whole log is read, which is rare: users edit and repeat
// what they see.
func (c Chats) Message(ctx context.Context, p gateway.Principal, conversation, id string) (original *Message, err error) {
	if id == "" {
		return nil, nil
	}
	err = c.Gateway.ViewTranscript(ctx, p, conversation, func(t *transcript.Transcript) bool {
		original = nil
		for i, m := range t.Messages {
			if m.ID != id || m.Role != event.User {
				continue
			}
			original = &Message{CommandMessage: copyOf(m), Turn: m.StateTurn}
			if i > 0 {
				original.Before = t.Messages[i-1].ID
			}
			return i > 0 || !t.Earlier
		}
		return !t.Earlier
	})
	return original, err
}

// copyOf returns a user's message as it was sent.
func copyOf(m *transcript.Message) gateway.CommandMessage {
	result := gateway.CommandMessage{ID: m.ID, Source: m.Source, Author: m.Author}
	var texts []string
	for _, p := range m.Parts {
		switch p.Kind {
		case event.KindText:
			texts = append(texts, p.Text(event.Text))
		case event.KindMedia:
			result.Parts = append(result.Parts, event.Part{Kind: p.Kind, Media: p.Media})
		case event.KindData:
			result.Parts = append(result.Parts, event.Part{Kind: p.Kind, Data: p.Data})
		}
	}
	result.Text = strings.Join(texts, event.JoinBlank)
	return result
}
