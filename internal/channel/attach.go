package channel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// Attach shows an existing conversation in a chat: what is committed from now on is delivered to the chat, a running turn
// included, and the messages of the chat go to the conversation until another one is attached or begun. The error is
// [ErrUnknownChannel], [ErrAttached], or that of the gateway if there is no such conversation.
func (p *Pipeline) Attach(ctx context.Context, channel, chat, conversation string) error {
	c := p.connector(channel)
	if c == nil {
		return fmt.Errorf("%w: %q", ErrUnknownChannel, channel)
	}
	admin := gateway.Principal{Admin: true}
	s, err := p.gateway.Conversation(ctx, admin, gateway.ActionWrite, conversation)
	if err != nil {
		return err
	}
	t := c.chatNamed(chat)
	if c.bindingOf(t, conversation) != nil {
		return ErrAttached
	}
	f, err := p.gateway.Feed(ctx, admin, conversation)
	if err != nil {
		return err
	}
	defer f.Release()
	b := &binding{Chat: chat, Conversation: conversation, BoundAt: time.Now().UnixMilli(), Owner: &owner{s.Tenant, s.Owner}, Cursor: f.Cursor()}
	var begin int64 // of the oldest turn that has not ended
	f.View(func(log *transcript.Transcript) {
		if open := unfinished(log); len(open) > 0 {
			begin = open[0].FirstSeq
		}
	})
	if begin > 0 {
		b.Cursor = f.CursorAt(begin - 1)
	}
	return c.add(ctx, t, b)
}

// Detach ends what Attach began. The next message in the chat begins a new conversation. The error is
// [ErrUnknownChannel], or [gateway.ErrNotFound] if the conversation isn't attached to the chat.
func (p *Pipeline) Detach(ctx context.Context, channel, chat, conversation string) error {
	c := p.connector(channel)
	if c == nil {
		return fmt.Errorf("%w: %q", ErrUnknownChannel, channel)
	}
	t := c.chatNamed(chat)
	b := c.bindingOf(t, conversation)
	if b == nil {
		return fmt.Errorf("%w: the conversation isn't attached to the chat", gateway.ErrNotFound)
	}
	b.isDetached.Store(true) // a delivery that runs must not store the binding again
	c.forget(t, b)
	return c.remove(ctx, b)
}

// bindingOf returns the binding of a chat to a conversation, or nil.
func (c *connector) bindingOf(t *chat, conversation string) *binding {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(t.bindings, func(o *binding) bool { return o.Conversation == conversation }); i >= 0 {
		return t.bindings[i]
	}
	return nil
}

// add stores a binding, which becomes the current one of its chat, and begins to deliver.
func (c *connector) add(ctx context.Context, t *chat, b *binding) error {
	if err := c.save(ctx, b); err != nil {
		return err
	}
	c.pipeline.link(b.Conversation, linked{c, t})
	c.mu.Lock()
	t.bindings = append(t.bindings, b)
	c.mu.Unlock()
	c.wake(t) // for what was committed before the link
	return nil
}
