package channel

import "context"

// intent is the state of a delivery by a channel that doesn't stream.
type intent struct {
	// Sending is set before the message is sent. A later delivery that finds it can't know whether the message was sent.
	Sends bool `json:"sends"`
}

// collapse waits for the end of a turn and sends its text as one message. A message whose sending was interrupted is sent again
// only if the platform recognises the repetition. Otherwise it would perhaps appear twice, so it is reported as possibly
// delivered.
func (c *connector) collapse(ctx context.Context, chat string, metadata StreamMetadata, events <-chan StreamEvent) error {
	stream := NewStream(metadata.Turn)
	for e := range events {
		if err := stream.Apply(e); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	text := stream.Final()
	if text == "" {
		return nil
	}
	if metadata.State != nil && !c.channel.Capabilities().Idempotent {
		return ErrUnknownOutcome
	}
	if err := metadata.Save(ctx, intent{Sends: true}); err != nil {
		return err
	}
	return c.channel.Send(ctx, OutboundMessage{Channel: c.name, ChatID: chat, Content: text, ReplyTo: metadata.ReplyTo, Key: metadata.Turn})
}
