package webpush

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/base/retry"
)

// messageLifetime is how long a push service stores a message for a browser that is offline. After that, the news
// that a turn has ended is stale. It is sent as the header TTL.
const messageLifetime = 12 * time.Hour

// schedule says when failed attempts are repeated, and when a message is given up.
type schedule struct {
	retry.Schedule
	// limit is how long after the first attempt another one may begin.
	limit time.Duration
}

// defaultSchedule gives up after 15 minutes, because an older notice is of little use. Jitter spreads the retries of
// many messages after an outage of a push service.
var defaultSchedule = schedule{retry.Schedule{Initial: 2 * time.Second, Max: 2 * time.Minute, Jitter: true}, 15 * time.Minute}

// address starts a goroutine for each browser of the notice's user, so a slow push service delays no other browser.
// ctx ends the attempts, and requests aborts the ones in flight. Beyond maxMessages, the notice's remaining browsers
// don't get it.
func (s *Service) address(ctx, requests context.Context, n Notice) {
	payload, err := json.Marshal(n)
	if err != nil { // can't happen: it consists of strings
		s.log.Error("a notice can't be encoded", "conversation", n.Conversation, "error", err)
		return
	}
	a := account{n.Tenant, n.Subject}
	for _, id := range s.store.of(a) {
		if s.messages.Add(1) > maxMessages {
			s.messages.Add(-1)
			s.log.Warn("a notice was dropped, because too many are waiting", "conversation", n.Conversation, "turn", n.Turn)
			return
		}
		s.tasks.Go(func() {
			defer s.messages.Add(-1)
			if err := s.deliver(ctx, requests, a, id, &n, payload); err != nil && requests.Err() == nil {
				s.log.Info("a notice was not delivered", "conversation", n.Conversation, "turn", n.Turn, "device", id[:8], "error", err)
			}
		})
	}
}

// deliver sends a message until the push service has accepted it, refuses it, or ctx is done. It returns nil if the
// message was accepted or the subscription has ended; an ended one is deleted. Only errors that wrap errTemporary are
// retried. The wait is the longer one of the schedule's and the push service's, and if it exceeds the limit the
// message is given up at once.
func (s *Service) deliver(ctx, requests context.Context, a account, id string, n *Notice, payload []byte) error {
	begin := time.Now()
	for failures := 1; ; failures++ {
		wait, err := s.attempt(ctx, requests, a, id, n, payload)
		switch {
		case errors.Is(err, errGone):
			if err := s.store.drop(requests, a, id); err != nil {
				return fmt.Errorf("delete an ended subscription: %w", err)
			}
			return nil
		case !errors.Is(err, errTemporary):
			return err
		}
		wait = max(wait, s.schedule.Wait(failures))
		if time.Since(begin)+wait > s.schedule.limit {
			return err
		}
		if retry.Sleep(ctx, wait) != nil {
			return err
		}
	}
}

// attempt sends a message once, when a slot is free. wait is the pause that the push service asked for in
// Retry-After, or 0.
//
// It reads the subscription for each attempt, because the user may have unsubscribed or renewed it in the meantime.
// If it no longer exists, attempt returns without an error. The errors wrap errGone, errRefused or errTemporary,
// except for a subscription that can't be used, which isn't retried either. They don't contain the endpoint.
func (s *Service) attempt(ctx, requests context.Context, a account, id string, n *Notice, payload []byte) (wait time.Duration, err error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	sub, err := s.store.get(requests, a, id)
	if err != nil {
		return 0, fmt.Errorf("%w: read the subscription: %w", errTemporary, err)
	}
	if sub == nil {
		return 0, nil // ended meanwhile
	}
	req, err := s.request(requests, sub, n, payload)
	if err != nil {
		return 0, err
	}
	res, err := s.client.Do(req)
	if err != nil {
		if outbound.IsPrivate(err) {
			return 0, fmt.Errorf("%w: %w", errRefused, outbound.Reason(err))
		}
		return 0, fmt.Errorf("%w: %w", errTemporary, outbound.Reason(err))
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body) // so that the connection can be used again
	switch code := res.StatusCode; {
	case code/100 == 2:
		return 0, nil
	case code == http.StatusNotFound, code == http.StatusGone:
		return 0, errGone
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500:
		return retry.After(res.Header.Get("Retry-After"), time.Now()), fmt.Errorf("%w: status %d", errTemporary, code)
	default:
		return 0, fmt.Errorf("%w: status %d", errRefused, code)
	}
}

// request returns the request for one message (RFC 8030, section 5), encrypted and signed again for each attempt. A
// question to the user is urgent, so that a phone that saves power is woken up; the end of a turn may wait.
func (s *Service) request(ctx context.Context, sub *Subscription, n *Notice, payload []byte) (*http.Request, error) {
	endpoint, err := sub.endpoint()
	if err != nil {
		return nil, err
	}
	body, err := encrypt(payload, sub)
	if err != nil {
		return nil, err
	}
	authorization, err := s.identity.authorization(endpoint, time.Now())
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.String(), bytes.NewReader(body))
	if err != nil {
		return nil, outbound.Reason(err)
	}
	req.Header.Set("Authorization", authorization)
	req.Header.Set("Content-Encoding", "aes128gcm")
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("TTL", strconv.Itoa(int(messageLifetime.Seconds())))
	req.Header.Set("Topic", topic(n.Conversation))
	req.Header.Set("Urgency", map[kind]string{kindRequest: "high", kindEnd: "normal"}[n.Kind])
	req.Header.Set("User-Agent", "Leat")
	return req, nil
}

// topic returns the name under which a newer message replaces one that wasn't delivered yet: a browser that was offline for hours shows
// the newest state of a conversation. The push service sees it, so it is a digest. It has at most 32 characters (RFC 8030).
func topic(conversation string) string {
	sum := sha256.Sum256([]byte(conversation))
	return base64.RawURLEncoding.EncodeToString(sum[:24])
}
