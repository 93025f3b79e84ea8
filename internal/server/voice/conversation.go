package voice

import (
	"context"
	"errors"
	"net/http"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/voice"
	"github.com/leat-dev/leat/internal/voice/wire"
)

// conversation is a conversation of the gateway as one user talks in it.
type conversation struct {
	gateway   *gateway.Gateway
	principal gateway.Principal
	id        string
}

var _ wire.Conversation = (*conversation)(nil)

// Send implements [wire.Conversation].
func (c *conversation) Send(ctx context.Context, key, text string) (wire.Delivery, error) {
	ack, err := c.gateway.Do(ctx, c.principal, c.id, gateway.Command{
		Type: gateway.CommandSend, Key: key, Message: &gateway.CommandMessage{Text: text},
	})
	if err != nil {
		if d := server.Describe(err); d.Status < http.StatusInternalServerError || d.Status == http.StatusServiceUnavailable {
			return wire.Delivery{}, &wire.Refusal{Message: "Your message was refused: " + d.Message + ".", Action: "Say it again later, or write it in the conversation."}
		}
		return wire.Delivery{}, err
	}
	if ack.State == event.MessageSteered {
		return wire.Delivery{SteeredTurn: ack.Turn}, nil
	}
	return wire.Delivery{}, nil
}

// Stop implements [wire.Conversation]. A user who may only read ends the speech and not the turn.
func (c *conversation) Stop(ctx context.Context, turn string) error {
	_, err := c.gateway.Do(ctx, c.principal, c.id, gateway.Command{Type: gateway.CommandStop, Turn: turn})
	if errors.Is(err, gateway.ErrForbidden) {
		return nil
	}
	return err
}

// MarkHeard implements [wire.Conversation].
func (c *conversation) MarkHeard(ctx context.Context, h voice.HeardMark) error {
	return c.gateway.MarkHeard(ctx, c.principal, c.id, gateway.HeardMark{Turn: h.Turn, Offset: h.Offset, IsWhole: h.IsWhole})
}

// HasOtherViewers implements [wire.Conversation].
func (c *conversation) HasOtherViewers() bool { return c.gateway.HasOtherReaders(c.principal, c.id) }
