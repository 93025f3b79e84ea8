package webhook

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// DeliveryFailed is the type of the notice that an answer could not be delivered to a chat. It is no event of a conversation.
const DeliveryFailed event.Type = "delivery.failed"

// Failure is the content of such a notice.
type Failure struct {
	Conversation, Tenant, Subject string
	Channel, Chat                 string
	Turn                          string // empty for a message that belongs to no turn
	Seq                           int64  // of the first event that was not delivered
	Error                         event.Error
}

// ReportFailure stores a notice for each hook that wants it, and returns when they are durable.
func (h *Hooks) ReportFailure(ctx context.Context, f Failure) error {
	now := time.Now().UnixMilli()
	var keys []journal.KeyValue
	for _, q := range h.queues {
		if !q.hook.wants(DeliveryFailed) {
			continue
		}
		d := entry{Queued: now, Body: Body{
			ID: uuid.Must(uuid.NewV7()).String(), Type: DeliveryFailed, At: now, Conversation: f.Conversation, Seq: f.Seq, Tenant: f.Tenant, Subject: f.Subject,
			Turn: f.Turn, Channel: f.Channel, Chat: f.Chat, Error: &f.Error,
		}}
		kv, err := q.encode(&d)
		if err != nil {
			return err
		}
		keys = append(keys, kv)
	}
	if len(keys) == 0 {
		return nil
	}
	err := h.cfg.Journal.Append(ctx, journal.Batch{Conversation: Log, Keys: keys})
	h.Finish(keys, err)
	return err
}
