package webpush

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// logID is the system log that contains the keys below. It has no events: its batches change keys only.
	logID = journal.SystemPrefix + "webpush"
	// keyKey is the key of the gateway's private key, as newKey returns it.
	keyKey = "webpush/key"
	// Prefix is the prefix of the keys of subscriptions, before the id. Their values are JSON objects with the keys
	// tenant and subject, by which a purge of a user finds them.
	Prefix = "webpush/to/"

	// maxDevices limits the subscriptions of a user. A further one replaces the one that was renewed longest ago,
	// because browsers that were reset leave stale subscriptions behind.
	maxDevices = 20
	// lifetime is how long a subscription is stored after the page was last opened in its browser. The journal may
	// remove it after that.
	lifetime = 60 * 24 * time.Hour
)

// keyStore is the part of [journal.Journal] that subscriptions use.
type keyStore interface {
	Append(ctx context.Context, b journal.Batch) error
	Get(ctx context.Context, key string) ([]byte, error)
	Keys(ctx context.Context, prefix string) ([]journal.KeyValue, error)
}

// account is the user whom a notice concerns. Both fields are empty for the operator.
type account struct{ tenant, subject string }

// record is the value of a subscription in the journal.
type record struct {
	Tenant  string `json:"tenant"`
	Subject string `json:"subject"`
	Subscription
	// Renewed is when the browser last sent the subscription, in Unix milliseconds.
	Renewed int64 `json:"renewed"`
}

// store stores the subscriptions. Memory has only their ids, owners and times, so that a commit can tell without a
// read whether its user has any. A purge deletes keys from the journal without a call to store, so the journal
// decides whether a subscription exists: get removes ids from memory that the journal no longer has.
type store struct {
	journal keyStore

	mu sync.Mutex
	// owners has the user of each subscription, by its id.
	owners map[string]account
	// devices has the same subscriptions by user and id, with the time at which each was renewed, in Unix
	// milliseconds.
	devices map[account]map[string]int64
}

func newStore(j keyStore) *store {
	return &store{journal: j, owners: map[string]account{}, devices: map[account]map[string]int64{}}
}

// open reads the subscriptions, and returns the private key of the gateway. On the first start it creates and stores
// it. A damaged key is replaced too. Subscriptions that browsers bound to the old key stop working, and pages
// subscribe again with the new one. A damaged subscription is skipped, and get treats it as missing.
func (s *store) open(ctx context.Context) (key []byte, err error) {
	at := time.Now().UnixMilli()
	err = s.journal.Append(ctx, journal.Batch{Conversation: logID, Create: true, Summary: &journal.Summary{Created: at, Updated: at}})
	if err != nil && !errors.Is(err, journal.ErrExists) {
		return nil, fmt.Errorf("create the log: %w", err)
	}
	key, err = s.journal.Get(ctx, keyKey)
	if errors.Is(err, journal.ErrNotFound) || errors.Is(err, journal.ErrCorrupt) { // with a new key, browsers subscribe again
		if key, err = newKey(); err == nil {
			err = s.write(ctx, journal.KeyValue{Key: keyKey, Value: key})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	entries, err := s.journal.Keys(ctx, Prefix)
	if err != nil {
		return nil, fmt.Errorf("read the subscriptions: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kv := range entries {
		var v record
		if json.Unmarshal(kv.Value, &v) == nil { // a damaged value is nil
			s.add(strings.TrimPrefix(kv.Key, Prefix), account{v.Tenant, v.Subject}, v.Renewed)
		}
	}
	return key, nil
}

// write changes keys in one commit. A key without a value is deleted.
func (s *store) write(ctx context.Context, kv ...journal.KeyValue) error {
	return s.journal.Append(ctx, journal.Batch{Conversation: logID, Keys: kv})
}

// add records a subscription in memory, for its new user only. s.mu must be locked.
func (s *store) add(id string, a account, renewed int64) {
	s.remove(id)
	s.owners[id] = a
	if s.devices[a] == nil {
		s.devices[a] = map[string]int64{}
	}
	s.devices[a][id] = renewed
}

// remove forgets a subscription in memory, but not in the journal. Unknown ids are ignored. s.mu must be locked.
func (s *store) remove(id string) {
	a, ok := s.owners[id]
	if !ok {
		return
	}
	delete(s.owners, id)
	delete(s.devices[a], id)
	if len(s.devices[a]) == 0 {
		delete(s.devices, a)
	}
}

// save stores a subscription, or renews it. It belongs to a alone from then on.
//
// The journal changes first: get drops ids from memory that the journal doesn't have, and notices may be sent meanwhile.
func (s *store) save(ctx context.Context, a account, sub Subscription) error {
	sub.ExpirationTime = nil
	at := time.Now()
	value, err := json.Marshal(record{Tenant: a.tenant, Subject: a.subject, Subscription: sub, Renewed: at.UnixMilli()})
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	id := sub.id()
	if err := s.write(ctx, journal.KeyValue{Key: Prefix + id, Value: value, Expires: at.Add(lifetime).UnixMilli()}); err != nil {
		return err
	}
	var obsolete []journal.KeyValue
	s.mu.Lock()
	s.add(id, a, at.UnixMilli())
	for len(s.devices[a]) > maxDevices {
		oldest := s.oldest(a)
		s.remove(oldest)
		obsolete = append(obsolete, journal.KeyValue{Key: Prefix + oldest})
	}
	s.mu.Unlock()
	if len(obsolete) == 0 {
		return nil
	}
	return s.write(ctx, obsolete...)
}

// oldest returns the subscription of a user that was renewed first. s.mu must be locked.
func (s *store) oldest(a account) string {
	return slices.MinFunc(slices.Sorted(maps.Keys(s.devices[a])), func(x, y string) int { return cmp.Compare(s.devices[a][x], s.devices[a][y]) })
}

// drop deletes a subscription of a. If it belongs to another user or doesn't exist, nothing changes, so a user can't
// unsubscribe the browser of another one whose endpoint is known.
func (s *store) drop(ctx context.Context, a account, id string) error {
	s.mu.Lock()
	owner, ok := s.owners[id]
	isOwn := ok && owner == a
	if isOwn {
		s.remove(id)
	}
	s.mu.Unlock()
	if !isOwn {
		return nil
	}
	return s.write(ctx, journal.KeyValue{Key: Prefix + id})
}

// of returns the names of a user's subscriptions.
func (s *store) of(a account) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]string, 0, len(s.devices[a]))
	for id := range s.devices[a] {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// get reads a subscription of a. It returns nil without an error if the journal has none, or a damaged one, or if it
// belongs to another user by now.
func (s *store) get(ctx context.Context, a account, id string) (*Subscription, error) {
	value, err := s.journal.Get(ctx, Prefix+id)
	if errors.Is(err, journal.ErrNotFound) || errors.Is(err, journal.ErrCorrupt) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.owners[id] == a {
			s.remove(id)
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var v record
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, fmt.Errorf("decode a subscription: %w", err)
	}
	if (account{v.Tenant, v.Subject}) != a {
		return nil, nil
	}
	return &v.Subscription, nil
}
