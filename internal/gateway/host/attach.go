package host

import (
	"context"
	"fmt"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// Attach shows an existing conversation in a chat of a channel, whether its process runs or not. The chat gets everything that is committed
// from now on, and a running turn from its beginning; the messages of the chat go to the conversation. It replaces the conversation that
// the chat showed before. The error is [ErrUnknownChannel], [ErrAttached], or that of the gateway if the conversation doesn't exist.
func (h *Host) Attach(ctx context.Context, name, chat, conversation string) error {
	return h.withChat(ctx, name, chat, func(c *channel) error { return c.attach(ctx, chat, conversation) })
}

// Detach ends what Attach began. The next message in the chat begins a new conversation. The error is [ErrUnknownChannel], or
// [gateway.ErrNotFound] if the chat doesn't show the conversation.
func (h *Host) Detach(ctx context.Context, name, chat, conversation string) error {
	return h.withChat(ctx, name, chat, func(c *channel) error { return c.detach(ctx, chat, conversation) })
}

// withChat calls change while no other call changes the binding of the chat, and the channel is not replaced or removed. Otherwise a
// session of a new version could have read the binding before the change.
func (h *Host) withChat(ctx context.Context, name, chat string, change func(*channel) error) error {
	if err := event.CheckID("chat", chat); err != nil {
		return &gateway.Rejection{Reason: gateway.ReasonInvalid, Message: err.Error()}
	}
	h.replacing.RLock()
	defer h.replacing.RUnlock()
	h.mu.Lock()
	c, isStarted := h.channels[name], h.gw != nil
	h.mu.Unlock()
	if c == nil || !isStarted {
		return fmt.Errorf("%w: %q", ErrUnknownChannel, name)
	}
	unlock, err := c.binds.Lock(ctx, chat)
	if err != nil {
		return err
	}
	defer unlock()
	return change(c)
}

// attach binds a chat to an existing conversation. The key of its former binding gets the new value and owner in one commit.
func (c *channel) attach(ctx context.Context, chat, conversation string) error {
	admin := gateway.Principal{Admin: true}
	s, err := c.gw.Conversation(ctx, admin, gateway.ActionWrite, conversation)
	if err != nil {
		return err
	}
	former, err := c.stored(ctx, chat)
	if err != nil {
		return err
	}
	if former.Conversation == conversation {
		return ErrAttached
	}
	f, err := c.gw.Feed(ctx, admin, conversation)
	if err != nil {
		return err
	}
	defer f.Release()
	b := binding{Chat: chat, Conversation: conversation, Cursor: f.Cursor(), Owner: &owner{s.Tenant, s.Owner}}
	_, begin, _ := b.Cursor.Parse()
	f.View(func(log *transcript.Transcript) {
		for _, turn := range log.Turns {
			if turn.Unfinished() && turn.FirstSeq > 0 {
				begin = min(begin, turn.FirstSeq-1)
			}
		}
	})
	b.Cursor = f.CursorAt(begin)
	if err := c.store(ctx, b); err != nil {
		return err
	}
	if session := c.current(); session != nil {
		session.bind(b)
		session.enqueue(chat) // for the open line, and what was committed before the session knew the binding
	}
	return nil
}

// detach deletes the binding of a chat.
func (c *channel) detach(ctx context.Context, chat, conversation string) error {
	b, err := c.stored(ctx, chat)
	if err != nil {
		return err
	}
	if b.Conversation != conversation {
		return fmt.Errorf("%w: the chat doesn't show the conversation", gateway.ErrNotFound)
	}
	if err := c.write(ctx, b, nil); err != nil {
		return err
	}
	if session := c.current(); session != nil {
		session.unbind(chat)
	}
	return nil
}
