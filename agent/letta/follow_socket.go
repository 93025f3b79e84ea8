package letta

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/leat-dev/leat/agent"
)

var (
	_ agent.Follower = (*socketAgent)(nil)
	_ agent.Keeper   = (*socketAgent)(nil)
)

// maxWatches bounds the sessions of an agent that are followed, each over a separate connection. If there are more, those that
// have been quiet for longest are not followed.
const maxWatches = 256

// Start implements [agent.Keeper].
func (k *socketAgent) Start(log *slog.Logger) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.logger = log
}

// Close implements [agent.Keeper]: what runs between turns is Follow's, which has ended.
func (k *socketAgent) Close() {}

func (k *socketAgent) log() *slog.Logger {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.logger
}

// Follow implements [agent.Follower].
func (k *socketAgent) Follow(ctx context.Context, sessions agent.Sessions) error {
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	watches := map[string]*socketWatch{}
	k.mu.Lock()
	k.watches = watches
	k.mu.Unlock()
	follow := func(s agent.Session) {
		k.mu.Lock()
		defer k.mu.Unlock()
		key := sessionOf(s.Session)
		if previous := watches[s.Conversation]; previous != nil {
			if previous.session == key && !previous.isFinished() {
				return
			}
			previous.cancel()
			delete(watches, s.Conversation)
		}
		if key.Conversation == "" {
			return
		}
		if len(watches) >= maxWatches {
			quietestKey := quietest(watches)
			watches[quietestKey].cancel()
			delete(watches, quietestKey)
		}
		w := newSocketWatch(k, sessions, s, key)
		watches[s.Conversation] = w
		var watchContext context.Context
		watchContext, w.cancel = context.WithCancel(ctx)
		tasks.Go(func() {
			defer close(w.finished)
			w.run(watchContext)
		})
	}
	return agent.EachSession(ctx, sessions, follow)
}

// sessionOf returns the kept session; it is empty if the conversation keeps no session.
func sessionOf(raw json.RawMessage) (s session) {
	if len(raw) > 0 && json.Unmarshal(raw, &s) != nil {
		return session{}
	}
	return s
}

// quietest returns the conversation in whose session nothing has happened for longest.
func quietest(watches map[string]*socketWatch) (conversation string) {
	var oldest int64
	for c, w := range watches {
		if at := w.lastFrame.Load(); conversation == "" || at < oldest {
			conversation, oldest = c, at
		}
	}
	return conversation
}
