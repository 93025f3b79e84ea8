package sqlite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/leat-dev/leat/journal"
)

// Get implements [journal.Journal].
func (j *Journal) Get(ctx context.Context, key string) ([]byte, error) {
	value := []byte{}
	err := j.read(ctx, func(c *conn) error {
		r, err := c.one("SELECT value, expires FROM kv WHERE key = ?", key)
		if err != nil {
			return err
		}
		if r == nil || expired(r.int(1), time.Now()) {
			return journal.ErrNotFound
		}
		value = append(value, r.blob(0)...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	return value, nil
}

func expired(at int64, now time.Time) bool { return at != 0 && at <= now.UnixMilli() }

// Keys implements [journal.Journal].
func (j *Journal) Keys(ctx context.Context, prefix string) ([]journal.KeyValue, error) {
	var out []journal.KeyValue
	now := time.Now()
	query, args := "SELECT key, value, expires FROM kv WHERE key >= ? ORDER BY key", []any{prefix}
	if end := after(prefix); end != "" {
		query, args = "SELECT key, value, expires FROM kv WHERE key >= ? AND key < ? ORDER BY key", []any{prefix, end}
	}
	err := j.read(ctx, func(c *conn) error {
		return c.each(query, func(r row) error {
			if !expired(r.int(2), now) {
				out = append(out, journal.KeyValue{Key: r.text(0), Value: append([]byte{}, r.blob(1)...), Expires: r.int(2)})
			}
			return nil
		}, args...)
	})
	if err != nil {
		return nil, fmt.Errorf("keys %s: %w", prefix, err)
	}
	return out, nil
}

// after returns the lowest string above all that begin with prefix, by bytes; empty where there is none.
func after(prefix string) string {
	p := strings.TrimRight(prefix, "\xff")
	if p == "" {
		return ""
	}
	return p[:len(p)-1] + string([]byte{p[len(p)-1] + 1})
}
