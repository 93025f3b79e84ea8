package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
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
	err := r.o.await(ctx, false, func(t *tx) error {
		if r.o.current != r && r.o.observed[r.id] != r {
			return agent.ErrTurnOver
		}
		r.o.keep(t, r.name, session)
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

// keep stores an agent's session and has the agent told of it. How far a session was followed goes with it.
func (o *owner) keep(t *tx, name string, session json.RawMessage) {
	t.set(sessionKey(o.id, name), session, 0)
	if session == nil {
		t.set(cursorKey(o.id, name), nil, 0)
	}
	t.then(func() { o.g.follows.kept(name, o.id) })
}

// session returns what the agent kept, nil where it is nothing.
func (o *owner) session(name string) json.RawMessage {
	v, err := o.g.journal.Get(o.g.life, sessionKey(o.id, name))
	if err != nil {
		if !errors.Is(err, journal.ErrNotFound) {
			o.log.Error("session of agent not read; it begins a new one", "agent", name, "error", err)
		}
		return nil
	}
	return v
}

// forgetSessions drops the sessions of all agents: where everything was taken out of a conversation, no agent goes on in a
// session that remembers it.
func (o *owner) forgetSessions(ctx context.Context, t *tx) error {
	keys, err := o.g.journal.Keys(ctx, sessionKey(o.id, ""))
	if err != nil {
		return fmt.Errorf("sessions of agents: %w", err)
	}
	for _, kv := range keys {
		// The id of another conversation may begin in the same way; a name holds no slash.
		if !strings.Contains(kv.Key[len(sessionKey(o.id, "")):], "/") {
			o.keep(t, kv.Key[len(sessionKey(o.id, "")):], nil)
		}
	}
	return nil
}

// in is the input with the session as it is now.
func (r *run) in() agent.Input {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.input
}

func sessionKey(conversation, name string) string { return sessionPrefix + conversation + "/" + name }
