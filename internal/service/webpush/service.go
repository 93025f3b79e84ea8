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
	// maxQueued limits the notices that wait to be addressed. One page of them is a burst of as many ended turns.
	maxQueued = 256
	// maxMessages limits the messages that are being sent or wait for a retry, and maxInFlight the requests at a time.
	maxMessages = 1024
	maxInFlight = 8
	// tryLimit limits one request, and closeLimit how long Close waits for requests in flight.
	tryLimit   = 10 * time.Second
	closeLimit = 3 * time.Second
	// fallbackContact is the contact of a gateway without a public https URL.
	fallbackContact = "https://github.com/leat-dev/leat"
)

// doer sends requests. [http.Client] implements it.
type doer interface {
	Do(r *http.Request) (*http.Response, error)
}

// Config is what a service is made of. Journal is required.
type Config struct {
	Journal keyStore
	// Contact is an https URL of the gateway, which push services may show to their operators. If it is empty, it is the project's.
	Contact string
	Log     *slog.Logger // if it is nil, nothing is logged
}

// Service notifies users. Its methods may be called from several goroutines. Start it before the gateway commits, and close it after.
type Service struct {
	// Show gets each notice, for open pages. It must not block. Set it before Start; it may be nil.
	Show func(Notice)

	log      *slog.Logger
	store    *store
	identity *identity
	client   doer
	schedule schedule

	nested   nested
	queue    chan Notice
	messages atomic.Int64  // being sent, or waiting for a retry
	slots    chan struct{} // one for each request in flight

	tasks sync.WaitGroup
	stop  context.CancelFunc // no further attempts
	end   context.CancelFunc // aborts requests in flight
}

// Open reads the subscriptions and the key from the journal.
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

// Start begins to send notices.
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

// Close ends the service. It waits a moment for requests in flight.
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

// Committed implements [gateway.Watcher]. It must not block.
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

// Subscribe stores a user's subscription, or renews it. The error wraps ErrSubscription if the subscription is invalid.
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
