// Webhooks of subscriptions: their signatures, when they are sent and repeated, and when leases end.

package streams

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
)

// signingName is the key under which the seed of the signatures is stored. It survives restarts, because receivers keep the public key.
const signingName = "stream/signing"

// signingKey signs webhooks, and authenticates the tokens of workers.
type signingKey struct {
	id      string
	private ed25519.PrivateKey
	macKey  [sha256.Size]byte
}

// newSigningKey returns the key of a seed.
func newSigningKey(seed []byte) *signingKey {
	k := &signingKey{private: ed25519.NewKeyFromSeed(seed), macKey: sha256.Sum256(append([]byte("leat streams tokens\x00"), seed...))}
	sum := sha256.Sum256(k.private.Public().(ed25519.PublicKey))
	k.id = "ds_" + hex.EncodeToString(sum[:8])
	return k
}

// signing returns the key, or nil if there is none yet.
func (s *Store) signing(ctx context.Context) (*signingKey, error) {
	s.mu.Lock()
	k := s.key
	s.mu.Unlock()
	if k != nil {
		return k, nil
	}
	seed, err := s.journal.Get(ctx, signingName)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, gateway.JournalError("signing key", err)
	}
	k = newSigningKey(seed)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = k
	return k, nil
}

// secret is signing for a subscription that exists, which needs the key.
func (s *Store) secret(ctx context.Context) (*signingKey, error) {
	k, err := s.signing(ctx)
	if k == nil && err == nil {
		err = refuse(CodeNotFound, "there is no such subscription")
	}
	return k, err
}

// makeSigningKey creates and stores the key, if there is none yet. The first subscription needs it.
func (s *Store) makeSigningKey(ctx context.Context) error {
	unlock, err := s.locks.Lock(ctx, signingName)
	if err != nil {
		return err
	}
	defer unlock()
	if k, err := s.signing(ctx); k != nil || err != nil {
		return err
	}
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return fmt.Errorf("streams: signing key: %w", err)
	}
	if err := s.gw.Audit().PutKeys(ctx, journal.KeyValue{Key: signingName, Value: private.Seed()}); err != nil {
		return gateway.JournalError("store signing key", err)
	}
	return nil
}

// PublicKey returns the id of the key that signs webhooks, and the key itself in the form of a JSON Web Key. Both are empty as long as there has
// been no subscription.
func (s *Store) PublicKey(ctx context.Context) (id, x string, err error) {
	k, err := s.signing(ctx)
	if k == nil || err != nil {
		return "", "", err
	}
	return k.id, base64.RawURLEncoding.EncodeToString(k.private.Public().(ed25519.PublicKey)), nil
}

// sign returns the header Webhook-Signature for a body.
func (k *signingKey) sign(body []byte, at time.Time) string {
	text := fmt.Appendf(nil, "%d.%s", at.Unix(), body)
	return fmt.Sprintf("t=%d,kid=%s,ed25519=%s", at.Unix(), k.id, base64.RawURLEncoding.EncodeToString(ed25519.Sign(k.private, text)))
}

// alarms say when something is to be done for a subscription, by its key: its lease ends, or its webhook is sent.
type alarms map[string]alarm

// alarm is an entry of alarms.
type alarm struct {
	owner quota.Account
	at    int64 // epoch milliseconds; 0 means that only an append matters
}

// next returns the time of a subscription's next alarm, or 0.
func (sub *subscription) next() int64 {
	if sub.Retry != 0 {
		return sub.Retry
	}
	return sub.Until
}

// schedule notes the next alarm of a subscription, and wakes Run if it may be the first one.
func (s *Store) schedule(sub *subscription) {
	s.mu.Lock()
	s.alarms[sub.key()] = alarm{sub.owner(), sub.next()}
	s.mu.Unlock()
	s.kick()
}

// unschedule removes a subscription.
func (s *Store) unschedule(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.alarms, key)
}

// kick wakes Run.
func (s *Store) kick() {
	select {
	case s.kicked <- struct{}{}:
	default:
	}
}

// appended tells the subscriptions of a stream's owner that the stream has grown. It doesn't wait for them.
func (s *Store) appended(owner quota.Account, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.alarms {
		if a.owner == owner {
			s.touched[touch{owner, path}] = true
			s.kick()
			return
		}
	}
}

