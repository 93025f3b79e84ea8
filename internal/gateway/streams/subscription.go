// Subscriptions: what workers still have to process of some streams. This file has what is stored, and what users ask for.

package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/base/outbound"
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
	CodeInvalid      = "INVALID_REQUEST"
	CodeURL          = "WEBHOOK_URL_REJECTED"
	CodeNotFound     = "SUBSCRIPTION_NOT_FOUND"
	CodeExists       = "SUBSCRIPTION_ALREADY_EXISTS"
	CodeClaimed      = "ALREADY_CLAIMED"
	CodeNothing      = "NO_PENDING_WORK"
	CodeOffset       = "INVALID_OFFSET"
	CodeFenced       = "FENCED"
	CodeInvalidToken = "TOKEN_INVALID"
)

// refuse returns an error with a code.
func refuse(code, format string, args ...any) error {
	return &SubscriptionError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Plan describes a subscription to create.
type Plan struct {
	Type        string   `json:"type"`
	Pattern     string   `json:"pattern,omitempty"`
	Streams     []string `json:"streams,omitempty"`
	URL         string   `json:"url,omitempty"`  // of a webhook
	Wake        string   `json:"wake,omitempty"` // path of the stream with the messages for workers
	LeaseMillis int64    `json:"lease"`
	Description string   `json:"description,omitempty"`
}

// subscription is the value of a subscription's key.
type subscription struct {
	Tenant  string `json:"tenant,omitempty"`
	Subject string `json:"subject"`
	ID      string `json:"id"`
	Plan    Plan   `json:"plan"`
	// Base is the URL below which the worker's callbacks go, as the creator reached the gateway.
	Base    string           `json:"base"`
	Created int64            `json:"created"` // epoch milliseconds
	Links   map[string]*link `json:"links"`   // by path

	// Generation numbers the wakes. Wake is the id of the current one, or empty.
	Generation int64  `json:"generation"`
	Wake       string `json:"wake,omitempty"`
	Holder     string `json:"holder,omitempty"` // the worker that has claimed it
	// Until is when the lease ends, and Retry when a failed webhook is repeated, epoch milliseconds.
	Until    int64 `json:"until,omitempty"`
	Retry    int64 `json:"retry,omitempty"`
	Failures int   `json:"failures,omitempty"` // in a row
	// Snapshot are the ends of the streams at the wake.
	Snapshot map[string]int64 `json:"snapshot,omitempty"`
}

// link is a stream of a subscription.
type link struct {
	IsExplicit bool  `json:"explicit,omitempty"` // named by a user
	IsGlob     bool  `json:"glob,omitempty"`     // matched by the pattern
	Acked      int64 `json:"acked"`              // the position up to which it is processed
}

func (sub *subscription) owner() quota.Account {
	return quota.Account{Tenant: sub.Tenant, Subject: sub.Subject}
}

// subscriptionKey returns the key of a subscription.
func subscriptionKey(owner quota.Account, id string) string {
	return SubscriptionPrefix + digest(owner.Tenant, owner.Subject) + "/" + digest(id)
}

func (sub *subscription) key() string { return subscriptionKey(sub.owner(), sub.ID) }

// LinkState is a stream of a subscription, for clients.
type LinkState struct {
	Path       string
	IsExplicit bool
	Acked      string // offset
	Tail       string
	IsPending  bool
}

// Subscription is a subscription, for clients.
type Subscription struct {
	ID       string
	Plan     Plan
	Created  time.Time
	Links    []LinkState
	IsFailed bool // a webhook has failed and will be repeated
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
func (s *Store) linkStates(ctx context.Context, sub *subscription) (list []LinkState, err error) {
	for path, l := range sub.Links {
		about, err := s.peek(ctx, sub.owner(), path)
		if err != nil {
			return nil, err
		}
		list = append(list, LinkState{
			Path: path, IsExplicit: l.IsExplicit, Acked: FormatOffset(l.Acked, about.Tag), Tail: FormatOffset(about.Tail, about.Tag), IsPending: about.Tail > l.Acked,
		})
	}
	slices.SortFunc(list, func(a, b LinkState) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

// FormatOffset returns the offset of a position: fixed width, so that offsets sort as text.
func FormatOffset(position int64, tag string) string { return fmt.Sprintf("%016d_%s", position, tag) }

// peek returns the properties of a stream, or of an empty one if there is none.
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

// Subscribe creates a subscription, or confirms that one with the same plan exists. base is the URL below which the streams are.
func (s *Store) Subscribe(ctx context.Context, p gateway.Principal, id string, plan Plan, base string) (view Subscription, isCreated bool, err error) {
	if err := isOpenTo(p, gateway.ActionCreate); err != nil {
		return view, false, err
	}
	if err := plan.check(id, p); err != nil {
		return view, false, err
	}
	if err := s.makeSigningKey(ctx); err != nil {
		return view, false, err
	}
	owner := p.Account()
	key := subscriptionKey(owner, id)
	unlock, err := s.locks.Lock(ctx, key)
	if err != nil {
		return view, false, err
	}
	defer unlock()
	sub, err := s.subscriptionOf(ctx, key)
	var missing *SubscriptionError
	switch {
	case err == nil:
		if !sub.Plan.equals(&plan) {
			return view, false, refuse(CodeExists, "the subscription exists with another configuration")
		}
		view, err = s.view(ctx, sub)
		return view, false, err
	case !errors.As(err, &missing):
		return view, false, err
	}
	others, err := s.journal.KeysAfter(ctx, SubscriptionPrefix+digest(owner.Tenant, owner.Subject)+"/", "", maxSubscriptions)
	if err != nil {
		return view, false, gateway.JournalError("count subscriptions", err)
	}
	if len(others) >= maxSubscriptions {
		return view, false, full("a user may have %d subscriptions; delete some first", maxSubscriptions)
	}
	sub = &subscription{Tenant: owner.Tenant, Subject: owner.Subject, ID: id, Plan: plan, Base: base, Created: time.Now().UnixMilli(), Links: map[string]*link{}}
	if err := s.linkAll(ctx, sub); err != nil {
		return view, false, err
	}
	b, err := json.Marshal(sub)
	if err != nil {
		return view, false, fmt.Errorf("streams: subscription: %w", err)
	}
	if err := s.gw.Audit().PutKeys(ctx, journal.KeyValue{Key: key, Value: b}); err != nil {
		return view, false, gateway.JournalError("store subscription", err)
	}
	s.schedule(sub)
	view, err = s.view(ctx, sub)
	return view, true, err
}

// linkAll links the streams that a new subscription names, and those that match its pattern. What they have already isn't processed.
func (s *Store) linkAll(ctx context.Context, sub *subscription) error {
	if err := s.linkExplicit(ctx, sub, sub.Plan.Streams); err != nil {
		return err
	}
	if sub.Plan.Pattern == "" {
		return nil
	}
	for kv, err := range journal.EachKey(ctx, s.journal.KeysAfter, ownerPrefix(sub.owner()), "", keyPage) {
		if err != nil {
			return gateway.JournalError("list streams", err)
		}
		var d description
		if err := json.Unmarshal(kv.Value, &d); err != nil {
			return fmt.Errorf("streams: description: %w", err)
		}
		if d.IsDeleted || !sub.matches(d.Path) {
			continue
		}
		about, err := s.peek(ctx, sub.owner(), d.Path)
		if err != nil {
			return err
		}
		if err := sub.link(d.Path, false, about.Tail); err != nil {
			return err
		}
	}
	return nil
}

// linkExplicit links streams that a user names, at their ends.
func (s *Store) linkExplicit(ctx context.Context, sub *subscription, paths []string) error {
	for _, path := range paths {
		about, err := s.peek(ctx, sub.owner(), path)
		if err != nil {
			return err
		}
		if err := sub.link(path, true, about.Tail); err != nil {
			return err
		}
	}
	return nil
}

// link adds a stream that is processed up to a position, or another reason for a stream that the subscription has.
func (sub *subscription) link(path string, isExplicit bool, acked int64) error {
	l := sub.Links[path]
	if l == nil {
		if len(sub.Links) >= maxLinks {
			return full("a subscription may have %d streams", maxLinks)
		}
		l = &link{Acked: acked}
		sub.Links[path] = l
	}
	l.IsExplicit, l.IsGlob = l.IsExplicit || isExplicit, l.IsGlob || !isExplicit
	return nil
}

// matches reports whether the pattern selects a stream. The stream with the messages for workers never does, because each message would
// cause another one.
func (sub *subscription) matches(path string) bool {
	return sub.Plan.Pattern != "" && path != sub.Plan.Wake && glob(sub.Plan.Pattern, path)
}

// glob reports whether a pattern matches a path: * is one segment, and ** any number of them.
func glob(pattern, path string) bool {
	return globSegments(strings.Split(pattern, "/"), strings.Split(path, "/"))
}

func globSegments(pattern, path []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			for i := range len(path) + 1 {
				if globSegments(pattern[1:], path[i:]) {
					return true
				}
			}
			return false
		}
		if len(path) == 0 || pattern[0] != "*" && pattern[0] != path[0] {
			return false
		}
		pattern, path = pattern[1:], path[1:]
	}
	return len(path) == 0
}

// maxWild is how many ** a pattern may have, because each multiplies the time of a comparison.
const maxWild = 2

// check refuses plans that can't work, and fills in the defaults.
func (p *Plan) check(id string, by gateway.Principal) error {
	for i, path := range p.Streams {
		p.Streams[i] = strings.Trim(path, "/")
		if err := checkPath(p.Streams[i]); err != nil {
			return refuse(CodeInvalid, "streams: %v", err)
		}
	}
	slices.Sort(p.Streams)
	p.Streams, p.Wake, p.Pattern = slices.Compact(p.Streams), strings.Trim(p.Wake, "/"), strings.Trim(p.Pattern, "/")
	if p.LeaseMillis == 0 {
		p.LeaseMillis = defaultLease.Milliseconds()
	}
	lease := time.Duration(p.LeaseMillis) * time.Millisecond
	switch {
	case id == "" || max(len(id), len(p.Pattern), len(p.Description), len(p.Wake)) > maxText:
		return refuse(CodeInvalid, "an id, a pattern, a path and a description have at most %d bytes", maxText)
	case p.Pattern == "" && len(p.Streams) == 0:
		return refuse(CodeInvalid, "a subscription needs a pattern or streams")
	case strings.Count(p.Pattern, "**") > maxWild:
		return refuse(CodeInvalid, "a pattern may have ** %d times", maxWild)
	case lease < minLease || lease > maxLease:
		return refuse(CodeInvalid, "lease_ttl_ms must be between %d and %d", minLease.Milliseconds(), maxLease.Milliseconds())
	case p.Type == typeWebhook:
		p.Wake = ""
		return checkURL(p.URL, by)
	case p.Type == typePull && p.Wake != "":
		p.URL = ""
		return nil
	case p.Type == typePull:
		return refuse(CodeInvalid, "a subscription of type %s needs a wake_stream", typePull)
	}
	return refuse(CodeInvalid, "the type of a subscription is %s or %s", typeWebhook, typePull)
}

// checkURL refuses addresses that the gateway must not send requests to for a user. The client of [deliverer] also checks where a name leads.
// Only the operator may name this machine, for development.
func checkURL(address string, by gateway.Principal) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || len(address) > maxText {
		return refuse(CodeURL, "webhook.url is not a URL")
	}
	ip, err := netip.ParseAddr(u.Hostname())
	isLoopback := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	switch {
	case u.Scheme == "http" && isLoopback && by.Admin:
		return nil
	case u.Scheme != "https":
		return refuse(CodeURL, "webhook.url must begin with https://; the operator may also use http://localhost and http://127.0.0.1")
	case isLoopback || err == nil && outbound.Check(ip) != nil:
		return refuse(CodeURL, "webhook.url must not name an address of a private network")
	}
	return nil
}

// equals reports whether two plans are the same.
func (p *Plan) equals(o *Plan) bool {
	return p.Type == o.Type && p.Pattern == o.Pattern && slices.Equal(p.Streams, o.Streams) && p.URL == o.URL && p.Wake == o.Wake &&
		p.LeaseMillis == o.LeaseMillis && p.Description == o.Description
}

// Subscription returns a subscription of a user.
func (s *Store) Subscription(ctx context.Context, p gateway.Principal, id string) (view Subscription, err error) {
	if err := isOpenTo(p, gateway.ActionRead); err != nil {
		return view, err
	}
	err = s.with(ctx, subscriptionKey(p.Account(), id), func(sub *subscription) (err error) {
		view, err = s.view(ctx, sub)
		return err
	})
	return view, err
}

// Unsubscribe deletes a subscription. What its workers send from then on is refused.
func (s *Store) Unsubscribe(ctx context.Context, p gateway.Principal, id string) error {
	if err := isOpenTo(p, gateway.ActionDelete); err != nil {
		return err
	}
	key := subscriptionKey(p.Account(), id)
	unlock, err := s.locks.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := s.subscriptionOf(ctx, key); err != nil {
		return err
	}
	s.unschedule(key)
	if err := s.gw.Audit().PutKeys(ctx, journal.KeyValue{Key: key}); err != nil {
		return gateway.JournalError("delete subscription", err)
	}
	return nil
}

// Link adds streams to a subscription.
func (s *Store) Link(ctx context.Context, p gateway.Principal, id string, paths []string) error {
	if err := isOpenTo(p, gateway.ActionWrite); err != nil {
		return err
	}
	for i := range paths {
		paths[i] = strings.Trim(paths[i], "/")
		if err := checkPath(paths[i]); err != nil {
			return refuse(CodeInvalid, "streams: %v", err)
		}
	}
	return s.with(ctx, subscriptionKey(p.Account(), id), func(sub *subscription) error { return s.linkExplicit(ctx, sub, paths) })
}

// Unlink removes a stream that a user has added to a subscription. It stays if the pattern matches it.
func (s *Store) Unlink(ctx context.Context, p gateway.Principal, id, path string) error {
	if err := isOpenTo(p, gateway.ActionWrite); err != nil {
		return err
	}
	return s.with(ctx, subscriptionKey(p.Account(), id), func(sub *subscription) error {
		if l := sub.Links[path]; l != nil {
			if l.IsExplicit = false; !l.IsGlob {
				delete(sub.Links, path)
			}
		}
		return nil
	})
}
