package status

import (
	"sync"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal"
)

// State is what the default agent is in.
type State string

// The states, as Eliza's clients know them.
const (
	NotStarted State = "not_started" // no agent is configured, or the gateway has not begun
	Starting   State = "starting"    // the gateway takes up what its last run left
	Running    State = "running"
	Paused     State = "paused"     // it takes no new turns; those that run go on
	Stopped    State = "stopped"    // as paused, until it is started again
	Restarting State = "restarting" // the gateway is about to end, and another one may follow
	Failing    State = "error"      // its last turns failed, or nothing can be stored
)

// failures is after how many failed turns, one after another, an agent counts as failing.
const failures = 3

// Status is what is told of the default agent.
type Status struct {
	State State
	Name  string
	// Model is the one that it named last, else its kind; empty where there is no agent.
	Model   string
	Started time.Time // zero while it does not run
	// Pending says why the gateway has to be restarted; empty: it has not.
	Pending []string
}

// Agent is the state of the default agent. Make one with NewAgent.
type Agent struct {
	name, kind string

	mu      sync.Mutex
	state   State
	model   string
	started time.Time
	failed  int             // turns in a row
	turns   map[string]bool // turns of it that are open
	pending []string
	changed chan struct{}
}

var _ gateway.Watcher = (*Agent)(nil)

// NewAgent returns the state of an agent that has not begun. An empty name stands for none.
func NewAgent(name, kind string) *Agent {
	return &Agent{name: name, kind: kind, state: NotStarted, turns: map[string]bool{}, changed: make(chan struct{})}
}

// Begin says that the gateway takes up its work, Ready that it has done so.
func (a *Agent) Begin() { a.to(Starting) }

// Ready says that turns are taken.
func (a *Agent) Ready() { a.to(Running) }

// Leave says that the gateway is about to end.
func (a *Agent) Leave() { a.to(Restarting) }

// Do carries out what an operator wants: start, stop, pause or resume. ok is false where there is no such action, or no
// agent.
func (a *Agent) Do(action string) (_ Status, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.name == "" {
		return a.status(), false
	}
	switch {
	case action == "start", action == "resume":
		if a.state == Stopped || a.state == Paused || a.state == NotStarted {
			a.set(Running)
		}
	case action == "stop":
		a.set(Stopped)
	case action == "pause":
		if a.state != Stopped {
			a.set(Paused)
		}
	default:
		return a.status(), false
	}
	return a.status(), true
}

func (a *Agent) to(s State) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.name != "" {
		a.set(s)
	}
}

// set changes the state. a.mu is held.
func (a *Agent) set(s State) {
	switch {
	case s == Stopped || s == NotStarted:
		a.started = time.Time{}
	case s == Running && a.started.IsZero():
		a.started = time.Now()
	}
	if s == Running && a.state != s {
		a.failed = 0
	}
	a.state = s
	a.tell()
}

func (a *Agent) tell() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// Admit refuses new turns of the agent while it is stopped or paused; other agents are let through.
func (a *Agent) Admit(name string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if name != a.name {
		return nil
	}
	switch a.state {
	case Stopped:
		return &gateway.Rejection{Reason: gateway.ReasonNotRunning, Message: "Agent is not running"}
	case Paused:
		return &gateway.Rejection{Reason: gateway.ReasonNotRunning, Message: "Agent is paused"}
	}
	return nil
}

// Pend says why a restart of the gateway is needed; without reasons none is.
func (a *Agent) Pend(reasons ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pending = append([]string(nil), reasons...)
	a.tell()
}

// Committed implements [gateway.Watcher]: it looks at how the agent's turns end.
func (a *Agent) Committed(_ *journal.Summary, events []event.Event) {
	for i := range events {
		if e := &events[i]; e.Type == event.TurnStart || e.Type == event.TurnEnd {
			a.turn(e)
		}
	}
}

func (a *Agent) turn(e *event.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := e.Get()
	if e.Type == event.TurnStart {
		if b.Agent == a.name && b.Parent == "" {
			a.turns[e.Turn] = true
		}
		return
	}
	if !a.turns[e.Turn] {
		return
	}
	delete(a.turns, e.Turn)
	before := a.status()
	if b.Usage != nil && b.Usage.Model != "" {
		a.model = b.Usage.Model
	}
	switch b.Outcome {
	case event.Completed:
		a.failed = 0
	case event.Failed:
		a.failed++
	}
	if now := a.status(); now.State != before.State || now.Model != before.Model {
		a.tell()
	}
}

// Status returns what is to be told now.
func (a *Agent) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status()
}

func (a *Agent) status() Status {
	s := Status{State: a.state, Name: a.name, Model: a.model, Started: a.started, Pending: a.pending}
	if s.Model == "" {
		s.Model = a.kind
	}
	if s.State == Running && a.failed >= failures {
		s.State = Failing
	}
	return s
}

// Changed returns a channel that is closed when the status next changes.
func (a *Agent) Changed() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}
