package channel

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// ViewChat calls view with the newest part of the current conversation of a chat. If the chat has no conversation, view isn't called.
// It may be called twice, must not retain the transcript, and must be fast, because no commit is shown to readers meanwhile.
func (p *Pipeline) ViewChat(ctx context.Context, channel, chat string, view func(*transcript.Transcript)) error {
	c, b, err := p.currentOf(channel, chat)
	if err != nil || b == nil {
		return err
	}
	err = p.gateway.ViewTranscript(ctx, c.principalOf(b), b.Conversation, func(log *transcript.Transcript) bool {
		view(log)
		return true
	})
	if isDeleted(err) {
		return nil
	}
	return err
}

// OpenChatMedia opens a file that the current conversation of a chat shows. If it isn't stored, the error is [fs.ErrNotExist].
func (p *Pipeline) OpenChatMedia(ctx context.Context, channel, chat string, m event.Media) (io.ReadCloser, error) {
	c, b, err := p.currentOf(channel, chat)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, &fs.PathError{Op: "open", Path: m.Name, Err: fs.ErrNotExist}
	}
	return c.openMedia(ctx, b, m)
}

// MessageID returns the id that a message of a person has in its conversation. It depends on the message's ID, Channel and Timestamp.
func (*Pipeline) MessageID(m InboundMessage) string { return m.messageID() }

// ServePage passes a request of a page to a channel for pages, which is a [http.Handler]. An error wraps [ErrUnknownChannel] if no channel
// with that name is one.
func (p *Pipeline) ServePage(w http.ResponseWriter, r *http.Request, name string) error {
	if c := p.connector(name); c != nil {
		if h, ok := c.runtime().channel.(http.Handler); ok {
			h.ServeHTTP(w, r)
			return nil
		}
	}
	return fmt.Errorf("%w: %q", ErrUnknownChannel, name)
}

// currentOf returns the binding of a chat, or nil if the chat has no conversation.
func (p *Pipeline) currentOf(channel, chat string) (*connector, *binding, error) {
	c := p.connector(channel)
	if c == nil {
		return nil, nil, fmt.Errorf("%w: %q", ErrUnknownChannel, channel)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.chats[chat]
	if t == nil || len(t.bindings) == 0 {
		return c, nil, nil
	}
	return c, t.bindings[len(t.bindings)-1], nil
}

// ServeWebhook passes a request of a platform to a channel. An error wraps [ErrUnknownChannel] if no channel with that name receives
// webhooks; then nothing was written.
func (p *Pipeline) ServeWebhook(w http.ResponseWriter, r *http.Request, name string) error {
	if c := p.connector(name); c != nil {
		if ch, ok := c.runtime().channel.(WebhookChannel); ok {
			ch.ServeWebhook(w, r, c)
			return nil
		}
	}
	return fmt.Errorf("%w: %q", ErrUnknownChannel, name)
}

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
