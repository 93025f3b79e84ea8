package channel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/internal/store/journal"
)

// Journal is the part of the journal that channels use.
type Journal interface {
	Append(ctx context.Context, b journal.Batch) error
	Get(ctx context.Context, key string) ([]byte, error)
	Keys(ctx context.Context, prefix string) ([]journal.KeyValue, error)
}

// store reads and writes the keys that belong to no conversation.
type store struct{ journal Journal }

// open creates the log that owns the keys, if it doesn't exist.
func (s store) open(ctx context.Context) error {
	at := time.Now().UnixMilli()
	err := s.journal.Append(ctx, journal.Batch{Conversation: Log, Create: true, Summary: &journal.Summary{Created: at, Updated: at}})
	if err != nil && !errors.Is(err, journal.ErrExists) {
		return fmt.Errorf("channels: create the log: %w", err)
	}
	return nil
}

// write writes a key with the JSON of v. If v is nil, it deletes the key. If expires is 0, the key is kept.
func (s store) write(ctx context.Context, key string, v any, expires time.Time) error {
	kv := journal.KeyValue{Key: key}
	if v != nil {
		value, err := json.Marshal(v)
		if err != nil {
			return err
		}
		kv.Value = value
	}
	if !expires.IsZero() {
		kv.Expires = expires.UnixMilli()
	}
	return s.journal.Append(ctx, journal.Batch{Conversation: Log, Keys: []journal.KeyValue{kv}})
}

// get reads a key into v. It returns false if the key doesn't exist.
func (s store) get(ctx context.Context, key string, v any) (bool, error) {
	value, err := s.journal.Get(ctx, key)
	if errors.Is(err, journal.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(value, v)
}

// list calls f with the value of each key that begins with prefix, in the order of the keys.
func list[V any](ctx context.Context, s store, prefix string, f func(key string, v V)) error {
	entries, err := s.journal.Keys(ctx, prefix)
	if err != nil {
		return err
	}
	for _, kv := range entries {
		var v V
		if err := json.Unmarshal(kv.Value, &v); err != nil {
			return fmt.Errorf("%s: %w", kv.Key, err)
		}
		f(kv.Key, v)
	}
	return nil
}
