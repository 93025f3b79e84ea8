// The keys under which agents keep what they need to find a conversation's session upstream. They are deleted with the
// conversation.

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
)

// An agent's session, by which it finds a conversation upstream, is stored as a key of the conversation and deleted with it. Exports
// don't contain it, because another gateway would write into the same upstream session.

// setSession stores an agent's session, or deletes it together with its cursor if session is nil, and notifies the agent's Follow.
func (w *writer) setSession(t *tx, name string, session json.RawMessage) {
	t.setKey(journalkey.Session(w.id, name), session, 0)
	if session == nil {
		t.setKey(journalkey.Cursor(w.id, name), nil, 0)
	}
	t.afterCommit(func() { w.core.sessions.sessionChanged(name, w.id) })
}

// session returns the session that the agent stored, or nil.
func (w *writer) session(name string) json.RawMessage {
	v, err := w.core.journal.Get(w.core.life, journalkey.Session(w.id, name))
	if err != nil {
		if !errors.Is(err, journal.ErrNotFound) {
			w.log.Error("session of agent not read; the agent starts a new one", "agent", name, "error", err)
		}
		return nil
	}
	return v
}

// forgetSessions deletes the sessions of all agents when everything was removed from the conversation, because the upstream sessions
// still contain it. It returns them.
func (w *writer) forgetSessions(ctx context.Context, t *tx) (forgotten []journal.KeyValue, err error) {
	keys, err := w.core.journal.Keys(ctx, journalkey.Session(w.id, ""))
	if err != nil {
		return nil, fmt.Errorf("sessions of agents: %w", err)
	}
	for _, kv := range keys {
		// The id of another conversation may begin with this one's. Names contain no slash.
		if name := kv.Key[len(journalkey.Session(w.id, "")):]; !strings.Contains(name, "/") {
			w.setSession(t, name, nil)
			forgotten = append(forgotten, kv)
		}
	}
	return forgotten, nil
}
