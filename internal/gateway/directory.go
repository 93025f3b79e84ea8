package gateway

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/leat-dev/leat/agent"
)

// Directory knows the agents. The gateway looks up the agent of each turn, on behalf of the principal that the turn runs for,
// so that agents can be added and removed while the gateway runs, and can differ from one principal to another. Its methods may
// be called from several goroutines and must not block.
//
// If an agent is removed, turns that wait for it fail and can be retried. A turn that runs keeps its agent. After a restart a
// turn is resumed only if its agent is in the directory.
type Directory interface {
	// Agent returns the agent that the principal knows under a name.
	Agent(name string, p agent.Principal) (Agent, bool)
	// Names lists the names of the agents that the principal may use, in any order.
	Names(p agent.Principal) []string
}

// Agents is a directory that never changes and is the same for all principals.
type Agents map[string]Agent

var _ Directory = Agents(nil)

// Agent implements [Directory].
func (m Agents) Agent(name string, _ agent.Principal) (Agent, bool) {
	a, ok := m[name]
	return a, ok
}

// Names implements [Directory].
func (m Agents) Names(agent.Principal) []string { return slices.Collect(maps.Keys(m)) }

// behalf returns the principal in the form that agents know.
func behalf(p Principal) agent.Principal {
	return agent.Principal{Tenant: p.Tenant, Subject: p.Subject}
}

// Agent is an agent under a name, with its limits.
type Agent struct {
	agent.Agent
	// Silence is how long the agent may show no progress while none of its tools runs. If it is 0, it is DefaultSilence; if it is
	// negative, there is no limit.
	Silence time.Duration
	// Kind is the kind of the agent, such as "demo" or "replay", for listings.
	Kind string
	// Description and Suggestions introduce the agent to people; see [agent.Describer]. If they are empty, those of the agent are used.
	Description string
	Suggestions []string
	// Secrets are masked in captures and logs, in addition to everything that looks like a secret.
	Secrets []string
	// Discover lists what the agent's upstream offers. It is nil if the agent can't.
	Discover func(ctx context.Context) ([]agent.Offer, error)
}
