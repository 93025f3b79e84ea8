// The agents. Clients also want models, so each agent is a model of a provider that is Leat.

package openclaw

import (
	"cmp"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
)

// provider is the provider of all models.
const provider = "leat"

// defaultAgent returns the agent of sessions that name none, or "".
func (s *surface) defaultAgent(p gateway.Principal) string {
	agents := s.gw.Catalog().Agents(p)
	for i := range agents {
		if agents[i].Default {
			return agents[i].Name
		}
	}
	if len(agents) > 0 {
		return agents[0].Name
	}
	return ""
}

// agentName returns the name of an agent that a client names. Clients write it in lower case.
func (c *connection) agentName(name string) string {
	for _, a := range c.s.gw.Catalog().Agents(c.principal()) {
		if strings.EqualFold(a.Name, name) {
			return a.Name
		}
	}
	if name == nameMain { // the agent that every OpenClaw has
		return cmp.Or(c.s.defaultAgent(c.principal()), name)
	}
	return name
}

// hasAgent reports whether the principal may name an agent.
func (c *connection) hasAgent(name string) bool {
	for _, a := range c.s.gw.Catalog().Agents(c.principal()) {
		if a.Name == name {
			return true
		}
	}
	return false
}

// agentRow is an agent in a list. Without a model, the Control UI doesn't let the user send.
type agentRow struct {
	ID       string        `json:"id"`
	Name     string        `json:"name"`
	Identity agentIdentity `json:"identity"`
	Model    struct {
		Primary string `json:"primary"` // PROVIDER/MODEL
	} `json:"model"`
}

// agentIdentity is how clients show an agent.
type agentIdentity struct {
	Name string `json:"name"`
}

// listAgents answers agents.list.
func (c *connection) listAgents(_ *struct{}) (any, error) {
	rows := []agentRow{}
	for _, a := range c.s.gw.Catalog().Agents(c.principal()) {
		row := agentRow{ID: a.Name, Name: a.Name, Identity: agentIdentity{a.Name}}
		row.Model.Primary = provider + "/" + a.Name
		rows = append(rows, row)
	}
	return map[string]any{
		"defaultId": c.s.defaultAgent(c.principal()), "mainKey": nameMain, "scope": "per-sender", "agents": rows,
	}, nil
}

// agentIdentity answers agent.identity.get.
func (c *connection) agentIdentity(p *keyParams) (any, error) {
	agent := c.s.defaultAgent(c.principal())
	switch {
	case p.AgentID != "":
		agent = c.agentName(p.AgentID)
	case p.SessionKey != "":
		k, err := c.parseKey(p.SessionKey, "")
		if err != nil {
			return nil, err
		}
		agent = k.agent
	}
	return map[string]any{"agentId": agent, "name": agent}, nil
}

// modelRow is a model in a list.
type modelRow struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Provider  string   `json:"provider"`
	Available bool     `json:"available"` // always true: the dashboard shows which agents are down
	Input     []string `json:"input"`     // the kinds of content that users can send
}

// listModels answers models.list.
func (c *connection) listModels(_ *struct{}) (any, error) {
	rows := []modelRow{}
	for _, a := range c.s.gw.Catalog().Agents(c.principal()) {
		rows = append(rows, modelRow{a.Name, a.Name, provider, true, []string{"text", "image"}})
	}
	return map[string]any{"models": rows}, nil
}

// health answers health.
func (c *connection) health(_ *struct{}) (any, error) {
	err := c.s.gw.Healthy()
	return map[string]any{"ok": err == nil, "ts": time.Now().UnixMilli(), "defaultAgentId": c.s.defaultAgent(c.principal())}, nil
}
