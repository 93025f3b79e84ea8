package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
)

// What an agent calls a conversation upstream is a key of that conversation, by the agent's name: it goes with the
// conversation, and no export holds it, since another gateway could do nothing with it but write into the same session.

var _ agent.SessionSink = (*sink)(nil)

// KeepSession implements [agent.SessionSink]. It is taken until Run has returned, also of a turn that was stopped: the next
// turn, which begins after that, goes on in the session.
func (s *sink) KeepSession(ctx context.Context, session json.RawMessage) error {
	r := (*run)(s)
	switch {
	case len(session) > agent.MaxSession:
		return fmt.Errorf("gateway: session of %d bytes, at most %d", len(session), agent.MaxSession)
	case session != nil && !json.Valid(session):
		return errors.New("gateway: the session is no JSON")
	}
	session = slices.Clone(session) // the caller's
	err := r.writer.await(ctx, false, func(t *tx) error {
		if r.writer.current != r && r.writer.observed[r.id] != r {
			return agent.ErrTurnOver
		}
		r.writer.setSession(t, r.name, session)
		return nil
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.input.Session = session
	r.mu.Unlock()
	return nil
}

// setSession stores an agent's session, or deletes it together with its cursor if session is nil, and notifies the agent's Follow.
func (w *writer) setSession(t *tx, name string, session json.RawMessage) {
	t.set(journalkey.Session(w.id, name), session, 0)
	if session == nil {
		t.set(journalkey.Cursor(w.id, name), nil, 0)
	}
	t.then(func() { w.g.follows.kept(name, w.id) })
}

// session returns the session that the agent stored, or nil.
func (w *writer) session(name string) json.RawMessage {
	v, err := w.g.journal.Get(w.g.life, journalkey.Session(w.id, name))
	if err != nil {
		if !errors.Is(err, journal.ErrNotFound) {
			w.log.Error("session of agent not read; it begins a new one", "agent", name, "error", err)
		}
		return nil
	}
	return v
}

// forgetSessions drops the sessions of all agents: where everything was taken out of a conversation, no agent goes on in a
// session that remembers it.
func (w *writer) forgetSessions(ctx context.Context, t *tx) error {
	keys, err := w.g.journal.Keys(ctx, journalkey.Session(w.id, ""))
	if err != nil {
		return fmt.Errorf("sessions of agents: %w", err)
	}
	for _, kv := range keys {
		// The id of another conversation may begin in the same way; a name holds no slash.
		if !strings.Contains(kv.Key[len(journalkey.Session(w.id, "")):], "/") {
			w.setSession(t, kv.Key[len(journalkey.Session(w.id, "")):], nil)
		}
	}
	return nil
}

// in is the input with the session as it is now.
func (r *run) currentInput() agent.Input {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.input
}
