package auth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// sessionsLog is the journal's log with the keys below.
	sessionsLog = journal.SystemPrefix + "sessions"
	secretKey   = "session/key"
	endedPrefix = "session/ended/"
	secretSize  = 32
)

// keyStore is the part of the journal that sessions use.
type keyStore interface {
	Append(ctx context.Context, b journal.Batch) error
	Get(ctx context.Context, key string) ([]byte, error)
	Keys(ctx context.Context, prefix string) ([]journal.KeyValue, error)
}

// sessionStore stores in the journal what session cookies need across restarts: the secret that signs them, and the sessions that
// were ended early. Several goroutines may call it.
type sessionStore struct {
	j   keyStore
	key []byte

	mu       sync.Mutex
	expiries map[string]int64 // original expiry, epoch milliseconds
}

var _ server.SessionStore = (*sessionStore)(nil)

// OpenSessions reads the sessions from the journal. On the first start it also creates and stores the secret that signs them.
func OpenSessions(ctx context.Context, j keyStore) (*sessionStore, error) {
	s := &sessionStore{j: j, expiries: map[string]int64{}}
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("auth: sessions: %w", err)
	}
	return s, nil
}

// The log may exist from an earlier start, which is no error. An ended session is stored until its cookie
// would have expired anyway, so the list stays short.
func (s *sessionStore) open(ctx context.Context) error {
	created := time.Now().UnixMilli()
	err := s.j.Append(ctx, journal.Batch{Conversation: sessionsLog, Create: true, Summary: &journal.Summary{Created: created, Updated: created}})
	if err != nil && !errors.Is(err, journal.ErrExists) {
		return err
	}
	s.key, err = s.j.Get(ctx, secretKey)
	if errors.Is(err, journal.ErrNotFound) || errors.Is(err, journal.ErrCorrupt) { // a new key means that all users sign in again
		s.key = make([]byte, secretSize)
		_, _ = rand.Read(s.key) // it never fails
		err = s.j.Append(ctx, journal.Batch{Conversation: sessionsLog, Keys: []journal.KeyValue{{Key: secretKey, Value: s.key}}})
	}
	if err != nil {
		return err
	}
	entries, err := s.j.Keys(ctx, endedPrefix)
	for _, kv := range entries {
		s.expiries[strings.TrimPrefix(kv.Key, endedPrefix)] = kv.Expires
	}
	return err
}

// Key implements [server.SessionStore].
func (s *sessionStore) Key() []byte { return s.key }

// IsEnded implements [server.SessionStore].
func (s *sessionStore) IsEnded(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.expiries[id]
	return ok
}

// End implements [server.SessionStore]. The session ends at once. If End returns nil, it also stays ended after a restart.
func (s *sessionStore) End(ctx context.Context, id string, expiry time.Time) error {
	expires := expiry.UnixMilli()
	s.mu.Lock()
	maps.DeleteFunc(s.expiries, func(_ string, expiry int64) bool { return expiry < time.Now().UnixMilli() })
	s.expiries[id] = expires
	s.mu.Unlock()
	err := s.j.Append(ctx, journal.Batch{Conversation: sessionsLog, Keys: []journal.KeyValue{{Key: endedPrefix + id, Value: []byte("1"), Expires: expires}}})
	if err != nil {
		return fmt.Errorf("%w: end session: %w", gateway.ErrUnavailable, err)
	}
	return nil
}
