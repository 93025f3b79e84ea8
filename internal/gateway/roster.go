package gateway

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/leat-dev/leat/agent"
)

var (
	errRosterClosed = errors.New("gateway: the roster is closed")
	errNameTaken    = errors.New("gateway: an agent with this name exists")
)

// Roster is a directory whose agents can be added and removed while the gateway runs. It is the same for all principals. It
// also runs what agents keep running between turns, see [agent.Keeper]: this starts when both the roster has started and the
// agent was added, and is closed when the agent is removed.
type Roster struct {
	log *slog.Logger
	// Tell receives the signals that agents send outside of turns. If it is nil, they are not collected. It must be set before Start.
	Tell func(agent.Signal)

	mu        sync.RWMutex
	agents    map[string]Agent
	changed   func(name string) // see Watch
	isStarted bool
	closed    bool
	closing   sync.WaitGroup // agents that are being closed
}

var _ Directory = (*Roster)(nil)

// NewRoster returns a roster without agents.
func NewRoster(log *slog.Logger) *Roster {
	return &Roster{log: log, agents: map[string]Agent{}}
}

// Start starts the agents that are in the roster, and from then on each agent that is added.
func (r *Roster) Start() {
	r.mu.Lock()
	if r.isStarted || r.closed {
		r.mu.Unlock()
		return
	}
	r.isStarted = true
	for name, a := range r.agents {
		r.start(name, a)
	}
	names := slices.Collect(maps.Keys(r.agents))
	r.mu.Unlock()
	r.tell(names...)
}

// Watch sets the function that is called with the name of each agent in the roster once it has started, and of each agent that
// is added, replaced or removed later. In the last case it is called before the agent is closed. It may be called from several
// goroutines. Only one function is set at a time.
func (r *Roster) Watch(changed func(name string)) {
	r.mu.Lock()
	r.changed = changed
	names := slices.Collect(maps.Keys(r.agents))
	r.mu.Unlock()
	r.tell(names...)
}

// tell calls what Watch was given, if the roster has started.
func (r *Roster) tell(names ...string) {
	r.mu.RLock()
	changed, isStarted := r.changed, r.isStarted
	r.mu.RUnlock()
	if changed == nil || !isStarted {
		return
	}
	for _, name := range names {
		changed(name)
	}
}

// start starts an agent that was added. r.mu is locked.
func (r *Roster) start(name string, a Agent) {
	if s, ok := a.Agent.(agent.Signaller); ok && r.Tell != nil {
		s.Signals(r.Tell)
	}
	if k, ok := a.Agent.(agent.Keeper); ok {
		k.Start(r.log.With("part", "plugin", "agent", name))
	}
}

// Add adds an agent under a name that is not in use. If it can't be added, it is closed.
func (r *Roster) Add(name string, a Agent) error { return r.insert(name, a, false) }

// Replace adds an agent and removes the one that has the name, if there is one, as Remove does. If the agent can't be added, it
// is closed.
func (r *Roster) Replace(name string, a Agent) error { return r.insert(name, a, true) }

// insert adds an agent, or closes it if it can't be added. The old agent is closed after its followers are notified.
func (r *Roster) insert(name string, a Agent, replace bool) error {
	old, err := r.swap(name, a, replace)
	if err != nil {
		r.closeAgent(a)
		return err
	}
	defer r.closing.Done()
	r.tell(name)
	r.closeAgent(old)
	return nil
}

// swap replaces an agent and returns the old one, which the caller must close. Then the caller must call r.closing.Done.
func (r *Roster) swap(name string, a Agent, replace bool) (old Agent, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return old, errRosterClosed
	}
	old, there := r.agents[name]
	if name == PushAgent || there && !replace {
		return old, errNameTaken
	}
	r.agents[name] = a
	if r.isStarted {
		r.start(name, a)
	}
	r.closing.Add(1)
	return old, nil
}

// Remove removes an agent. It returns false if there is none with the name. New turns don't find the agent from then on. When
// Remove returns, the agent is closed: running turns that needed its process have failed, and others run to their end.
func (r *Roster) Remove(name string) bool {
	r.mu.Lock()
	a, ok := r.agents[name]
	delete(r.agents, name)
	if ok {
		r.closing.Add(1)
		defer r.closing.Done()
	}
	r.mu.Unlock()
	r.tell(name)
	r.closeAgent(a)
	return ok
}

// closeAgent closes what an agent keeps running. It returns when that has ended.
func (r *Roster) closeAgent(a Agent) {
	if k, ok := a.Agent.(agent.Keeper); ok {
		k.Close()
	}
}

// Close closes all agents concurrently and returns when they are closed. No agent can be added after it.
func (r *Roster) Close() {
	r.mu.Lock()
	r.closed = true
	agents := slices.Collect(maps.Values(r.agents))
	names := slices.Collect(maps.Keys(r.agents))
	clear(r.agents)
	r.mu.Unlock()
	r.tell(names...)
	var tasks sync.WaitGroup
	for _, a := range agents {
		tasks.Go(func() { r.closeAgent(a) })
	}
	tasks.Wait()
	r.closing.Wait()
}

// Agent implements [Directory].
func (r *Roster) Agent(name string, _ agent.Principal) (Agent, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	a, ok := r.agents[name]
	return a, ok
}

// Names implements [Directory].
func (r *Roster) Names(agent.Principal) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Collect(maps.Keys(r.agents))
}
