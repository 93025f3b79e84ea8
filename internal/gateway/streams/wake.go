// Wakes: how a subscription's worker gets to know of new data, has it for itself for a while, and says what it has
// processed.

package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/quota"
)

// Wake is what a worker gets when it claims a subscription.
type Wake struct {
	ID          string
	Generation  int64
	Token       string
	Links       []linkState
	LeaseMillis int64
}

// Report is what a worker sends about a wake.
type Report struct {
	Wake       string
	Generation int64
	Acks       []Ack
	IsDone     bool
	// IsRelease gives the lease back, whatever is processed.
	IsRelease bool
}

// Ack says that a stream is processed up to a position.
type Ack struct {
	Path     string
	Position int64
}

// pending returns the first stream with data that isn't processed, or "".
func pending(links []linkState) string {
	for _, l := range links {
		if l.IsPending {
			return l.Path
		}
	}
	return ""
}

// wakeUp begins a wake if there is something to process and no wake has begun. It returns whether it did. The caller
// stores the subscription.
func (s *Store) wakeUp(ctx context.Context, sub *subscription) (bool, error) {
	if sub.Wake != "" || sub.Holder != "" {
		return false, nil
	}
	links, err := s.linkStates(ctx, sub)
	if err != nil {
		return false, err
	}
	path := pending(links)
	if path == "" {
		return false, nil
	}
	// The snapshot is what a webhook that answers "done" has processed. Data that comes later needs another wake.
	sub.Generation++
	sub.Wake, sub.Snapshot = "w_"+random(12), map[string]int64{}
	for _, l := range links {
		position, _, _ := strings.Cut(l.Tail, "_")
		if sub.Snapshot[l.Path], err = strconv.ParseInt(position, 10, 64); err != nil {
			return false, fmt.Errorf("streams: offset: %w", err)
		}
	}
	if sub.Plan.Type == typeWebhook {
		sub.Retry = time.Now().UnixMilli() // it is delivered when this is stored
		return true, nil
	}
	return true, s.announce(ctx, sub, path)
}

// announce writes the message of a wake to the stream that workers read. Without that stream, workers can claim the
// subscription all the same.
func (s *Store) announce(ctx context.Context, sub *subscription, path string) error {
	body, err := json.Marshal(map[string]any{
		"type": "wake", "subscription_id": sub.ID, "stream": path, "generation": sub.Generation, "ts": time.Now().UnixMilli(),
	})
	if err != nil {
		return fmt.Errorf("streams: wake: %w", err)
	}
	key := keyOf(sub.owner(), sub.Plan.Wake)
	unlock, err := s.locks.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	st, err := s.open(ctx, key)
	if errors.Is(err, gateway.ErrNotFound) || errors.Is(err, ErrGone) {
		s.log.Warn("streams: a subscription's wake stream does not exist", "subscription", sub.ID)
		return nil
	}
	if err != nil {
		return err
	}
	defer s.release(st)
	if mediaType(st.about.ContentType) != typeJSON || st.about.IsClosed {
		s.log.Warn("streams: a subscription's wake stream is closed, or isn't one of JSON", "subscription", sub.ID)
		return nil
	}
	content, err := newPayload(typeJSON, body)
	if err != nil {
		return err
	}
	return s.commit(ctx, st, change{payloads: []*payload{content}})
}

// end clears the current wake, and begins the next one if there is something to process.
func (s *Store) end(ctx context.Context, sub *subscription) (hasNext bool, err error) {
	sub.Wake, sub.Holder, sub.LeaseEnd, sub.Retry, sub.Snapshot = "", "", 0, 0, nil
	return s.wakeUp(ctx, sub)
}

// Claim gives a worker the lease of a subscription.
func (s *Store) Claim(ctx context.Context, p gateway.Principal, id, worker string) (wake Wake, err error) {
	if err := isOpenTo(p, gateway.ActionWrite); err != nil {
		return wake, err
	}
	secret, err := s.secret(ctx)
	if err != nil {
		return wake, err
	}
	err = s.with(ctx, subscriptionKey(p.Account(), id), func(sub *subscription) error {
		switch {
		case sub.Plan.Type != typePull:
			return refuse(CodeInvalid, "only a subscription of type %s can be claimed", typePull)
		case worker == "" || len(worker) > maxText:
			return refuse(CodeInvalid, "a worker has a name of at most %d bytes", maxText)
		case sub.Holder != "":
			return &SubscriptionError{Code: codeClaimed, Message: "another worker has the lease", Holder: sub.Holder, Generation: sub.Generation}
		}
		// A worker may ask before Run has looked at the last append. The claim begins the wake then.
		if _, err := s.wakeUp(ctx, sub); err != nil {
			return err
		}
		links, err := s.linkStates(ctx, sub)
		if err != nil {
			return err
		}
		if pending(links) == "" {
			return refuse(codeNothing, "nothing is to be processed")
		}
		sub.Holder, sub.LeaseEnd = worker, time.Now().UnixMilli()+sub.Plan.LeaseMillis
		wake = Wake{sub.Wake, sub.Generation, secret.token(sub), links, sub.Plan.LeaseMillis}
		return nil
	})
	return wake, err
}

// Report applies what a worker sends, and extends its lease. The token decides whose subscription it is. It returns
// whether another wake has begun.
func (s *Store) Report(ctx context.Context, token, id string, r Report) (hasNext bool, err error) {
	secret, err := s.secret(ctx)
	if err != nil {
		return false, err
	}
	claims, ok := secret.open(token)
	if !ok || claims.ID != id {
		return false, refuse(CodeInvalidToken, "the token is not one of this subscription")
	}
	owner := quota.Account{Tenant: claims.Tenant, Subject: claims.Subject}
	err = s.with(ctx, subscriptionKey(owner, id), func(sub *subscription) (err error) {
		if claims.Generation != sub.Generation || r.Generation != sub.Generation || r.Wake != sub.Wake || sub.Wake == "" {
			return refuse(codeFenced, "another wake has begun since, or this one has ended")
		}
		if err := s.acknowledge(ctx, sub, r.Acks); err != nil {
			return err
		}
		if r.IsDone || r.IsRelease {
			hasNext, err = s.end(ctx, sub)
			return err
		}
		sub.LeaseEnd = time.Now().UnixMilli() + sub.Plan.LeaseMillis
		return nil
	})
	return hasNext, err
}

// acknowledge checks all positions before it applies any of them.
func (s *Store) acknowledge(ctx context.Context, sub *subscription, acks []Ack) error {
	for _, a := range acks {
		l := sub.Links[a.Path]
		if l == nil {
			return refuse(CodeOffset, "%.100q is not a stream of the subscription", a.Path)
		}
		about, err := s.peek(ctx, sub.owner(), a.Path)
		if err != nil {
			return err
		}
		if a.Position < l.Acked || a.Position > about.Tail {
			return refuse(CodeOffset, "the offset of %.100q is before the last one, or beyond the end of the stream", a.Path)
		}
	}
	for _, a := range acks {
		sub.Links[a.Path].Acked = a.Position
	}
	return nil
}
