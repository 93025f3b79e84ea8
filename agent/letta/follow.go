package letta

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/leat-dev/leat/agent"
)

var (
	_ agent.Follower = (*socket)(nil)
	_ agent.Keeper   = (*socket)(nil)
)

// maxWatches bounds the sessions of an agent that are followed, each over a separate connection. If there are more, those that
// have been quiet for longest are not followed.
const maxWatches = 256

// Start implements [agent.Keeper].
func (k *socket) Start(log *slog.Logger) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.logger = log
}

// Close implements [agent.Keeper]: what runs between turns is Follow's, which has ended.
func (k *socket) Close() {}

func (k *socket) log() *slog.Logger {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.logger
}

// Follow implements [agent.Follower].
func (k *socket) Follow(ctx context.Context, sessions agent.Sessions) error {
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	watches := map[string]*watch{}
	k.mu.Lock()
	k.watches = watches
	k.mu.Unlock()
	take := func(s agent.Session) {
		k.mu.Lock()
		defer k.mu.Unlock()
		key := sessionOf(s.Session)
		if old := watches[s.Conversation]; old != nil {
			if old.session == key && !old.over() {
				return
			}
			old.cancel()
			delete(watches, s.Conversation)
		}
		if key.Conversation == "" {
			return
		}
		if len(watches) >= maxWatches {
			quiet := quietest(watches)
			watches[quiet].cancel()
			delete(watches, quiet)
		}
		w := newWatch(k, sessions, s, key)
		watches[s.Conversation] = w
		var own context.Context
		own, w.cancel = context.WithCancel(ctx)
		tasks.Go(func() {
			defer close(w.done)
			w.run(own)
		})
	}
	return agent.EachSession(ctx, sessions, take)
}

// sessionOf returns the kept session; it is empty if the conversation keeps no session.
func sessionOf(raw json.RawMessage) (s session) {
	if len(raw) > 0 && json.Unmarshal(raw, &s) != nil {
		return session{}
	}
	return s
}

// quietest returns the conversation in whose session nothing has happened for longest.
func quietest(watches map[string]*watch) (conversation string) {
	var least int64
	for c, w := range watches {
		if at := w.heard.Load(); conversation == "" || at < least {
			conversation, least = c, at
		}
	}
	return conversation
}
