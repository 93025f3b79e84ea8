package channel

import (
	"context"

	"github.com/leat-dev/leat/internal/gateway"
)

// MarkChatHeard stores how far the person in a chat has heard an answer of the chat's current conversation. If the chat has no
// conversation, it does nothing.
func (p *Pipeline) MarkChatHeard(ctx context.Context, channel, chat string, h gateway.HeardMark) error {
	c, b, err := p.currentOf(channel, chat)
	if err != nil || b == nil {
		return err
	}
	err = p.gateway.MarkHeard(ctx, c.principalOf(b), b.Conversation, h)
	if isDeleted(err) {
		return nil
	}
	return err
}

// IsChatWatched reports whether another user than the person in a chat reads the chat's current conversation now.
func (p *Pipeline) IsChatWatched(channel, chat string) bool {
	c, b, err := p.currentOf(channel, chat)
	return err == nil && b != nil && p.gateway.HasOtherReaders(c.principalOf(b), b.Conversation)
}
