// Keys and their values, with expiry. An expired key reads as missing before it is deleted.

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/internal/store/journal"
)

// Get implements [journal.Journal].
func (j *Journal) Get(ctx context.Context, key string) ([]byte, error) {
	var value []byte
	err := j.readTx(ctx, func(c *conn) error {
		r, err := c.queryRow("SELECT value, expires, secrets.key, n FROM kv JOIN secrets ON n = conversation WHERE kv.key = ?", key)
		if err != nil {
			return err
		}
		if r == nil || expired(r.int(1), time.Now()) {
			return journal.ErrNotFound
		}
		s, err := secretOf(r.int(3), r.blob(2))
		if errors.Is(err, errNoKey) { // its conversation is being deleted
			return journal.ErrNotFound
		}
		if err == nil {
			if value, err = s.open(r.blob(0), place{kind: inKey, name: key}); err != nil {
				err = keyDamage(c, r.int(3), err)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, j.quarantine(err))
	}
	return value, nil
}

// keyDamage returns a damage error with the id of the conversation that owns the key. If the conversation doesn't exist any
// more, the cause is returned as it is.
func keyDamage(c *conn, n int64, cause error) error {
	r, err := c.queryRow("SELECT id FROM conversations WHERE n = ?", n)
	if err != nil || r == nil {
		return errors.Join(cause, err)
	}
	return &journal.DamageError{Conversation: r.text(0), Err: cause}
}

// expired reports whether an expiry time has passed. 0 means never.
func expired(at int64, clock time.Time) bool { return at != 0 && at <= clock.UnixMilli() }

// Keys implements [journal.Journal].
func (j *Journal) Keys(ctx context.Context, prefix string) ([]journal.KeyValue, error) {
	return j.keys(ctx, prefix, "", -1)
}

// KeysAfter implements [journal.Journal].
func (j *Journal) KeysAfter(ctx context.Context, prefix, after string, limit int) ([]journal.KeyValue, error) {
	return j.keys(ctx, prefix, after, limit)
}

// keys lists at most limit keys. A negative limit means all. A damaged key of an ordinary conversation is omitted, as Get
// refuses it; one of the gateway's own logs is listed with a nil value.
func (j *Journal) keys(ctx context.Context, prefix, past string, limit int) ([]journal.KeyValue, error) {
	// Expired keys and those of a conversation that is being deleted are left out.
	query := `SELECT kv.key, value, expires, secrets.key, n FROM kv JOIN secrets ON n = conversation
		WHERE kv.key >= ? AND kv.key > ? AND (expires = 0 OR expires > ?) AND secrets.key <> zeroblob(?)`
	args := []any{prefix, past, time.Now().UnixMilli(), keySize}
	// If no string is above those with the prefix, as for an empty prefix, the keys need no upper bound.
	if end := after(prefix); end != "" {
		query, args = query+" AND kv.key < ?", append(args, end)
	}
	var pairs []journal.KeyValue
	err := j.readTx(ctx, func(c *conn) error {
		return c.forEach(query+" ORDER BY kv.key", func(r row) error {
			if len(pairs) == limit { // only listed keys count, so a list below the limit is the last page
				return errEnough
			}
			s, err := secretOf(r.int(4), r.blob(3))
			if err != nil {
				return err
			}
			value, err := s.open(r.blob(1), place{kind: inKey, name: r.text(0)})
			if err != nil {
				err = keyDamage(c, r.int(4), err)
				d, ok := errors.AsType[*journal.DamageError](err)
				if !ok {
					return err
				}
				// The damage is recorded, and the listing continues with the next key.
				_ = j.quarantine(d)
				if !system(d.Conversation) {
					return nil
				}
			}
			pairs = append(pairs, journal.KeyValue{Key: r.text(0), Value: value, Expires: r.int(2)})
			return nil
		}, args...)
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, fmt.Errorf("keys %s: %w", prefix, j.malformed(err))
	}
	return pairs, nil
}

// after returns the lowest string above all strings with a prefix, in byte order, or "" if no such string exists. It ends the
// range of an indexed prefix search.
func after(prefix string) string {
	p := []byte(prefix)
	for len(p) > 0 && p[len(p)-1] == 0xff {
		p = p[:len(p)-1]
	}
	if len(p) > 0 {
		p[len(p)-1]++
	}
	return string(p)
}
