package channel

import (
	"context"
	"fmt"
	"time"
)

// EventStreamFailed is the name of the event that a failed delivery is recorded as.
const EventStreamFailed = "stream.failed"

// SignalDeliveryFailed is the health signal of a delivery that failed for good.
const SignalDeliveryFailed = "delivery.failed"

// signalLife is how long after a failure its signal is shown.
const signalLife = 10 * time.Minute

// Signals returns the health signals of the channels: SignalDeliveryFailed if a delivery has failed in the last ten minutes.
func (p *Pipeline) Signals() []string {
	for _, c := range p.list() {
		c.mu.Lock()
		failedAt := c.failedAt
		c.mu.Unlock()
		if !failedAt.IsZero() && time.Since(failedAt) < signalLife {
			return []string{SignalDeliveryFailed}
		}
	}
	return nil
}

// StreamFailed is the content of [EventStreamFailed]. Conversation and its owner are empty for a reply to a command, and Turn is
// empty for every message that belongs to no turn.
type StreamFailed struct {
	Channel, Chat, Turn           string
	Conversation, Tenant, Subject string
	Seq                           int64 // of the first event that was not delivered
	Err                           error
}

func (f StreamFailed) String() string {
	return fmt.Sprintf("%s: channel %s: %v", EventStreamFailed, f.Channel, f.Err)
}

// failed records a delivery that is not tried again. The person in the chat gets no other notice: a part of the answer may be
// visible already, and the failure is the operator's to see.
func (c *connector) failed(ctx context.Context, b *binding, f StreamFailed) {
	f.Channel = c.name
	if b != nil {
		owner := c.principalOf(b)
		f.Conversation, f.Tenant, f.Subject = b.Conversation, owner.Tenant, owner.Subject
	}
	c.mu.Lock()
	c.failures++
	c.lastError, c.failedAt = f.Err, time.Now()
	c.mu.Unlock()
	c.log.Error("delivery to a chat failed", "event", EventStreamFailed, "turn", f.Turn, "error", f.Err)
	if report := c.pipeline.cfg.ReportFailure; report != nil && b != nil {
		if err := report(ctx, f); err != nil && ctx.Err() == nil {
			c.log.Error("failed delivery could not be reported to webhooks", "error", err)
		}
	}
}
