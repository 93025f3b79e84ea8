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
	errRosterClosed = errors.New("gateway: the agents were closed")
	errNameTaken    = errors.New("gateway: an agent of that name is there")
)

// Roster is a directory whose agents come and go while the gateway runs, the same for all. It keeps what a Keeper among them
// keeps: that is started when both the roster is and the agent has come, and closed when it goes.
type Roster struct {
	log *slog.Logger
	// Tell takes what agents tell beside their turns; nil, they are not asked. Set it before Start.
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

// Start starts what the agents keep running, and from then on that of agents as they come.
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

// Watch has changed called with the name of each agent that is there once the roster has started, and of each that comes, is replaced
// or goes afterwards: then before what it kept is closed. changed may be called from several goroutines. A gateway sets it when it
// starts; a later call takes the place of an earlier one.
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

func (r *Roster) start(name string, a Agent) {
	if s, ok := a.Agent.(agent.Signaller); ok && r.Tell != nil {
		s.Signals(r.Tell)
	}
	if k, ok := a.Agent.(agent.Keeper); ok {
		k.Start(r.log.With("part", "plugin", "agent", name))
	}
}

// Add adds an agent under a name that is free. One that was not taken is closed.
func (r *Roster) Add(name string, a Agent) error { return r.insert(name, a, false) }

// Replace puts an agent in the place of the one under that name, if there is one; that is closed as by Remove. One that was not
// taken is closed.
func (r *Roster) Replace(name string, a Agent) error { return r.insert(name, a, true) }

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

// swap leaves it to the caller to shut the old one, and to say when that is done.
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

// Remove takes an agent away; false where there was none. New turns do not find it from then on. What it kept is gone when
// Remove returns: turns that run on that have failed; turns that need nothing of it go on to their end.
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

func (r *Roster) closeAgent(a Agent) {
	if k, ok := a.Agent.(agent.Keeper); ok {
		k.Close()
	}
}

// Close ends what the agents keep running, all at the same time, and returns when it is gone. No agent comes after it.
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
