package channel

import "context"

// busSize is how many messages of a chat wait in each direction, besides the one that is handled.
const busSize = 16

// MessageBus carries messages between channels and the pipeline. Each chat has a bounded queue in each direction, so a slow chat
// blocks only those who publish to it. All methods are safe for concurrent use.
type MessageBus struct {
	inbound  *lanes[InboundMessage]
	outbound *lanes[OutboundMessage]
}

// NewMessageBus returns a bus that calls receive for each inbound and send for each outbound message: one at a time within a
// chat, in the order of their publication.
func NewMessageBus(receive func(context.Context, InboundMessage), send func(context.Context, OutboundMessage)) *MessageBus {
	return &MessageBus{inbound: newLanes(busSize, receive), outbound: newLanes(busSize, send)}
}

// PublishInbound queues a message of a person. It blocks until its chat's queue has space. It fails if ctx ends or the bus is
// closed before ([ErrBusClosed]).
func (b *MessageBus) PublishInbound(ctx context.Context, m InboundMessage) error {
	return b.inbound.publish(ctx, m.lane(), m)
}

// TryPublishInbound is PublishInbound for loops that must not wait. If the chat's queue is full, it returns [ErrBusy].
func (b *MessageBus) TryPublishInbound(m InboundMessage) error {
	return b.inbound.tryPublish(m.lane(), m)
}

// PublishOutbound queues a message to a chat. It blocks as PublishInbound does.
func (b *MessageBus) PublishOutbound(ctx context.Context, m OutboundMessage) error {
	return b.outbound.publish(ctx, route(m.Channel, m.ChatID), m)
}

// Close refuses further messages, and returns when the queued ones are handled. When ctx ends, the handlers' context ends and the
// rest is dropped. Inbound messages go first, because handling them may publish outbound ones.
func (b *MessageBus) Close(ctx context.Context) {
	b.inbound.close(ctx)
	b.outbound.close(ctx)
}
