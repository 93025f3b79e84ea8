package gateway

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/base/keylock"
)

const (
	// followWait is the pause after the first failed Follow. It doubles with each failure, up to followMost.
	followWait, followMost = time.Second, 5 * time.Minute
	// followSteady is how long a Follow must have run for the pause to start at followWait again.
	followSteady = time.Minute
)

// follows calls Follow of each agent that is a Follower, in one goroutine for each, from the start of the gateway, or the time
// when the agent is added, until either ends.
type follows struct {
	core    *core
	writers *writers
	// change makes calls of changed for the same agent wait for each other. Its keys are names of agents.
	change keylock.Locks

	mu sync.Mutex
	// hasStarted and closed bound the time in which agents are followed. Changes of the directory before and after it
	// are ignored.
	hasStarted bool
	closed     bool
	byAgent    map[string]*follow
}

// follow is one agent whose sessions are followed.
type follow struct {
	core     *core
	name     string
	sessions *sessions
	cancel   context.CancelFunc
	// returned is closed when Follow has returned for good.
	returned chan struct{}
}

func newFollows(c *core, ws *writers) *follows {
	return &follows{core: c, writers: ws, byAgent: map[string]*follow{}}
}

// start begins to follow the agents of the directory. If it is a Roster, agents that are added later are followed too.
func (f *follows) start() {
	f.mu.Lock()
	f.hasStarted = true
	f.mu.Unlock()
	if d, ok := f.core.cfg.Agents.(interface {
		Watch(changed func(name string))
	}); ok {
		d.Watch(f.changed)
		return
	}
	agents := f.core.cfg.Agents
	for _, name := range agents.Names(agent.Principal{}) {
		f.changed(name)
	}
}

// changed ends the Follow of the agent that had a name, waits for its end, and starts that of the agent that has the name now.
// Calls for the same name wait for each other. It blocks until the old Follow has returned, at most for returnLimit.
func (f *follows) changed(name string) {
	leave, err := f.change.Lock(f.core.life, name)
	if err != nil {
		return // the gateway has ended, and all follows with it
	}
	defer leave()
	f.mu.Lock()
	old := f.byAgent[name]
	f.mu.Unlock()
	if old != nil {
		// Two instances of one agent must not follow the same sessions: each would add entries after its own cursor.
		old.end()
	}
	agents := f.core.cfg.Agents
	a, there := agents.Agent(name, agent.Principal{})
	upstream, ok := a.Agent.(agent.Follower)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byAgent, name)
	if !f.hasStarted || f.closed || !there || !ok {
		return
	}
	ctx, cancel := context.WithCancel(f.core.life)
	follower := &follow{core: f.core, name: name, sessions: newSessions(f.core, f.writers, name, a), cancel: cancel, returned: make(chan struct{})}
	f.byAgent[name] = follower
	f.core.tasks.Go(func() {
		defer close(follower.returned)
		defer cancel()
		follower.run(ctx, upstream)
	})
}

// close ends every Follow and waits for them. None starts after it.
func (f *follows) close() {
	f.mu.Lock()
	f.closed = true
	followers := make([]*follow, 0, len(f.byAgent))
	for _, follower := range f.byAgent {
		follower.cancel()
		followers = append(followers, follower)
	}
	f.mu.Unlock()
	for _, follower := range followers {
		follower.end()
	}
}

// end ends a Follow and waits until it has returned, up to returnLimit. The gateway must not wait forever for an
// agent that ignores its context.
func (f *follow) end() {
	f.cancel()
	limit := time.NewTimer(returnLimit)
	defer limit.Stop()
	select {
	case <-f.returned:
	case <-limit.C:
		f.core.log.Error("agent did not stop following its sessions; its goroutine is abandoned", "agent", f.name)
	}
}

// sessionChanged implements [sessionObserver].
func (f *follows) sessionChanged(name, conversation string) {
	f.mu.Lock()
	follower := f.byAgent[name]
	f.mu.Unlock()
	if follower != nil {
		follower.sessions.changed(conversation)
	}
}

// conversationLost implements [sessionObserver].
func (f *follows) conversationLost(conversation string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, follower := range f.byAgent {
		follower.sessions.conversationLost(conversation)
	}
}

// run calls Follow until it returns without an error or the context is done. An agent whose Follow returns nil has
// nothing to follow, and isn't asked again until it is replaced.
func (f *follow) run(ctx context.Context, upstream agent.Follower) {
	wait := followWait
	for {
		begin := time.Now()
		err := f.call(ctx, upstream)
		if ctx.Err() != nil || err == nil {
			return
		}
		// An upstream that is down fails at once, each time. One that broke after a long time is tried again soon.
		if time.Since(begin) > followSteady {
			wait = followWait
		}
		f.core.log.Warn("agent stopped following its sessions with an error; retrying", "agent", f.name, "error", err, "in", wait.String())
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		wait = min(2*wait, followMost)
	}
}

// call calls Follow. A panic of an agent ends this call, not the gateway.
func (f *follow) call(ctx context.Context, upstream agent.Follower) (err error) {
	defer func() {
		if p := recover(); p != nil {
			f.core.log.Error("agent panicked", "agent", f.name, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("the agent panicked: %v", p)
		}
	}()
	return upstream.Follow(ctx, f.sessions)
}
