// Wakes: how a subscription's worker gets to know of new data, has it for itself for a while, and says what it has processed.

package streams

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
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
	Links       []LinkState
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
func pending(links []LinkState) string {
	for _, l := range links {
		if l.IsPending {
			return l.Path
		}
	}
	return ""
}

// wakeUp begins a wake if there is something to process and no wake has begun. It returns whether it did. The caller stores the subscription.
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

// announce writes the message of a wake to the stream that workers read. Without that stream, workers can claim the subscription all the same.
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
	sub.Wake, sub.Holder, sub.Until, sub.Retry, sub.Snapshot = "", "", 0, 0, nil
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
			return &SubscriptionError{Code: CodeClaimed, Message: "another worker has the lease", Holder: sub.Holder, Generation: sub.Generation}
		}
		if _, err := s.wakeUp(ctx, sub); err != nil {
			return err
		}
		links, err := s.linkStates(ctx, sub)
		if err != nil {
			return err
		}
		if pending(links) == "" {
			return refuse(CodeNothing, "nothing is to be processed")
		}
		sub.Holder, sub.Until = worker, time.Now().UnixMilli()+sub.Plan.LeaseMillis
		wake = Wake{sub.Wake, sub.Generation, secret.token(sub), links, sub.Plan.LeaseMillis}
		return nil
	})
	return wake, err
}

// Report applies what a worker sends, and extends its lease. The token decides whose subscription it is. It returns whether another wake has
// begun.
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
			return refuse(CodeFenced, "another wake has begun since, or this one has ended")
		}
		if err := s.acknowledge(ctx, sub, r.Acks); err != nil {
			return err
		}
		if r.IsDone || r.IsRelease {
			hasNext, err = s.end(ctx, sub)
			return err
		}
		sub.Until = time.Now().UnixMilli() + sub.Plan.LeaseMillis
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

// claims are what a worker's token says.
type claims struct {
	Tenant     string `json:"t,omitempty"`
	Subject    string `json:"s,omitempty"`
	ID         string `json:"i"`
	Generation int64  `json:"g"`
}

// token returns a token for the current wake of a subscription.
func (k *signingKey) token(sub *subscription) string {
	b, _ := json.Marshal(claims{sub.Tenant, sub.Subject, sub.ID, sub.Generation}) // never fails for these types
	body := base64.RawURLEncoding.EncodeToString(b)
	return body + "." + k.mac(body)
}

// mac authenticates a text. Its key is derived from that of the signatures, so that neither reveals the other.
func (k *signingKey) mac(text string) string {
	h := hmac.New(sha256.New, k.macKey[:])
	h.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// open returns what a token says. It compares in constant time, so that no valid token can be found byte by byte.
func (k *signingKey) open(token string) (c claims, ok bool) {
	body, mac, _ := strings.Cut(token, ".")
	if !hmac.Equal([]byte(mac), []byte(k.mac(body))) {
		return c, false
	}
	b, err := base64.RawURLEncoding.DecodeString(body)
	return c, err == nil && json.Unmarshal(b, &c) == nil
}
