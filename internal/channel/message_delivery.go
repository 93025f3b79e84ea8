package channel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/transcript"
)

// nextMessage returns the first message outside of turns that has to be sent to a chat, or nil: one that a person wrote
// elsewhere, or that a program added to the conversation. The messages of the chat itself are skipped.
func (c *connector) nextMessage(log *transcript.Transcript, t *chat, b *binding) *transcript.Message {
	_, seq, _ := b.Cursor.Parse()
	for _, m := range log.Messages {
		if m.Seq <= seq || m.Turn != "" || slices.Contains(b.Delivered, m.ID) {
			continue // a message of a snapshot has the seq 0, which does not show whether it was delivered
		}
		if !c.isFrom(t, b, m) {
			return m
		}
		b.Delivered = append(b.Delivered, m.ID)
	}
	return nil
}

// isFrom reports whether a message was written in the chat. After a restart that is known only for conversations that were begun
// in the chat: those have no other chat of the channel. In an attached one the person's last message could then be repeated to
// them.
func (c *connector) isFrom(t *chat, b *binding, m *transcript.Message) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return t.replies[m.ID] != "" || b.Owner == nil && m.Source == c.name
}

// deliverMessage sends one message and stores that it was sent. If that was interrupted before, the message was possibly sent; it
// is repeated only if the platform recognises repetitions.
func (c *connector) deliverMessage(ctx context.Context, t *chat, b *binding, m *transcript.Message) error {
	ch := c.runtime().channel
	var err error
	switch text := messageText(m); {
	case text == "":
	case b.Turn == m.ID && !ch.Capabilities().Idempotent:
		err = ErrUnknownOutcome
	default:
		b.Turn, b.State = m.ID, nil
		if err := c.save(ctx, b); err != nil {
			return err
		}
		err = ch.Send(ctx, OutboundMessage{Channel: c.name, ChatID: t.id, Content: text, Key: m.ID})
	}
	switch {
	case err == nil:
	case ctx.Err() != nil, errors.Is(err, ErrStopped), isDeleted(err), errors.Is(err, feed.ErrLost):
		return err
	default:
		c.failed(ctx, b, StreamFailed{Chat: t.id, Seq: m.Seq, Err: err})
	}
	b.Delivered = append(b.Delivered, m.ID)
	b.Turn, b.State = "", nil
	return c.save(ctx, b)
}

// messageText returns a message as a chat shows it: with its author, unless it is the agent.
func messageText(m *transcript.Message) string {
	text := m.Visible()
	if m.Role != event.User || text == "" {
		return text
	}
	return fmt.Sprintf("💬 **%s**\n\n%s", AuthorName(m), text)
}
