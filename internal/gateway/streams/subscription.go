// Subscriptions: what workers still have to process of some streams, and how that is stored.

package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
)

// SubscriptionPrefix is the prefix of the keys of subscriptions. Their values name the user.
const SubscriptionPrefix = "stream/subscription/"

// The kinds of subscriptions: a request to a worker's URL, or a message in a stream that workers read.
const (
	typeWebhook = "webhook"
	typePull    = "pull-wake"
)

const (
	// maxSubscriptions is how many subscriptions a user may have. Each is looked at for each append of the user.
	maxSubscriptions = 100
	// maxLinks is how many streams a subscription may have. All of them are stored with each of its changes.
	maxLinks = 1000
	// The limits and the default of a lease are those of the protocol.
	minLease, maxLease, defaultLease = time.Second, 10 * time.Minute, 30 * time.Second
	// maxText is the length of the longest id, pattern or description, in bytes.
	maxText = 512
)

// SubscriptionError is an error with a code of the protocol.
type SubscriptionError struct {
	Code    string
	Message string
	// Holder and Generation are those of the lease, if another worker has it.
	Holder     string
	Generation int64
}

func (e *SubscriptionError) Error() string { return e.Message }

// The codes of errors.
const (
	// The request is malformed, or contradicts itself.
	CodeInvalid = "INVALID_REQUEST"
	// The gateway sends no webhooks to the address.
	CodeURL = "WEBHOOK_URL_REJECTED"
	// It doesn't exist, or belongs to another user.
	CodeNotFound = "SUBSCRIPTION_NOT_FOUND"
	// The id is used by a subscription with another plan.
	codeExists = "SUBSCRIPTION_ALREADY_EXISTS"
	// Another worker has the lease.
	codeClaimed = "ALREADY_CLAIMED"
	// All streams are processed.
	codeNothing = "NO_PENDING_WORK"
	// The stream isn't linked, or the offset isn't between the last one and the end.
	CodeOffset = "INVALID_OFFSET"
	// The wake has ended, or a newer one has begun.
	codeFenced = "FENCED"
	// The token is of another subscription or gateway.
	CodeInvalidToken = "TOKEN_INVALID"
)

// refuse returns an error with a code.
func refuse(code, format string, args ...any) error {
	return &SubscriptionError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// subscription is the value of a subscription's key.
type subscription struct {
	Tenant  string `json:"tenant,omitempty"`
	Subject string `json:"subject"`
	ID      string `json:"id"`
	Plan    Plan   `json:"plan"`
	// Base is the URL below which the worker's callbacks go, as the creator reached the gateway.
	Base string `json:"base"`
	// Epoch milliseconds.
	Created int64 `json:"created"`
	// By path.
	Links map[string]*link `json:"links"`

	// Generation numbers the wakes. Wake is the id of the current one, or empty.
	Generation int64  `json:"generation"`
	Wake       string `json:"wake,omitempty"`
	// The worker that has claimed it.
	Holder string `json:"holder,omitempty"`
	// LeaseEnd is when the lease ends, and Retry when a failed webhook is repeated, epoch milliseconds.
	LeaseEnd int64 `json:"until,omitempty"`
	Retry    int64 `json:"retry,omitempty"`
	// In a row.
	Failures int `json:"failures,omitempty"`
	// Snapshot are the ends of the streams at the wake.
	Snapshot map[string]int64 `json:"snapshot,omitempty"`
}

// link is a stream of a subscription.
type link struct {
	// Named by a user.
	IsExplicit bool `json:"explicit,omitempty"`
	// Matched by the pattern.
	IsGlob bool `json:"glob,omitempty"`
	// The position up to which it is processed.
	Acked int64 `json:"acked"`
}

func (sub *subscription) owner() quota.Account {
	return quota.Account{Tenant: sub.Tenant, Subject: sub.Subject}
}

// subscriptionKey returns the key of a subscription.
func subscriptionKey(owner quota.Account, id string) string {
	return SubscriptionPrefix + digest(owner.Tenant, owner.Subject) + "/" + digest(id)
}
func (sub *subscription) key() string { return subscriptionKey(sub.owner(), sub.ID) }

// linkState is a stream of a subscription, for clients.
type linkState struct {
	Path       string
	IsExplicit bool
	// Offset.
	Acked     string
	Tail      string
	IsPending bool
}

// Subscription is a subscription, for clients.
type Subscription struct {
	ID      string
	Plan    Plan
	Created time.Time
	Links   []linkState
	// A webhook has failed and will be repeated.
	IsFailed bool
}

// subscriptionOf returns a stored subscription. The caller holds its lock.
func (s *Store) subscriptionOf(ctx context.Context, key string) (*subscription, error) {
	b, err := s.journal.Get(ctx, key)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, refuse(CodeNotFound, "there is no such subscription")
	}
	if err != nil {
		return nil, gateway.JournalError("look up subscription", err)
	}
	sub := &subscription{}
	if err := json.Unmarshal(b, sub); err != nil {
		return nil, fmt.Errorf("streams: subscription: %w", err)
	}
	return sub, nil
}

