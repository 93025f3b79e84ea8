package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
)

// sessionsPage is how many keys are read at once when all sessions are listed.
const sessionsPage = 1000

// sessions is [agent.Sessions] for one agent: the sessions that it stored for conversations, and the entries that it adds to
// them. One agent's Follow uses it at a time, but the gateway's other goroutines call changed and conversationLost.
type sessions struct {
	// agent is the one that had name when the Follow began. Entries are added in its name.
	core    *core
	writers *writers
	name    string
	agent   Agent

	mu         sync.Mutex
	hasSession map[string]bool // conversations of which the agent knows a session
	pending    []string        // conversations that Next has to return, each once
	wake       chan struct{}   // closed and replaced when pending is no longer empty
}

var _ agent.Sessions = (*sessions)(nil)

func newSessions(c *core, ws *writers, name string, a Agent) *sessions {
	return &sessions{core: c, writers: ws, name: name, agent: a, hasSession: map[string]bool{}, wake: make(chan struct{})}
}

// changed makes Next return a conversation. It never blocks, because a commit calls it.
func (s *sessions) changed(conversation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(conversation)
}

// conversationLost makes Next return a conversation if the agent knows a session of it.
func (s *sessions) conversationLost(conversation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasSession[conversation] {
		s.add(conversation)
	}
}

// add appends to the pending conversations, unless it is there already. s.mu is locked.
func (s *sessions) add(conversation string) {
	for _, id := range s.pending {
		if id == conversation {
			return
		}
	}
	if s.pending = append(s.pending, conversation); len(s.pending) == 1 {
		close(s.wake)
		s.wake = make(chan struct{})
	}
}

// List implements [agent.Sessions]. A session that changes while it reads is returned by Next too, so nothing is
// missed.
func (s *sessions) List(ctx context.Context) ([]agent.Session, error) {
	s.mu.Lock()
	s.pending = nil // the list below contains what was committed so far; Next returns later changes
	s.mu.Unlock()
	var list []agent.Session
	// The keys of all agents share one prefix, so each agent reads all of them.
	for kv, err := range journal.EachKey(ctx, s.core.journal.KeysAfter, journalkey.SessionPrefix, "", sessionsPage) {
		if err != nil {
			return nil, fmt.Errorf("gateway: list sessions: %w", err)
		}
		conversation, name, ok := journalkey.CutSession(kv.Key)
		if !ok || name != s.name {
			continue
		}
		session, err := s.of(ctx, conversation)
		if err != nil {
			return nil, err
		}
		if session.Session != nil {
			list = append(list, session)
		}
	}
	return list, nil
}

// Next implements [agent.Sessions]. It returns the current session and not the one at the time of the change, so
// several changes of a conversation are one.
func (s *sessions) Next(ctx context.Context) (agent.Session, error) {
	for {
		s.mu.Lock()
		wake := s.wake
		conversation := ""
		if len(s.pending) > 0 {
			conversation = s.pending[0]
			s.pending = s.pending[1:]
		}
		s.mu.Unlock()
		if conversation != "" {
			session, err := s.of(ctx, conversation)
			if err != nil {
				s.changed(conversation) // the next call tries again
			}
			return session, err
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return agent.Session{}, context.Cause(ctx)
		}
	}
}

// of returns a conversation's current session. Session is nil if there is none. The principal of the session is the
// conversation's owner, for whom the agent follows it.
func (s *sessions) of(ctx context.Context, conversation string) (agent.Session, error) {
	session := agent.Session{Conversation: conversation}
	sum, err := readSummary(ctx, s.core.journal, conversation)
	if err == nil {
		session.Principal = agent.Principal{Tenant: sum.Tenant, Subject: sum.Owner}
		session.Session, err = s.core.journal.Get(ctx, journalkey.Session(conversation, s.name))
	}
	if err == nil {
		session.Cursor, err = s.core.journal.Get(ctx, journalkey.Cursor(conversation, s.name))
	}
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, journal.ErrNotFound) {
		return session, fmt.Errorf("gateway: session of conversation %s: %w", conversation, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Remembered for conversationLost, which has no time to ask the journal.
	if session.Session == nil {
		delete(s.hasSession, conversation)
	} else {
		s.hasSession[conversation] = true
	}
	return session, nil
}

// Add implements [agent.Sessions]. If the conversation doesn't exist, the error is [agent.ErrNoSession]. Entries
// whose keys are known are skipped, so a repetition after a crash is harmless.
func (s *sessions) Add(ctx context.Context, conversation string, entries []agent.Entry, cursor json.RawMessage) error {
	if err := checkEntries(entries); err != nil {
		return err
	}
	if err := checkCursor(cursor); err != nil {
		return err
	}
	w, err := s.writers.acquire(ctx, conversation)
	if err == nil {
		defer w.release()
		err = sessionEntries{w}.addEntries(ctx, s.name, s.agent, entries, cursor)
	}
	if errors.Is(err, ErrNotFound) { // also if the conversation was deleted meanwhile
		return agent.ErrNoSession
	}
	return err
}