// touch is a stream that has grown.
type touch struct {
	owner quota.Account
	path  string
}

// loadSubscriptions schedules the stored subscriptions. Those that have no wake look for what was appended before the process ended.
func (s *Store) loadSubscriptions(ctx context.Context) error {
	for kv, err := range journal.EachKey(ctx, s.journal.KeysAfter, SubscriptionPrefix, "", keyPage) {
		if err != nil {
			return gateway.JournalError("read subscriptions", err)
		}
		var sub subscription
		if err := json.Unmarshal(kv.Value, &sub); err != nil {
			return fmt.Errorf("streams: subscription: %w", err)
		}
		s.schedule(&sub)
		for d, err := range journal.EachKey(ctx, s.journal.KeysAfter, ownerPrefix(sub.owner()), "", keyPage) {
			if err != nil {
				return gateway.JournalError("list streams", err)
			}
			var about description
			if err := json.Unmarshal(d.Value, &about); err != nil {
				return fmt.Errorf("streams: description: %w", err)
			}
			s.appended(sub.owner(), about.Path)
		}
	}
	return nil
}

// attend does what is due for subscriptions, and returns how long until the next alarm.
func (s *Store) attend(ctx context.Context) time.Duration {
	s.mu.Lock()
	touched := s.touched
	s.touched = map[touch]bool{}
	now, wait := time.Now().UnixMilli(), sweepEvery
	var due []string
	grown := map[string][]touch{} // by subscription
	for key, a := range s.alarms {
		switch {
		case a.at == 0:
		case a.at <= now:
			due = append(due, key)
		default:
			wait = min(wait, time.Duration(a.at-now)*time.Millisecond)
		}
		for t := range touched {
			if t.owner == a.owner {
				grown[key] = append(grown[key], t)
			}
		}
	}
	s.mu.Unlock()
	hasFailed := false
	for key, paths := range grown {
		err := s.with(ctx, key, func(sub *subscription) error { return s.grow(ctx, sub, paths) })
		if s.logFailure(ctx, err) {
			hasFailed = true
			for _, t := range paths {
				s.appended(t.owner, t.path)
			}
		}
	}
	for _, key := range due {
		hasFailed = s.logFailure(ctx, s.ring(ctx, key)) || hasFailed
	}
	switch {
	case hasFailed:
		return retryAfter
	case len(grown)+len(due) > 0:
		return 0 // which may have changed the alarms
	}
	return wait
}

// retryAfter is how long Run waits after the journal has failed.
const retryAfter = time.Second

// logFailure logs the failure of a subscription, and reports whether it is to be tried again. A subscription that was deleted isn't.
func (s *Store) logFailure(ctx context.Context, err error) bool {
	var gone *SubscriptionError
	if err == nil || ctx.Err() != nil || errors.As(err, &gone) {
		return false
	}
	s.log.Warn("streams: subscription", "error", err)
	return true
}

// grow links the streams that match, and begins a wake.
func (s *Store) grow(ctx context.Context, sub *subscription, paths []touch) error {
	isConcerned := false
	for _, t := range paths {
		if sub.Links[t.path] == nil && sub.matches(t.path) {
			if err := sub.link(t.path, false, 0); err != nil {
				s.log.Warn("streams: subscription", "subscription", sub.ID, "error", err)
			}
		}
		isConcerned = isConcerned || sub.Links[t.path] != nil
	}
	if !isConcerned {
		return nil
	}
	_, err := s.wakeUp(ctx, sub)
	return err
}

// ring does what an alarm is for: it ends a lease, or sends a webhook.
func (s *Store) ring(ctx context.Context, key string) error {
	var send *subscription
	err := s.with(ctx, key, func(sub *subscription) error {
		now := time.Now().UnixMilli()
		switch {
		case sub.Retry != 0 && sub.Retry <= now:
			sub.Retry, sub.Until = 0, now+sub.Plan.LeaseMillis
			copied := *sub
			send = &copied
		case sub.Retry == 0 && sub.Until != 0 && sub.Until <= now:
			_, err := s.end(ctx, sub)
			return err
		}
		return nil
	})
	if err != nil || send == nil {
		return err
	}
	s.deliveries.Go(func() { s.logFailure(ctx, s.deliver(ctx, send)) })
	return nil
}

