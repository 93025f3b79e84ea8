// Following sessions over the App Server: each conversation has a watch with a separate connection.

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

// maxWatches limits the sessions of an agent that are followed, since each needs a connection. If there are more, the sessions
// without frames for the longest time are not followed.
const maxWatches = 256

// Start implements [agent.Keeper]. It only sets the logger: connections are opened by turns and by Follow.
func (k *socketAgent) Start(log *slog.Logger) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.logger = log
}

// Close implements [agent.Keeper]. All connections belong to turns or to Follow, which have returned.
func (k *socketAgent) Close() {}

func (k *socketAgent) log() *slog.Logger {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.logger
}

// Follow implements [agent.Follower]. It runs one socketWatch for each conversation with a session, and replaces the watch when
// the conversation's session changes or the watch has ended. It returns when ctx ends, after all watches have returned.
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

// sessionOf decodes a stored session. The result is empty if the conversation has none.
func sessionOf(raw json.RawMessage) (s session) {
	if len(raw) > 0 && json.Unmarshal(raw, &s) != nil {
		return session{}
	}
	return s
}

// quietest returns the conversation whose watch has received nothing for the longest time.
func quietest(watches map[string]*socketWatch) (conversation string) {
	var oldest int64
	for c, w := range watches {
		if at := w.lastFrame.Load(); conversation == "" || at < oldest {
			conversation, oldest = c, at
		}
	}
	return conversation
}
