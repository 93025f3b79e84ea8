package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// ReadTranscript calls fn with the transcript of a conversation as it is in memory and, if fn returns false, again with
// the whole transcript. If the conversation doesn't exist, fn isn't called and the error is nil. fn must not retain the
// transcript.
type ReadTranscript func(ctx context.Context, conversation string, fn func(*transcript.Transcript) bool) error

// Journal is the part of the journal that hooks use.
type Journal interface {
	Append(ctx context.Context, b journal.Batch) error
	Get(ctx context.Context, key string) ([]byte, error)
	KeysAfter(ctx context.Context, prefix, after string, limit int) ([]journal.KeyValue, error)
}

// Config configures [Hooks].
type Config struct {
	Hooks   []Hook
	Journal Journal
	Log     *slog.Logger
	Metrics *Metrics
}

const (
	// maxAge is how long a delivery is retried.
	maxAge = 24 * time.Hour
	// keyLifetime is when the journal may remove a delivery's key. It exceeds maxAge, so that a gateway that was stopped for a
	// day still logs the deliveries that it drops.
	keyLifetime = 2 * maxAge
	// maxInFlight limits the concurrent requests to one hook.
	maxInFlight = 8
	// windowSize limits the deliveries of one hook in memory. A full window takes a few megabytes.
	windowSize = 16 << 10
	// closeLimit is how long Close waits for requests in flight.
	closeLimit = 5 * time.Second
)

// Log is the gateway's own log that owns all deliveries. Prefix is the prefix of their keys, followed by the hook's name, a
// slash and the delivery's id. The values are JSON objects with the tenant and subject of the conversation, by which a purge
// finds them.
const (
	Log    = journal.SystemPrefix + "webhooks"
	Prefix = "webhook/"
)

// Hooks delivers events. See the package documentation for the order of calls. All methods are safe for concurrent use.
type Hooks struct {
	cfg         Config
	queues      []*queue
	transcripts ReadTranscript // set by Start

	tasks sync.WaitGroup
	stop  context.CancelFunc // prevents further deliveries
	end   context.CancelFunc // aborts requests in flight
}

// New returns hooks that aren't started. The caller has validated each hook with Check.
func New(cfg Config) *Hooks {
	cfg.Log, cfg.Metrics = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)), cmp.Or(cfg.Metrics, NewMetrics())
	h := &Hooks{cfg: cfg, stop: func() {}, end: func() {}}
	for _, hook := range cfg.Hooks {
		cfg.Metrics.begin(hook.Name)
		h.queues = append(h.queues, newQueue(h, hook, outbound.New(outbound.Options{AllowPrivate: hook.AllowPrivate, Timeout: tryLimit})))
	}
	return h
}

// Start begins to deliver, first what the previous process left. transcripts gives access to the conversations' current data.
func (h *Hooks) Start(ctx context.Context, transcripts ReadTranscript) error {
	h.transcripts = transcripts
	if len(h.queues) == 0 {
		return nil
	}
	at := time.Now().UnixMilli()
	err := h.cfg.Journal.Append(ctx, journal.Batch{Conversation: Log, Create: true, Summary: &journal.Summary{Created: at, Updated: at}})
	if err != nil && !errors.Is(err, journal.ErrExists) {
		return fmt.Errorf("webhook: create the log of deliveries: %w", err)
	}
	for _, q := range h.queues {
		if err := q.restore(ctx); err != nil {
			return err
		}
	}
	deliverCtx, end := context.WithCancel(context.Background())
	dispatchCtx, stop := context.WithCancel(deliverCtx)
	h.stop, h.end = stop, end
	for _, q := range h.queues {
		h.tasks.Go(func() { q.run(dispatchCtx, deliverCtx) })
	}
	return nil
}

// Close starts no further delivery, waits up to closeLimit for those in flight, and returns when all goroutines have ended. The
// remaining deliveries stay in the journal for the next process. The gateway must not commit deliveries any more when it is
// called.
func (h *Hooks) Close() {
	h.stop()
	timer := time.AfterFunc(closeLimit, h.end)
	h.tasks.Wait()
	timer.Stop()
	h.end()
	for _, q := range h.queues {
		if c, ok := q.client.(*http.Client); ok {
			c.CloseIdleConnections()
		}
	}
}

// Entries returns a delivery for each event and each hook that is configured for its type, as keys for the commit of the events. It is
// called on the commit path, so it does no I/O and never blocks.
func (h *Hooks) Entries(s *journal.Summary, events []event.Event) []journal.KeyValue {
	var keys []journal.KeyValue
	for i := range events {
		e := &events[i]
		for _, q := range h.queues {
			if !q.hook.wants(e.Type) {
				continue
			}
			d := newEntry(uuid.Must(uuid.NewV7()).String(), time.Now().UnixMilli(), s, e)
			kv, err := q.encode(&d)
			if err != nil { // can't happen: it consists of strings and numbers
				h.cfg.Log.Error("webhook: delivery can't be encoded", "hook", q.hook.Name, "conversation", s.ID, "error", err)
				continue
			}
			keys = append(keys, kv)
		}
	}
	return keys
}

// Finish starts the delivery of keys from Entries after their commit. err is the commit's result. If it is unknown, the queues
// read the journal to find out.
func (h *Hooks) Finish(keys []journal.KeyValue, err error) {
	for _, q := range h.queues {
		q.finishBatch(keys, err)
	}
}

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
