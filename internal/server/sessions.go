package server

import (
	"context"
	"crypto/rand"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// SessionStore stores data of sessions across restarts. Several goroutines may call it.
type SessionStore interface {
	// Key is the secret for signing cookies: at least 32 bytes, and always the same.
	Key() []byte
	// IsEnded reports whether a session was ended early.
	IsEnded(id string) bool
	// End ends a session that would expire at a time. Its error is for [Describe].
	End(ctx context.Context, id string, expiry time.Time) error
}

// memorySessions is a store for servers that don't restart.
type memorySessions struct {
	key      []byte
	mu       sync.Mutex
	expiries map[string]time.Time
}

func newMemorySessions() *memorySessions {
	m := &memorySessions{key: make([]byte, 32), expiries: map[string]time.Time{}}
	_, _ = rand.Read(m.key) // it never fails
	return m
}

func (m *memorySessions) Key() []byte { return m.key }

func (m *memorySessions) IsEnded(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.expiries[id]
	return ok
}

func (m *memorySessions) End(_ context.Context, id string, expiry time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.expiries, func(_ string, expiry time.Time) bool { return time.Now().After(expiry) })
	m.expiries[id] = expiry
	return nil
}

var errLoggedOut = &Error{Status: http.StatusUnauthorized, Reason: ReasonUnauthorized, Message: "the session was ended"}

// liveSessions are the streams that a cookie authenticates. They end with its session. The zero value is ready to use.
type liveSessions struct {
	mu      sync.Mutex
	streams map[string][]*context.CancelCauseFunc
}

// add registers the cancel function of a stream. remove unregisters it.
func (l *liveSessions) add(session string, cancel context.CancelCauseFunc) (remove func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams == nil {
		l.streams = map[string][]*context.CancelCauseFunc{}
	}
	entry := &cancel
	l.streams[session] = append(l.streams[session], entry)
	return func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		remaining := slices.DeleteFunc(l.streams[session], func(c *context.CancelCauseFunc) bool { return c == entry })
		if l.streams[session] = remaining; len(remaining) == 0 {
			delete(l.streams, session)
		}
		return true
	}
}

// end cancels the streams of a session.
//
// The functions are called without the mutex, because a cancelled stream calls remove, which locks it.
func (l *liveSessions) end(session string) {
	l.mu.Lock()
	streams := slices.Clone(l.streams[session])
	l.mu.Unlock()
	for _, cancel := range streams {
		(*cancel)(errLoggedOut)
	}
}
