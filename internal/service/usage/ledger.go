package usage

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
