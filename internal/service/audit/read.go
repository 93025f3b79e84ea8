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

// page is the size of the pieces in which the log is read, in bytes.
const page = 256 << 10

// errFound ends a search early. It never reaches a caller.
var errFound = errors.New("audit: found")

// Query selects entries. The zero value selects all.
type Query struct {
	After int64 // only entries with a higher seq
	Since int64 // only entries from this time on, epoch milliseconds
	// Subject selects the entries that concern this subject of Tenant, as actor or as owner of the affected data. If it is
	// empty, Tenant is ignored.
	Tenant, Subject string
	Conversation    string
}

// selects reports whether the query selects an entry.
func (q *Query) selects(e *Entry) bool {
	return e.Seq > q.After && e.At >= q.Since && (q.Conversation == "" || e.Conversation == q.Conversation) &&
		(q.Subject == "" || e.concerns(q.Tenant, q.Subject))
}

// Read calls f with the selected entries in the order of the log. It returns the seq up to which it has read, including entries
// that weren't selected, so the caller can continue there. An error of f ends the read and is returned.
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

// scan calls f with the log's events after a seq, in order, until f returns an error.
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

// Trim removes the entries older than before and returns their number.
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

// Before returns the number of entries that Trim would remove.
func (l *Log) Before(ctx context.Context, before time.Time) (n int, err error) {
	n, _, err = l.before(ctx, before)
	return n, err
}

// before returns the number of entries older than a time and the seq of the last one. It stops at the first newer entry,
// because times ascend with seqs.
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

// Blank removes the data of all entries that concern a subject, in place. It returns their number.
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

// Count returns the number of entries that a query selects. It moves waiting entries first, so they are counted too.
func (l *Log) Count(ctx context.Context, q Query) (n int, err error) {
	if err := l.Flush(ctx); err != nil {
		return 0, err
	}
	_, err = l.Read(ctx, q, func(Entry) error { n++; return nil })
	return n, err
}

// Digest returns a stand-in for a subject's name in entries that outlive the subject. The same name always has the same digest,
// so an operator who knows the name can find the entries, but the log doesn't reveal it.
func Digest(tenant, subject string) string {
	sum := sha256.Sum256([]byte(tenant + "\x00" + subject))
	return hex.EncodeToString(sum[:16])
}
