// Which agent answers a session's prompts.

package acp

import (
	"slices"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/internal/base/jsonrpc"
)

// optionID is the id of the only configuration option of a session.
const optionID = "agent"

// modes are the agents as modes. Newer editors read them as a configuration option instead, so a session has both.
type modes struct {
	Current   string `json:"currentModeId"`
	Available []mode `json:"availableModes"`
}

// mode is an agent of a list.
type mode struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// configOption is a choice among values. Its category tells the editor where to show it, and "mode" is the place where modes were.
type configOption struct {
	ID      string        `json:"id"`
	Name    string        `json:"name"`
	Type    string        `json:"type"` // select
	Kind    string        `json:"category"`
	Current string        `json:"currentValue"`
	Values  []configValue `json:"options"`
}

// configValue is a value of a configOption.
type configValue struct {
	Value       string `json:"value"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// The agents are those that the user may use at the time when the session is opened. A choice holds for the session's next prompts, and isn't
// stored: other clients of the conversation keep theirs.

// modes returns the agents of a session, or nil for a gateway with one agent.
func (s *session) modes() *modes {
	if len(s.agents) < 2 {
		return nil
	}
	m := &modes{Current: s.agentName()}
	for _, candidate := range s.agents {
		m.Available = append(m.Available, mode{candidate.Name, candidate.Name, candidate.Description})
	}
	return m
}

// options returns the same as a configuration.
func (s *session) options() []configOption {
	if len(s.agents) < 2 {
		return nil
	}
	o := configOption{ID: optionID, Name: "Agent", Type: "select", Kind: "mode", Current: s.agentName()}
	for _, candidate := range s.agents {
		o.Values = append(o.Values, configValue{candidate.Name, candidate.Name, candidate.Description})
	}
	return []configOption{o}
}

// agentName returns the agent that answers the next prompt.
func (s *session) agentName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// choose sets the agent of the next prompts. Editors use one of the two ways, and learn nothing from a notification about the other.
func (a *host) choose(p *sessionParams, name string, isMode bool) (any, error) {
	s := a.session(p.ID)
	if s == nil {
		return nil, unknownSession(p.ID)
	}
	if !slices.ContainsFunc(s.agents, func(candidate leat.Agent) bool { return candidate.Name == name }) {
		return nil, jsonrpc.Errorf(jsonrpc.InvalidParams, "unknown agent %q", name)
	}
	s.mu.Lock()
	s.current, s.isChosen = name, true
	s.mu.Unlock()
	if isMode {
		return nil, nil
	}
	return map[string]any{"configOptions": s.options()}, nil
}
