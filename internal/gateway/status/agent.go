// The state of the default agent as Eliza's clients know it: it follows from the turns that run and from what operators do.

package status

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal"
)

// State is the state of the default agent. The values are part of the protocol that Eliza's clients use.
type State string

// The states, as Eliza's clients know them.
const (
	StateNotStarted State = "not_started" // no agent is configured, or the gateway has not begun
	stateStarting   State = "starting"    // the gateway recovers the turns of its last run
	StateRunning    State = "running"
	statePaused     State = "paused"     // new turns are refused; running ones continue
	stateStopped    State = "stopped"    // like paused, but only start or resume ends it
	StateRestarting State = "restarting" // the gateway shuts down, perhaps to start again
	StateFailing    State = "error"      // its last turns failed, or nothing can be stored
)

// failures is the number of consecutive failed turns after which an agent or a channel counts as failing.
const failures = 3

// agentStatus describes the default agent at one moment.
type agentStatus struct {
	State State
	Name  string
	// Model is the model of the last turn that named one, else the agent's kind. It is empty if no agent is configured.
	Model     string
	StartTime time.Time // zero while it does not run
	// Pending lists the reasons why the gateway needs a restart, such as changed settings. It is empty if none is needed.
	Pending []string
}

// Agent tracks the state of the default agent, which operators can start, stop and pause. All methods may be called from
// several goroutines. Make one with NewAgent.
type Agent struct {
	name, kind string

	mu        sync.Mutex // protects the fields below
	state     State      // as operators set it; status derives StateFailing
	model     string
	startTime time.Time
	failures  int             // consecutive failed turns
	turns     map[string]bool // the agent's open turns, by id
	pending   []string
	changed   chan struct{} // closed and replaced at each change
}

var _ gateway.Watcher = (*Agent)(nil)

// NewAgent returns the state of an agent that has not started yet. If name is empty, no agent is configured, and the state
// never leaves StateNotStarted.
func NewAgent(name, kind string) *Agent {
	return &Agent{name: name, kind: kind, state: StateNotStarted, turns: map[string]bool{}, changed: make(chan struct{})}
}

// Begin marks the agent as starting. The app calls it before the gateway recovers the turns of its last run.
func (a *Agent) Begin() { a.to(stateStarting) }

// Ready marks the agent as running. The app calls it when the gateway has recovered the turns of its last run.
func (a *Agent) Ready() { a.to(StateRunning) }

// Leave marks the agent as restarting. The app calls it when the gateway begins to shut down, before it closes sockets, so that clients
// show the reason.
func (a *Agent) Leave() { a.to(StateRestarting) }

// Do runs an operator's action: start, stop, pause or resume. An action that the state doesn't allow, such as pausing a stopped
// agent, changes nothing. ok is false if the action is unknown or no agent is configured. The state is in memory only: after a restart of
// the gateway the agent runs again.
func (a *Agent) Do(action string) (_ agentStatus, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.name == "" {
		return a.status(), false
	}
	switch {
	case action == "start", action == "resume":
		if a.state == stateStopped || a.state == statePaused || a.state == StateNotStarted {
			a.setState(StateRunning)
		}
	case action == "stop":
		a.setState(stateStopped)
	case action == "pause":
		if a.state != stateStopped {
			a.setState(statePaused)
		}
	default:
		return a.status(), false
	}
	return a.status(), true
}

// to changes the state, unless no agent is configured.
func (a *Agent) to(s State) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.name != "" {
		a.setState(s)
	}
}

// setState changes the state and closes the channel of Changed. A change to StateRunning resets the failures, so that an operator can clear
// StateFailing. The start time survives a pause, but not a stop. a.mu must be locked.
func (a *Agent) setState(s State) {
	switch {
	case s == stateStopped || s == StateNotStarted:
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

// tell closes the channel that Changed returned, and replaces it. a.mu must be locked.
func (a *Agent) tell() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// Admit refuses new turns of the agent while it is stopped or paused. Turns of other agents are admitted. The app sets it as the gateway's
// hook for new turns.
func (a *Agent) Admit(name string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if name != a.name {
		return nil
	}
	switch a.state {
	case stateStopped:
		return &gateway.Rejection{Reason: gateway.ReasonNotRunning, Message: "Agent is not running"}
	case statePaused:
		return &gateway.Rejection{Reason: gateway.ReasonNotRunning, Message: "Agent is paused"}
	}
	return nil
}

// Pend sets the reasons why the gateway needs a restart. Without reasons it needs none.
func (a *Agent) Pend(reasons ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pending = slices.Clone(reasons)
	a.tell()
}

// Committed implements [gateway.Watcher]. It follows the agent's turns, to know the last model and the number of failures.
func (a *Agent) Committed(_ *journal.Summary, events []event.Event) {
	for i := range events {
		if e := &events[i]; e.Type == event.TurnStart || e.Type == event.TurnEnd {
			a.turn(e)
		}
	}
}

// turn records the start or the end of a turn. Only turns of the agent itself count, not those nested in another agent's turn. A cancelled
// turn doesn't change the failures. Readers are only woken if the state or the model differs from before.
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

// Status returns the current status.
func (a *Agent) Status() agentStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status()
}

// status returns the current status, with StateFailing in place of StateRunning after too many failures. a.mu must be locked.
func (a *Agent) status() agentStatus {
	s := agentStatus{State: a.state, Name: a.name, Model: cmp.Or(a.model, a.kind), StartTime: a.startTime, Pending: a.pending}
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

// healthEvery is the interval at which Watch polls. Clients see a full disk, for example, at most that much later.
const healthEvery = time.Second

// Watch polls healthy, and closes the channel of Changed when healthy begins or stops to return an error. Polling is necessary because
// an error of the gateway itself, such as a full disk, commits no event. Watch returns when ctx ends.
func (a *Agent) Watch(ctx context.Context, healthy func() error) {
	was := healthy() == nil
	for retry.Sleep(ctx, healthEvery) == nil {
		if is := healthy() == nil; is != was {
			was = is
			a.mu.Lock()
			a.tell()
			a.mu.Unlock()
		}
	}
}
