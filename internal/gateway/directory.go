package gateway

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/leat-dev/leat/agent"
)

// Directory knows the agents. It is asked for each turn anew, on behalf of the principal who asked for it, so that agents may
// come and go while the gateway runs, and differ from one principal to another. Its methods may be called from several
// goroutines and do not wait.
//
// An agent that is gone is not named any more: turns that wait for it end as failed, and may be sent again. A turn that runs
// keeps what it was given; what becomes of it is up to the agent. After a restart only one that is in the directory can
// resume.
type Directory interface {
	// Agent returns the agent that the principal knows under a name.
	Agent(name string, p agent.Principal) (Agent, bool)
	// Names lists those that the principal may name, in any order.
	Names(p agent.Principal) []string
}

// Agents is a directory that never changes, the same for all.
type Agents map[string]Agent

var _ Directory = Agents(nil)

// Agent implements [Directory].
func (m Agents) Agent(name string, _ agent.Principal) (Agent, bool) {
	a, ok := m[name]
	return a, ok
}

// Names implements [Directory].
func (m Agents) Names(agent.Principal) []string { return slices.Collect(maps.Keys(m)) }

// behalf is the principal as agents know it.
func behalf(p Principal) agent.Principal {
	return agent.Principal{Tenant: p.Tenant, Subject: p.Subject}
}

// Agent is an agent under a name, with its limits.
type Agent struct {
	agent.Agent
	// Silence is how long the agent may say nothing while no tool of its own runs; 0 is DefaultSilence.
	Silence time.Duration
	// Kind says what it is, such as "demo" or "replay", for listings.
	Kind string
	// Secrets are masked in what is kept of the bytes of its turns, beside what is known to be secret by its form.
	Secrets []string
	// Discover lists what the agent's upstream offers; nil if nobody can tell.
	Discover func(ctx context.Context) ([]agent.Offer, error)
}
