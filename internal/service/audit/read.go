package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/event"
)

// page is how much of the log is read at once, in bytes.
const page = 256 << 10

// errFound ends a search.
var errFound = errors.New("audit: found")

// Query selects entries. The zero value selects all.
type Query struct {
	After int64 // seq; only entries above it
	Since int64 // epoch milliseconds; only entries of that time and later
	// Subject selects what it did and what was done to it; Tenant is its tenant.
	Tenant, Subject string
	Conversation    string
}

// Selects reports whether an entry belongs to what q selects.
func (q *Query) selects(e *Entry) bool {
	return e.Seq > q.After && e.At >= q.Since && (q.Conversation == "" || e.Conversation == q.Conversation) &&
		(q.Subject == "" || e.concerns(q.Tenant, q.Subject))
}

// Read calls f with the selected entries in the order of the log, and returns the seq up to which it has looked, from
// which a later call goes on. An error of f ends it.
func (l *Log) Read(ctx context.Context, q Query, f func(Entry) error) (upto int64, err error) {
	upto = q.After
	err = l.scan(ctx, upto, func(ev *event.Event) error {
		e, err := entryOf(ev)
		if err == nil && q.selects(&e) {
			err = f(e)
		}
		if err == nil {
			upto = ev.Seq
		}
		return err
	})
	return upto, err
}

// each calls f with the log's events after a seq.
func (l *Log) scan(ctx context.Context, after int64, f func(*event.Event) error) error {
	for {
		r, err := l.journal.Read(ctx, Conversation, after, page)
		if err != nil {
			return fmt.Errorf("audit: read: %w", err)
		}
		for i := range r.Events {
			after = r.Events[i].Seq
			if err := f(&r.Events[i]); err != nil {
				return err
			}
		}
		if !r.HasMore || len(r.Events) == 0 {
			return nil
		}
	}
}

// Trim drops the entries from before a time, and returns how many that were.
func (l *Log) Trim(ctx context.Context, before time.Time) (n int, err error) {
	n, upto, err := l.before(ctx, before)
	if err != nil || n == 0 {
		return 0, err
	}
	if err := l.journal.Trim(ctx, Conversation, upto); err != nil {
		return 0, fmt.Errorf("audit: trim: %w", err)
	}
	return n, nil
}

// Before returns how many entries Trim would drop.
func (l *Log) Before(ctx context.Context, before time.Time) (n int, err error) {
	n, _, err = l.before(ctx, before)
	return n, err
}

func (l *Log) before(ctx context.Context, before time.Time) (n int, upto int64, err error) {
	err = l.scan(ctx, 0, func(ev *event.Event) error {
		if ev.At >= before.UnixMilli() {
			return errFound
		}
		upto, n = ev.Seq, n+1
		return nil
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return n, upto, err
}

// Blank takes the data out of all entries of what a subject did or what was done to it.
func (l *Log) Blank(ctx context.Context, tenant, subject string) (n int, err error) {
	match := func(ev *event.Event) bool {
		e, err := entryOf(ev)
		return err == nil && e.concerns(tenant, subject)
	}
	if n, err = l.Count(ctx, Query{Tenant: tenant, Subject: subject}); err != nil || n == 0 {
		return n, err
	}
	if err := l.journal.Blank(ctx, Conversation, match); err != nil {
		return 0, fmt.Errorf("audit: %w", err)
	}
	return n, nil
}

// Count returns how many entries a query selects, also of those that were noted and not moved yet.
func (l *Log) Count(ctx context.Context, q Query) (n int, err error) {
	if err := l.Flush(ctx); err != nil {
		return 0, err
	}
	_, err = l.Read(ctx, q, func(Entry) error { n++; return nil })
	return n, err
}

// Digest stands for a subject in what is to outlive it: whoever knows the name can tell that it was this one, the log
// itself does not name it.
func Digest(tenant, subject string) string {
	sum := sha256.Sum256([]byte(tenant + "\x00" + subject))
	return hex.EncodeToString(sum[:16])
}
