// Webhooks of subscriptions: what they contain, and when they are repeated.

package streams

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/base/outbound"
)

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
	// Whether the receiver got it isn't known then.
	if ctx.Err() != nil {
		return ctx.Err() // the lease ends after the restart, and another wake begins
	}
	return s.with(ctx, sub.key(), func(current *subscription) error {
		if current.Generation != sub.Generation || current.Wake != sub.Wake {
			return nil // a callback has ended it
		}
		switch {
		case err != nil:
			current.Failures++
			current.Retry, current.LeaseEnd = time.Now().Add(backoff(current.Failures)).UnixMilli(), 0
			s.log.Info("streams: webhook failed; it is repeated", "subscription", sub.ID, "failures", current.Failures, "error", outbound.Reason(err))
		case isDone:
			for path, tail := range sub.Snapshot {
				if l := current.Links[path]; l != nil {
					l.Acked = max(l.Acked, tail)
				}
			}
			current.Failures = 0
			_, err := s.end(ctx, current)
			return err
		default:
			current.Failures = 0
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
func WakeLinks(links []linkState) []WakeLink {
	list := []WakeLink{}
	for _, l := range links {
		list = append(list, WakeLink{l.Path, l.LinkType(), l.Acked, l.Tail, l.IsPending})
	}
	return list
}

// LinkType returns why the subscription has the stream, in the protocol's words.
func (l *linkState) LinkType() string {
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

// send describes the streams as they are now, not as they were when the wake began: a repeated webhook has newer data too. What is
// acknowledged by its answer is still the snapshot. send sends a webhook, and reports whether the receiver has processed everything.
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
		sub.ID, sub.Wake, sub.Generation, WakeLinks(links), sub.Base + "__ds/subscriptions/" + url.PathEscape(sub.ID) + "/callback", secret.token(sub),
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