// deliveryLimit is how many webhooks are sent at once. Others wait for one of them.
const deliveryLimit = 16

const (
	// Failed webhooks are repeated after a second, and then after twice as long each time, up to a minute.
	firstRetry, lastRetry = time.Second, time.Minute
	// jitter is by how much a delay differs at random, so that receivers that were down aren't flooded.
	jitter = 0.2
)

// deliver sends a webhook, and applies its answer.
func (s *Store) deliver(ctx context.Context, sub *subscription) error {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	isDone, err := s.send(ctx, sub)
	if ctx.Err() != nil {
		return ctx.Err() // the lease ends after the restart, and another wake begins
	}
	return s.with(ctx, sub.key(), func(now *subscription) error {
		if now.Generation != sub.Generation || now.Wake != sub.Wake {
			return nil // a callback has ended it
		}
		switch {
		case err != nil:
			now.Failures++
			now.Retry, now.Until = time.Now().Add(backoff(now.Failures)).UnixMilli(), 0
			s.log.Info("streams: webhook failed; it is repeated", "subscription", sub.ID, "failures", now.Failures, "error", outbound.Reason(err))
		case isDone:
			for path, tail := range sub.Snapshot {
				if l := now.Links[path]; l != nil {
					l.Acked = max(l.Acked, tail)
				}
			}
			now.Failures = 0
			_, err := s.end(ctx, now)
			return err
		default:
			now.Failures = 0
		}
		return nil
	})
}

// backoff returns the delay after a number of failures.
func backoff(failures int) time.Duration {
	d := min(firstRetry<<min(failures-1, 10), lastRetry)
	return time.Duration(float64(d) * (1 + jitter*(2*rand.Float64()-1)))
}

// WakeLink is a stream in the body of a webhook and in the answer to a claim.
type WakeLink struct {
	Path     string `json:"path"`
	LinkType string `json:"link_type"`
	Acked    string `json:"acked_offset"`
	Tail     string `json:"tail_offset"`
	Pending  bool   `json:"has_pending"`
}

// WakeLinks converts streams to the form that workers get.
func WakeLinks(links []LinkState) []WakeLink {
	list := []WakeLink{}
	for _, l := range links {
		list = append(list, WakeLink{l.Path, l.LinkType(), l.Acked, l.Tail, l.IsPending})
	}
	return list
}

// LinkType returns why the subscription has the stream, in the protocol's words.
func (l *LinkState) LinkType() string {
	if l.IsExplicit {
		return "explicit"
	}
	return "glob"
}

// webhookBody is the body of a webhook.
type webhookBody struct {
	SubscriptionID string     `json:"subscription_id"`
	WakeID         string     `json:"wake_id"`
	Generation     int64      `json:"generation"`
	Streams        []WakeLink `json:"streams"`
	CallbackURL    string     `json:"callback_url"`
	CallbackToken  string     `json:"callback_token"`
}

// send sends a webhook, and reports whether the receiver has processed everything.
func (s *Store) send(ctx context.Context, sub *subscription) (isDone bool, err error) {
	secret, err := s.secret(ctx)
	if err != nil {
		return false, err
	}
	links, err := s.linkStates(ctx, sub)
	if err != nil {
		return false, err
	}
	body, err := json.Marshal(webhookBody{
		sub.ID, sub.Wake, sub.Generation, WakeLinks(links), sub.Base + "__ds/subscriptions/" + sub.ID + "/callback", secret.token(sub),
	})
	if err != nil {
		return false, fmt.Errorf("webhook: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, sub.Plan.URL, bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("webhook: %w", err)
	}
	r.Header.Set("Content-Type", typeJSON)
	r.Header.Set("Webhook-Signature", secret.sign(body, time.Now()))
	client := s.public
	if strings.HasPrefix(sub.Plan.URL, "http://") {
		client = s.loopback // which checkURL allows only the operator to name
	}
	res, err := client.Do(r)
	if err != nil {
		return false, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode >= http.StatusMultipleChoices {
		return false, fmt.Errorf("webhook: status %d", res.StatusCode)
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return false, err
	}
	var answer struct {
		Done bool `json:"done"`
	}
	return json.Unmarshal(b, &answer) == nil && answer.Done, nil // any other answer means that callbacks follow
}
