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

// Condition is how an agent or a channel is.
type Condition string

// The conditions.
const (
	ConditionUp       Condition = "up"
	ConditionDown     Condition = "down"     // its process does not run, or it can't be reached
	ConditionFailing  Condition = "failing"  // it is there, but its last turns failed
	ConditionStarting Condition = "starting" // its process is not ready yet
	ConditionUnknown  Condition = "unknown"  // it can't be asked, and no turn has told yet
)

// Member is an agent or a channel, as the house knows it.
type Member struct {
	Name, Kind string
	Default    bool
	// State tells whether its process is ready, and else why not; nil where it has none that stays.
	State func() (ready bool, reason error)
	// Check asks it whether it is there, for a bounded time; nil where it can't be asked.
	Check func(context.Context) error
}

// Health is how a member is. Times are epoch milliseconds, 0 where there is none.
type Health struct {
	Name      string    `json:"name"`
	Kind      string    `json:"kind,omitempty"`
	Default   bool      `json:"default,omitempty"`
	State     Condition `json:"state"`
	Since     int64     `json:"since"`
	LastEvent int64     `json:"lastEvent,omitempty"`
	// Conversation is where something happened last.
	Conversation string `json:"conversation,omitempty"`
	// Error is the last one, though it may be over; with the turn that it ended, if it was one.
	Error   string `json:"error,omitempty"`
	ErrorAt int64  `json:"errorAt,omitempty"`
	Turn    string `json:"errorTurn,omitempty"`
	ErrorIn string `json:"errorConversation,omitempty"`
}

// member is what is known of one.
type member struct {
	Health
	hasCondition bool // its condition was found once
	failures     int  // turns in a row
	away         bool // the last turn did not reach it
	worked       bool // a turn or a check did
	checked      time.Time
	isChecking   bool
	check        error // what the last check said
}

// away are the errors of turns that did not reach their agent.
var away = []string{"agent_unreachable", "agent_not_started", "not_started"}

// ended records how a turn ended. detail is why it failed, in words for operators, if there are any.
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

// is finds out how a member is.
func (m *member) is(x Member, at time.Time) {
	state, reason := ConditionUnknown, error(nil)
	ready := false
	if x.State != nil {
		if ready, reason = x.State(); ready {
			m.away = false // whatever a turn found before
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
