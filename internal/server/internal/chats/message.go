// Messages that a client sends again: edited, to get another answer, or because the response was lost.

package chats

import (
	"context"
	"errors"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
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

// Send adds a user's message, unless the conversation has it, and returns the turn that answers it. send has the message, its agent and
// the tools that the client offers.
//
// Each message gets a separate turn, even if the running one could take it: clients of this kind expect one answer for each message.
func (c Chats) Send(ctx context.Context, p gateway.Principal, conversation string, send gateway.Command) (turn string, err error) {
	message := send.Message
	original, err := c.Message(ctx, p, conversation, message.ID)
	if err != nil {
		return "", err
	}
	// The client doesn't say whether it repeats a request whose response was lost, or wants another answer. An answer that is still written is the
	// former: a page has no reason to ask again for what is being answered. For a finished one both look the same, and the user sees the difference: the
	// page has removed the answer from its own list before it asked again.
	if original != nil {
		isUnfinished, err := c.isUnfinished(ctx, p, original.Turn)
		if err != nil {
			return "", err
		}
		if isUnfinished {
			return original.Turn, nil // the client has lost the response before it got anything
		}
		if err := c.Truncate(ctx, p, conversation, original.Before); err != nil {
			return "", err
		}
		if original.Text == message.Text {
			message = &original.CommandMessage // with its files as they are stored
		}
	}
	send.Type, send.Message, send.Queue = gateway.CommandSend, message, true
	ack, err := server.Do(ctx, c.Gateway, p, conversation, send)
	return ack.Turn, err
}

// isUnfinished reports whether a turn exists and has not ended.
func (c Chats) isUnfinished(ctx context.Context, p gateway.Principal, turn string) (bool, error) {
	if turn == "" {
		return false, nil
	}
	_, t, err := c.Gateway.Turn(ctx, p, gateway.ActionRead, turn)
	if errors.Is(err, gateway.ErrNotFound) {
		return false, nil
	}
	return err == nil && t.Unfinished(), err
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