// with calls a function with a subscription while its lock is held, and stores what the function has changed.
func (s *Store) with(ctx context.Context, key string, change func(*subscription) error) error {
	unlock, err := s.locks.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	sub, err := s.subscriptionOf(ctx, key)
	if err != nil {
		return err
	}
	// Most looks at a subscription change nothing, and must not write.
	before, err := json.Marshal(sub)
	if err != nil {
		return fmt.Errorf("streams: subscription: %w", err)
	}
	if err := change(sub); err != nil {
		return err
	}
	after, err := json.Marshal(sub)
	if err != nil {
		return fmt.Errorf("streams: subscription: %w", err)
	}
	if string(before) == string(after) {
		return nil
	}
	if err := s.gw.Audit().PutKeys(ctx, journal.KeyValue{Key: key, Value: after}); err != nil {
		return gateway.JournalError("store subscription", err)
	}
	s.schedule(sub)
	return nil
}

// view converts a subscription for clients.
func (s *Store) view(ctx context.Context, sub *subscription) (Subscription, error) {
	links, err := s.linkStates(ctx, sub)
	return Subscription{ID: sub.ID, Plan: sub.Plan, Created: time.UnixMilli(sub.Created), Links: links, IsFailed: sub.Failures > 0}, err
}

// linkStates returns the streams of a subscription, by path. A stream that doesn't exist has nothing to process.
func (s *Store) linkStates(ctx context.Context, sub *subscription) (list []linkState, err error) {
	for path, l := range sub.Links {
		about, err := s.peek(ctx, sub.owner(), path)
		if err != nil {
			return nil, err
		}
		list = append(list, linkState{
			Path: path, IsExplicit: l.IsExplicit, Acked: FormatOffset(l.Acked, about.Tag), Tail: FormatOffset(about.Tail, about.Tag), IsPending: about.Tail > l.Acked,
		})
	}
	slices.SortFunc(list, func(a, b linkState) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

// FormatOffset returns the offset of a position: fixed width, so that offsets sort as text.
func FormatOffset(position int64, tag string) string { return fmt.Sprintf("%016d_%s", position, tag) }

// peek returns the properties of a stream, or of an empty stream if it does not exist.
func (s *Store) peek(ctx context.Context, owner quota.Account, path string) (About, error) {
	key := keyOf(owner, path)
	unlock, err := s.locks.Lock(ctx, key)
	if err != nil {
		return About{}, err
	}
	defer unlock()
	st, err := s.open(ctx, key)
	if errors.Is(err, gateway.ErrNotFound) || errors.Is(err, ErrGone) {
		return About{Tag: strings.Repeat("0", 16)}, nil
	}
	if err != nil {
		return About{}, err
	}
	defer s.release(st)
	return st.describe(), nil
}
