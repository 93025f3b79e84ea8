package status

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// condition is the health of an agent or a channel, in one word.
type condition string

// The conditions.
const (
	conditionUp       condition = "up"
	conditionDown     condition = "down"     // its process does not run, or it can't be reached
	conditionFailing  condition = "failing"  // it can be reached, but its last turns failed
	conditionStarting condition = "starting" // its process is not ready yet
	conditionUnknown  condition = "unknown"  // it can't be checked, and no turn has ended yet
)

// Member is a configured agent or channel. The overview calls State every second with its own mutex locked, so State must not block.
type Member struct {
	Name, Kind string
	Default    bool
	// State reports whether its process is ready, and if not, why. It is nil for a member without a permanent process.
	State func() (ready bool, reason error)
	// Check tests whether the agent can be reached. It bounds its own time. It is nil if the agent has no such test.
	Check func(context.Context) error
}

// health describes the condition of a member, as the operator's page shows it. Times are in epoch milliseconds, or 0 if
// unknown.
type health struct {
	Name      string    `json:"name"`
	Kind      string    `json:"kind,omitempty"`
	Default   bool      `json:"default,omitempty"`
	State     condition `json:"state"`
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
	health
	hasCondition bool      // the method is has run, so State and Since are valid
	failures     int       // consecutive failed turns
	away         bool      // the last turn did not reach the agent
	worked       bool      // a turn or a check has succeeded since the start
	checked      time.Time // start of the last check
	isChecking   bool      // a check is running, so that no second one starts
	check        error     // result of the last check
}

// away lists the error codes of turns that did not reach their agent. Other errors show that the agent can be reached.
var away = []string{"agent_unreachable", "agent_not_started", "not_started"}

// turnEnded records the outcome of a turn. A completed turn proves that the agent works, so it overrides an earlier failed check.
// detail is the cause of a failure for operators, or empty if there is only the event's error. A stopped turn changes nothing,
// because a user stopped it.
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

// checks records the result of a health check. An agent that turns out to support no check keeps its condition.
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

// is computes the condition of a member at a time. If the member has a process, the state of the process decides whether it can be reached,
// and otherwise the last check and the last turn. A member that can't be reached is down, even if its last turns failed as well. Without
// a process, a turn or a check, the condition is unknown. Since only changes with the condition. The last error stays after a recovery.
func (m *member) is(x Member, at time.Time) {
	state, reason := conditionUnknown, error(nil)
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
		state = conditionStarting
	case !ready && reason != nil, m.away:
		state = conditionDown
	case m.failures >= failures:
		state = conditionFailing
	case ready, m.worked:
		state = conditionUp
	}
	if state == conditionDown && reason != nil {
		if line := agent.OneLine(reason); line != m.Error {
			m.Error, m.ErrorAt, m.Turn, m.ErrorIn = line, at.UnixMilli(), "", ""
		}
	}
	if state != m.State || !m.hasCondition {
		m.State, m.Since, m.hasCondition = state, at.UnixMilli(), true
	}
}

var (
	agentUp   = prometheus.NewDesc("leat_agent_up", "1 if the agent is up or its state is unknown, else 0.", []string{"agent"}, nil)
	channelUp = prometheus.NewDesc("leat_channel_up", "1 if the channel is up or its state is unknown, else 0.", []string{"channel"}, nil)
)

var _ prometheus.Collector = (*Overview)(nil)

// Describe implements [prometheus.Collector].
func (o *Overview) Describe(ch chan<- *prometheus.Desc) {
	ch <- agentUp
	ch <- channelUp
}

// Collect implements [prometheus.Collector]. An agent in an unknown state counts as up, so that an idle agent that can't be
// checked raises no alert. Collecting metrics doesn't count as an operator's visit, so it triggers no health checks.
func (o *Overview) Collect(ch chan<- prometheus.Metric) {
	o.check(nil)
	agents, channels := o.Agents(), o.Channels()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, kind := range []struct {
		desc   *prometheus.Desc
		health []health
	}{{agentUp, list(o.agents, agents)}, {channelUp, list(o.channels, channels)}} {
		for _, h := range kind.health {
			value := 0.
			if h.State == conditionUp || h.State == conditionUnknown {
				value = 1
			}
			ch <- prometheus.MustNewConstMetric(kind.desc, prometheus.GaugeValue, value, h.Name)
		}
	}
}
