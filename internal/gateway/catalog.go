package gateway

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// Catalog lists the agents and dialects of a gateway. Its methods may be called by several goroutines at once.
type Catalog struct {
	agents       Directory
	defaultAgent string
	dialects     dialect.Registry
	condition    func(agent string) (state, reason string) // nil: unknown
}

// Catalog returns the gateway's catalog.
func (g *Gateway) Catalog() *Catalog {
	return &Catalog{g.cfg.Agents, g.cfg.DefaultAgent, g.cfg.Dialects, g.cfg.Condition}
}

// AgentInfo describes an agent.
type AgentInfo struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Default bool   `json:"default,omitempty"`
	// Description and Suggestions introduce the agent to people: in one line, and with messages to begin with.
	Description string   `json:"description,omitempty"`
	Suggestions []string `json:"suggestions,omitempty"`
	// State is the last known health: "up", "down", "failing" or "starting". It is empty if unknown. Reason says why the agent isn't up,
	// for admins only, because it can contain addresses and paths.
	State  string `json:"state,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Steers reports whether a running turn may take further messages. The agent decides on each message.
	Steers bool `json:"steers,omitempty"`
	// Sessions reports whether an operator can list the sessions of its upstream and attach one.
	Sessions bool `json:"sessions,omitempty"`
	// Compact is the text of a message that makes the agent's upstream shorten the context of a session, or empty.
	Compact string `json:"-"`
	// Check is "ok", "unchecked" if the agent has no check, or one line that says what is wrong. Only [Catalog.Check] sets it.
	Check string `json:"check,omitempty"`
}

// Agents lists the agents that the principal may name, sorted by name.
func (c *Catalog) Agents(p Principal) []AgentInfo {
	names := c.agents.Names(behalf(p))
	slices.Sort(names)
	infos := make([]AgentInfo, 0, len(names))
	for _, name := range names {
		a, ok := c.agents.Agent(name, behalf(p))
		if !ok {
			continue // it was just removed
		}
		_, steers := a.Agent.(agent.Steerer)
		_, attaches := a.Agent.(agent.Attacher)
		info := AgentInfo{Name: name, Kind: a.Kind, Default: name == c.defaultAgent, Steers: steers, Sessions: attaches}
		info.Description, info.Suggestions = introduction(a)
		if c.condition != nil {
			info.State, info.Reason = c.condition(name)
		}
		if !p.Admin {
			info.Reason = ""
		}
		if o, ok := a.Agent.(agent.Compactor); ok {
			info.Compact = o.CompactCommand()
		}
		infos = append(infos, info)
	}
	return infos
}

// introduction returns the configured description and suggestions of an agent. Each that is not configured comes from the agent itself.
func introduction(a Agent) (description string, suggestions []string) {
	if d, ok := a.Agent.(agent.Describer); ok {
		description, suggestions = d.Describe()
	}
	if len(a.Suggestions) > 0 {
		suggestions = a.Suggestions
	}
	return cmp.Or(a.Description, description), suggestions
}

// Check lists the agents for an operator, with the result of a check of each. The checks run concurrently.
func (c *Catalog) Check(ctx context.Context, p Principal) ([]AgentInfo, error) {
	if err := Decide(p, ActionAdmin, nil); err != nil {
		return nil, err
	}
	infos := c.Agents(p)
	var checks sync.WaitGroup
	for i := range infos {
		a, ok := c.agents.Agent(infos[i].Name, behalf(p))
		if !ok {
			continue
		}
		checks.Go(func() {
			switch err := agent.Check(ctx, a.Agent); {
			case err == nil:
				infos[i].Check = "ok"
			case errors.Is(err, agent.ErrNoCheck):
				infos[i].Check = "unchecked"
			default:
				infos[i].Check = agent.OneLine(err)
			}
		})
	}
	checks.Wait()
	return infos, nil
}

// Discover lists what the upstream of an agent offers: its agents, sessions or models. Only operators may call it, because the
// sessions of an upstream can belong to any user. If the agent can't list anything, the error is [agent.ErrNoDiscovery].
func (c *Catalog) Discover(ctx context.Context, p Principal, name string) ([]agent.Offer, error) {
	if err := Decide(p, ActionAdmin, nil); err != nil {
		return nil, err
	}
	a, ok := c.agents.Agent(name, behalf(p))
	if !ok {
		return nil, ErrNotFound
	}
	if a.Discover == nil {
		return nil, agent.ErrNoDiscovery
	}
	return a.Discover(ctx)
}

// Dialects lists the wire formats that streams may be pushed in, sorted by name.
func (c *Catalog) Dialects() []dialect.Dialect { return c.dialects.List() }
