package webpush

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// maxQueued limits the notices that wait to be addressed. The queue fills only when many turns end at the same
	// moment, because addressing a notice doesn't wait for its delivery.
	maxQueued = 256
	// maxMessages limits the messages of all users that are being sent or wait for a retry, because each has a
	// goroutine and its payload in memory while a push service is down. maxInFlight limits the requests that are sent
	// at the same time.
	maxMessages = 1024
	maxInFlight = 8
	// tryLimit limits one request, including its connection and the response. closeLimit limits how long Close waits
	// for requests in flight. Messages that wait for a retry are given up at once.
	tryLimit   = 10 * time.Second
	closeLimit = 3 * time.Second
	// fallbackContact is the contact of a gateway without a public https URL.
	fallbackContact = "https://github.com/leat-dev/leat"
)

// doer sends requests. [http.Client] implements it.
type doer interface {
	Do(r *http.Request) (*http.Response, error)
}

// Config configures [Open]. Journal is required.
type Config struct {
	Journal keyStore
	// Contact is an https URL of the gateway, which push services may show to their operators. If it is empty, it is the project's.
	Contact string
	// If Log is nil, nothing is logged.
	Log *slog.Logger
}

// Service notifies users. Its methods may be called concurrently, except Start and Close. Start it before the gateway
// commits, and close it after the last commit: a notice that is queued later is never sent.
type Service struct {
	// Show gets each notice, for open pages. It must not block. Set it before Start; it may be nil.
	Show func(Notice)

	log      *slog.Logger
	store    *store
	identity *identity
	client   doer
	schedule schedule

	nested nested
	queue  chan Notice
	// messages counts the messages that are being sent or wait for a retry, up to maxMessages.
	messages atomic.Int64
	// slots has one element for each request in flight.
	slots chan struct{}

	tasks sync.WaitGroup
	// stop ends the addressing of notices and the waits between attempts. Requests in flight continue until end
	// cancels them.
	stop context.CancelFunc
	// end aborts requests in flight.
	end context.CancelFunc
}

// Open reads the subscriptions and the key from the journal, and creates both the log and the key if they don't
// exist. It sends nothing until Start is called.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	s := &Service{
		log: cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)), store: newStore(cfg.Journal), schedule: defaultSchedule,
		client: outbound.New(outbound.Options{Timeout: tryLimit}), queue: make(chan Notice, maxQueued), slots: make(chan struct{}, maxInFlight),
		stop: func() {}, end: func() {},
	}
	key, err := s.store.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("webpush: %w", err)
	}
	if s.identity, err = newIdentity(key, cmp.Or(cfg.Contact, fallbackContact)); err != nil {
		return nil, fmt.Errorf("webpush: %w", err)
	}
	return s, nil
}

// Start starts the goroutine that addresses queued notices. It must be called at most once. Two contexts give Close
// two steps: addressing ends first, and requests in flight get some time before theirs ends.
func (s *Service) Start() {
	requests, end := context.WithCancel(context.Background())
	addressing, stop := context.WithCancel(requests)
	s.stop, s.end = stop, end
	s.tasks.Go(func() {
		for {
			select {
			case n := <-s.queue:
				s.address(addressing, requests, n)
			case <-addressing.Done():
				return
			}
		}
	})
}

// Close stops sending and waits for requests in flight, at most for closeLimit; after that they are aborted. Queued
// notices are lost, because a notice that arrives after a restart would be late. Close returns when all goroutines
// have ended, and may be called without Start.
func (s *Service) Close() {
	s.stop()
	timer := time.AfterFunc(closeLimit, s.end)
	s.tasks.Wait()
	timer.Stop()
	s.end()
	if c, ok := s.client.(*http.Client); ok {
		c.CloseIdleConnections()
	}
}

// Committed implements [gateway.Watcher]. It must not block, because the gateway calls it after each commit: it
// doesn't read the journal, and a notice that doesn't fit into the queue is dropped. Open pages get every notice,
// whether or not the user has subscriptions.
func (s *Service) Committed(c *journal.Summary, events []event.Event) {
	for _, n := range s.nested.notices(c, events) {
		if s.Show != nil {
			s.Show(n)
		}
		if len(s.store.of(account{n.Tenant, n.Subject})) == 0 {
			continue
		}
		select {
		case s.queue <- n:
		default:
			s.log.Warn("a notice was dropped, because too many are waiting", "conversation", n.Conversation, "turn", n.Turn)
		}
	}
}

// PublicKey returns the key that browsers need to subscribe: an uncompressed point in base64url.
func (s *Service) PublicKey() string { return s.identity.public }

// Subscribe stores a user's subscription, or renews it for another lifetime. Pages call it each time they are opened.
// If the endpoint belonged to another user, it now belongs to this one. The error wraps ErrSubscription if the
// subscription is invalid; other errors are those of the journal.
func (s *Service) Subscribe(ctx context.Context, tenant, subject string, sub Subscription) error {
	if err := sub.Check(); err != nil {
		return err
	}
	if err := s.store.save(ctx, account{tenant, subject}, sub); err != nil {
		return fmt.Errorf("webpush: store the subscription: %w", err)
	}
	return nil
}

// Unsubscribe deletes the user's subscription with an endpoint. If the user has no such subscription, nothing changes.
func (s *Service) Unsubscribe(ctx context.Context, tenant, subject, endpoint string) error {
	if err := s.store.drop(ctx, account{tenant, subject}, subscriptionID(endpoint)); err != nil {
		return fmt.Errorf("webpush: delete the subscription: %w", err)
	}
	return nil
}
