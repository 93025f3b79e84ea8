package status

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// Condition is the health of an agent or a channel, in one word.
type Condition string

// The conditions.
const (
	ConditionUp       Condition = "up"
	ConditionDown     Condition = "down"     // its process does not run, or it can't be reached
	ConditionFailing  Condition = "failing"  // it can be reached, but its last turns failed
	ConditionStarting Condition = "starting" // its process is not ready yet
	ConditionUnknown  Condition = "unknown"  // it can't be checked, and no turn has ended yet
)

// Member is a configured agent or channel.
type Member struct {
	Name, Kind string
	Default    bool
	// State reports whether its process is ready, and if not, why. It is nil for a member without a permanent process.
	State func() (ready bool, reason error)
	// Check tests whether the agent can be reached. It bounds its own time. It is nil if the agent has no such test.
	Check func(context.Context) error
}

// Health describes the condition of a member, as the operator's page shows it. Times are in epoch milliseconds, or 0 if
// unknown.
type Health struct {
	Name      string    `json:"name"`
	Kind      string    `json:"kind,omitempty"`
	Default   bool      `json:"default,omitempty"`
	State     Condition `json:"state"`
	Since     int64     `json:"since"`
	LastEvent int64     `json:"lastEvent,omitempty"`
	// Conversation is the conversation of the last event.
	Conversation string `json:"conversation,omitempty"`
	// Error is the last error, even if the member has recovered since. Turn and ErrorIn name the turn that it ended and its
	// conversation; they are empty if the error came from a check or a process.
	Error   string `json:"error,omitempty"`
	ErrorAt int64  `json:"errorAt,omitempty"`
	Turn    string `json:"errorTurn,omitempty"`
	ErrorIn string `json:"errorConversation,omitempty"`
}

// member is the health of an agent or a channel, with the facts that decide its condition. The overview's mutex guards it.
type member struct {
	Health
	hasCondition bool      // is has run at least once, so that State and Since are set
	failures     int       // consecutive failed turns
	away         bool      // the last turn did not reach the agent
	worked       bool      // a turn or a check has succeeded
	checked      time.Time // start of the last check
	isChecking   bool      // a check is running, so that no second one starts
	check        error     // result of the last check
}

// away lists the error codes of turns that did not reach their agent.
var away = []string{"agent_unreachable", "agent_not_started", "not_started"}

// turnEnded records the outcome of a turn. detail is the cause of a failure for operators, or empty if there is only the
// event's error. A stopped turn changes nothing, because a user stopped it.
func (m *member) turnEnded(e *event.Event, conversation, detail string) {
	b := e.Get()
	switch b.Outcome {
	case event.Completed:
		m.failures, m.away, m.worked, m.check = 0, false, true, nil
	case event.Failed:
		m.failures++
		m.Error, m.ErrorAt, m.Turn, m.ErrorIn = "failed", e.At, e.Turn, conversation
		if b.Error != nil {
			m.Error = cmp.Or(detail, agent.OneLine(errors.New(b.Error.Message)), b.Error.Code, m.Error)
			m.away = slices.Contains(away, b.Error.Code)
		}
	}
}

// checks records the result of a health check. An agent that supports no check keeps its condition.
func (m *member) checks(err error) {
	m.check = err
	if errors.Is(err, agent.ErrNoCheck) {
		m.check = nil
		return
	}
	if err == nil {
		m.worked, m.away = true, false
	}
}

// is computes the condition of a member at a time. A process's own state counts more than a check, and an agent that can't be
// reached counts as down even if it failed before. Since only changes with the condition.
func (m *member) is(x Member, at time.Time) {
	state, reason := ConditionUnknown, error(nil)
	ready := false
	if x.State != nil {
		if ready, reason = x.State(); ready {
			m.away = false // the process has come back since the turn that did not reach it
		}
	} else {
		reason = m.check
	}
	switch {
	case x.State != nil && !ready && reason == nil:
		state = ConditionStarting
	case !ready && reason != nil, m.away:
		state = ConditionDown
	case m.failures >= failures:
		state = ConditionFailing
	case ready, m.worked:
		state = ConditionUp
	}
	if state == ConditionDown && reason != nil {
		if line := agent.OneLine(reason); line != m.Error {
			m.Error, m.ErrorAt, m.Turn, m.ErrorIn = line, at.UnixMilli(), "", ""
		}
	}
	if state != m.State || !m.hasCondition {
		m.State, m.Since, m.hasCondition = state, at.UnixMilli(), true
	}
}
