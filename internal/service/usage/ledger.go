package usage

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// journalStore is the part of the journal that the ledger uses.
type journalStore interface {
	Append(ctx context.Context, b journal.Batch) error
	KeysAfter(ctx context.Context, prefix, after string, limit int) ([]journal.KeyValue, error)
}

// Ledger creates rows and sums them. Create it with New and call Open first. After Open, its methods are safe for concurrent
// use.
type Ledger struct {
	store     journalStore
	prices    atomic.Pointer[Prices]
	retention time.Duration
	open      bool
}

// New returns a ledger. A retention of 0 means DefaultRetention.
func New(store journalStore, prices Prices, retention time.Duration) *Ledger {
	l := &Ledger{store: store, retention: cmp.Or(retention, DefaultRetention)}
	l.Reprice(prices)
	return l
}

// Reprice sets the prices for turns that end from now on. Existing rows keep their costs.
func (l *Ledger) Reprice(prices Prices) { l.prices.Store(&prices) }

// Open creates the log that the rows belong to, if it doesn't exist.
func (l *Ledger) Open(ctx context.Context) error {
	err := l.store.Append(ctx, journal.Batch{Conversation: logID, Create: true, Summary: &journal.Summary{}})
	if err != nil && !errors.Is(err, journal.ErrExists) {
		return fmt.Errorf("open usage: %w", err)
	}
	l.open = true
	return nil
}

// Turn describes a turn that ends.
type Turn struct {
	ID, Agent, Model, Tenant, Subject string
	Outcome                           event.Outcome
	Usage                             *event.Usage // nil if the agent reported none
	StartedAt, EndedAt                int64        // epoch milliseconds; StartedAt is 0 if the turn never started
}

// Entry returns the row of a turn, to be written in the commit that ends the turn. The row expires after the ledger's
// retention.
func (l *Ledger) Entry(t Turn) (journal.KeyValue, error) {
	if !l.open {
		return journal.KeyValue{}, errors.New("usage: the ledger is not open")
	}
	r := Row{
		Day: day(t.EndedAt), Turn: t.ID, Agent: t.Agent, Model: t.Model, Tenant: t.Tenant, Subject: t.Subject, Outcome: t.Outcome,
	}
	if t.StartedAt > 0 {
		r.Duration = max(t.EndedAt-t.StartedAt, 0)
	}
	if t.Usage != nil {
		u := *t.Usage
		u.Model = cmp.Or(u.Model, t.Model)
		r.Reported, r.Model = true, u.Model
		r.Tokens = Tokens{
			Input: tokens(u.Input), Output: tokens(u.Output), CacheRead: tokens(u.CacheRead), CacheWrite: tokens(u.CacheWrite), Reasoning: tokens(u.Reasoning),
		}
		r.Cost, r.Currency, _ = l.prices.Load().Cost(&u)
	}
	v, err := json.Marshal(&r)
	if err != nil {
		return journal.KeyValue{}, fmt.Errorf("usage: row of turn %s: %w", t.ID, err)
	}
	return journal.KeyValue{Key: r.key(), Value: v, Expires: t.EndedAt + l.retention.Milliseconds(), Log: logID}, nil
}

// maxTokens limits a token count reported by an agent, so that sums can't overflow. No real turn comes near it.
const maxTokens = 1e12

func tokens(n int64) int64 { return min(max(n, 0), maxTokens) }

const (
	// logID is the id of the log that owns the rows. It has no events.
	logID = journal.SystemPrefix + "usage"
	// Prefix is the prefix of the keys of all rows. Their values are JSON objects with the fields tenant and subject, by which
	// a purge finds them.
	Prefix = "usage/"
	// DefaultRetention is how long rows are kept: a year, and a month to evaluate it.
	DefaultRetention = 400 * 24 * time.Hour
	// dayFormat is the format of days. Days in this format sort in order of time.
	dayFormat = time.DateOnly
)

// Row is the stored usage of one turn.
type Row struct {
	Day     string `json:"day"` // day of the end in UTC, such as 2026-11-21
	Turn    string `json:"turn"`
	Agent   string `json:"agent,omitempty"`
	Model   string `json:"model,omitempty"`
	Tenant  string `json:"tenant,omitempty"`
	Subject string `json:"subject,omitempty"` // empty for the operator's own turns
	Tokens
	// Reported means that the agent reported usage, even if all counts are 0.
	Reported bool `json:"reported,omitempty"`
	// Cost is valid if Currency is set.
	Cost     Amount        `json:"cost,omitzero"`
	Currency string        `json:"currency,omitempty"`
	Outcome  event.Outcome `json:"outcome"`
	Duration int64         `json:"duration"` // from start to end, milliseconds; 0 if the turn never started
}

// Tokens are token counts of a turn or a sum of them.
type Tokens struct {
	Input      int64 `json:"input"` // excludes cache tokens
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	Reasoning  int64 `json:"reasoning"` // included in Output
}

// add adds the counts of o. They are capped at 1e12 per turn, so a sum can't overflow.
func (t *Tokens) add(o *Tokens) {
	t.Input += o.Input
	t.Output += o.Output
	t.CacheRead += o.CacheRead
	t.CacheWrite += o.CacheWrite
	t.Reasoning += o.Reasoning
}

// day returns the UTC day of a time in epoch milliseconds.
func day(ms int64) string { return time.UnixMilli(ms).UTC().Format(dayFormat) }

// key returns the key of the row. Keys sort by day and then by subject, so the rows of one subject and day are adjacent.
func (r *Row) key() string { return subjectPrefix(r.Day, r.Tenant, r.Subject) + r.Turn }

func subjectPrefix(day, tenant, subject string) string {
	sum := sha256.Sum256([]byte(tenant + "\x00" + subject))
	return Prefix + day + "/" + hex.EncodeToString(sum[:8]) + "/"
}

// rowOf decodes a stored row.
func rowOf(kv journal.KeyValue) (r Row, err error) {
	if err = json.Unmarshal(kv.Value, &r); err != nil {
		return r, fmt.Errorf("usage: row %s: %w", kv.Key, err)
	}
	return r, nil
}

// dayOfKey returns the day in a row's key.
func dayOfKey(key string) string {
	day, _, _ := strings.Cut(strings.TrimPrefix(key, Prefix), "/")
	return day
}
