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
	StateNotStarted State = "not_started" // no agent is configured, or the gateway has not begun
	StateStarting   State = "starting"    // the gateway takes up what its last run left
	StateRunning    State = "running"
	StatePaused     State = "paused"     // it takes no new turns; those that run go on
	StateStopped    State = "stopped"    // as paused, until it is started again
	StateRestarting State = "restarting" // the gateway is about to end, and another one may follow
	StateFailing    State = "error"      // its last turns failed, or nothing can be stored
)

// failures is after how many failed turns, one after another, an agent counts as failing.
const failures = 3

// Status is what is told of the default agent.
type Status struct {
	State State
	Name  string
	// Model is the one that it named last, else its kind; empty where there is no agent.
	Model     string
	StartTime time.Time // zero while it does not run
	// Pending says why the gateway has to be restarted; empty: it has not.
	Pending []string
}

// Agent is the state of the default agent. Make one with NewAgent.
type Agent struct {
	name, kind string

	mu        sync.Mutex
	state     State
	model     string
	startTime time.Time
	failures  int             // turns in a row
	turns     map[string]bool // turns of it that are open
	pending   []string
	changed   chan struct{}
}

var _ gateway.Watcher = (*Agent)(nil)

// NewAgent returns the state of an agent that has not begun. An empty name stands for none.
func NewAgent(name, kind string) *Agent {
	return &Agent{name: name, kind: kind, state: StateNotStarted, turns: map[string]bool{}, changed: make(chan struct{})}
}

// Begin says that the gateway takes up its work, Ready that it has done so.
func (a *Agent) Begin() { a.to(StateStarting) }

// Ready says that turns are taken.
func (a *Agent) Ready() { a.to(StateRunning) }

// Leave says that the gateway is about to end.
func (a *Agent) Leave() { a.to(StateRestarting) }

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
		if a.state == StateStopped || a.state == StatePaused || a.state == StateNotStarted {
			a.setState(StateRunning)
		}
	case action == "stop":
		a.setState(StateStopped)
	case action == "pause":
		if a.state != StateStopped {
			a.setState(StatePaused)
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
		a.setState(s)
	}
}

// set changes the state. a.mu is held.
func (a *Agent) setState(s State) {
	switch {
	case s == StateStopped || s == StateNotStarted:
		a.startTime = time.Time{}
	case s == StateRunning && a.startTime.IsZero():
		a.startTime = time.Now()
	}
	if s == StateRunning && a.state != s {
		a.failures = 0
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
	case StateStopped:
		return &gateway.Rejection{Reason: gateway.ReasonNotRunning, Message: "Agent is not running"}
	case StatePaused:
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
		a.failures = 0
	case event.Failed:
		a.failures++
	}
	if after := a.status(); after.State != before.State || after.Model != before.Model {
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
	s := Status{State: a.state, Name: a.name, Model: a.model, StartTime: a.startTime, Pending: a.pending}
	if s.Model == "" {
		s.Model = a.kind
	}
	if s.State == StateRunning && a.failures >= failures {
		s.State = StateFailing
	}
	return s
}

// Changed returns a channel that is closed when the status next changes.
func (a *Agent) Changed() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}
