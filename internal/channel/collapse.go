package channel

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// intent is the state of a delivery by a channel that doesn't stream.
type intent struct {
	// Asked are the tokens of the questions that were sent.
	Asked []string `json:"asked,omitempty"`
	// Sends is set before the final message is sent. A later delivery that finds it can't know whether the message was sent.
	Sends bool `json:"sends,omitempty"`
}

// collapse waits for the end of a turn and sends its text as one message; questions are sent when they are asked. A message whose
// sending was interrupted is sent again only if the platform recognises the repetition. Otherwise it would perhaps appear twice,
// so it is reported as possibly delivered.
func (c *connector) collapse(ctx context.Context, ch Channel, chat string, metadata StreamMetadata, events <-chan StreamEvent) error {
	var state intent
	if metadata.State != nil {
		if err := json.Unmarshal(metadata.State, &state); err != nil {
			return fmt.Errorf("state of a delivery: %w", err)
		}
	}
	stream := NewStream(metadata.Turn)
	for e := range events {
		if err := stream.Apply(e); err != nil {
			return err
		}
		for _, q := range stream.Questions() {
			if slices.Contains(state.Asked, q.Token) {
				continue
			}
			state.Asked = append(state.Asked, q.Token)
			if err := metadata.Save(ctx, state); err != nil {
				return err
			}
			m := OutboundMessage{Channel: c.name, ChatID: chat, Content: q.TextWithChoices(), ReplyTo: metadata.ReplyTo, Key: q.Token}
			if err := ch.Send(ctx, m); err != nil {
				return err
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	text := stream.Final()
	if text == "" {
		return nil
	}
	if state.Sends && !ch.Capabilities().Idempotent {
		return ErrUnknownOutcome
	}
	state.Sends = true
	if err := metadata.Save(ctx, state); err != nil {
		return err
	}
	return ch.Send(ctx, OutboundMessage{Channel: c.name, ChatID: chat, Content: text, ReplyTo: metadata.ReplyTo, Key: metadata.Turn})
}
