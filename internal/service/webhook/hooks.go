package webhook

import (
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

// Look calls fn with a conversation's transcript, as far as it is in memory, and where fn returns false again with the
// whole. That it is not there is no error: fn is then not called. fn keeps nothing of what it sees.
type ReadTranscript func(ctx context.Context, conversation string, fn func(*transcript.Transcript) bool) error

// Journal is the part of the journal that hooks use.
type Journal interface {
	Append(ctx context.Context, b journal.Batch) error
	Get(ctx context.Context, key string) ([]byte, error)
	KeysAfter(ctx context.Context, prefix, after string, limit int) ([]journal.KeyValue, error)
}

// Config configures Hooks.
type Config struct {
	Hooks   []Hook
	Journal Journal
	Log     *slog.Logger
	Metrics *Metrics
}

const (
	// keep is for how long a delivery is tried.
	maxAge = 24 * time.Hour
	// keepKey is how long its key stays at most: one that a stopped gateway could not try for long is dropped with a word.
	keyLifetime = 2 * maxAge
	// inFlight is how many deliveries of one hook are out at a time.
	maxInFlight = 8
	// windowSize is how many deliveries of one hook are held in memory: some megabytes.
	windowSize = 16 << 10
	// closeLimit is how long deliveries that are out at the end may take.
	closeLimit = 5 * time.Second
)

// Log is the conversation of the gateway's own to which all deliveries belong. Prefix begins their keys, which go on with
// the hook's name, a slash and the delivery's id; the values are JSON with the tenant and the subject of the conversation.
const (
	Log    = journal.SystemPrefix + "webhooks"
	Prefix = "webhook/"
)

// Hooks deliver. Make them with New before the gateway whose Recorder they are, start them before it starts, and close
// them after it has stopped. All methods may be called from several goroutines.
type Hooks struct {
	cfg         Config
	queues      []*queue
	transcripts ReadTranscript // set by Start

	tasks sync.WaitGroup
	stop  context.CancelFunc // begin nothing more
	end   context.CancelFunc // let go of what is out
}

// New returns hooks that have not started. The hooks were checked.
func New(cfg Config) *Hooks {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics()
	}
	h := &Hooks{cfg: cfg, stop: func() {}, end: func() {}}
	for _, hook := range cfg.Hooks {
		cfg.Metrics.begin(hook.Name)
		h.queues = append(h.queues, newQueue(h, hook, outbound.New(outbound.Options{AllowPrivate: hook.AllowPrivate, Timeout: tryLimit})))
	}
	return h
}

// Start takes up what the last run left undelivered. look is how deliveries see what they tell of.
func (h *Hooks) Start(ctx context.Context, transcripts ReadTranscript) error {
	h.transcripts = transcripts
	if len(h.queues) == 0 {
		return nil
	}
	at := time.Now().UnixMilli()
	err := h.cfg.Journal.Append(ctx, journal.Batch{Conversation: Log, Create: true, Summary: &journal.Summary{Created: at, Updated: at}})
	if err != nil && !errors.Is(err, journal.ErrExists) {
		return fmt.Errorf("webhook: make the log of deliveries: %w", err)
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

// Close begins no further delivery, gives those that are out a moment, and returns when every goroutine has ended. What
// was not delivered lies in the journal for the next start.
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

// Record returns a delivery for each hook that wants to be told of one of the events. It is a gateway's recorder.
func (h *Hooks) Entries(s *journal.Summary, events []event.Event) []journal.KeyValue {
	var keys []journal.KeyValue
	for i := range events {
		e := &events[i]
		switch e.Type {
		case event.TurnEnd, event.TurnWait, event.MessageAdd:
		default:
			continue
		}
		for _, q := range h.queues {
			if !q.hook.wants(e.Type) {
				continue
			}
			d := newEntry(uuid.Must(uuid.NewV7()).String(), time.Now().UnixMilli(), s, e)
			kv, err := q.encode(&d)
			if err != nil { // it is made of strings and numbers
				h.cfg.Log.Error("webhook not recorded", "hook", q.hook.Name, "conversation", s.ID, "error", err)
				continue
			}
			keys = append(keys, kv)
		}
	}
	return keys
}

// Recorded has what was recorded delivered.
func (h *Hooks) Finish(keys []journal.KeyValue, err error) {
	for _, q := range h.queues {
		q.finishBatch(keys, err)
	}
}
