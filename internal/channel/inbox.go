package channel

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// entry is a stored message of a person. While it isn't handled, it has the message; afterwards only the key remains for some
// time, so that a repetition is recognised.
type entry struct {
	Message *InboundMessage `json:"message,omitempty"`
	// Received is when it was stored, in nanoseconds of the epoch. It orders the messages after a restart.
	Received int64 `json:"received,omitempty"`
}

// inbox stores the messages of a channel until they are handled.
type inbox struct {
	store   store
	channel string
}

// add stores a message. It returns false if the message was stored before.
func (b *inbox) add(ctx context.Context, m *InboundMessage) (isNew bool, err error) {
	key := inboxKey(b.channel, m.ID)
	var old entry
	if exists, err := b.store.get(ctx, key, &old); err != nil || exists {
		return false, err
	}
	return true, b.store.write(ctx, key, entry{Message: m, Received: time.Now().UnixNano()}, time.Time{})
}

// replace stores a message again, because its content has changed.
func (b *inbox) replace(ctx context.Context, m *InboundMessage) error {
	key := inboxKey(b.channel, m.ID)
	var old entry
	if _, err := b.store.get(ctx, key, &old); err != nil {
		return err
	}
	return b.store.write(ctx, key, entry{Message: m, Received: old.Received}, time.Time{})
}

// finish marks a message as handled.
func (b *inbox) finish(ctx context.Context, m *InboundMessage) error {
	return b.store.write(ctx, inboxKey(b.channel, m.ID), entry{}, time.Now().Add(seenFor))
}

// remaining returns the messages that were not handled before the last shutdown, oldest first.
func (b *inbox) remaining(ctx context.Context) ([]*InboundMessage, error) {
	var entries []entry
	err := list(ctx, b.store, inboxPrefix(b.channel), func(_ string, e entry) {
		if e.Message != nil {
			entries = append(entries, e)
		}
	})
	slices.SortStableFunc(entries, func(x, y entry) int { return cmp.Compare(x.Received, y.Received) })
	messages := make([]*InboundMessage, len(entries))
	for i, e := range entries {
		messages[i] = e.Message
	}
	return messages, err
}
