package gateway

import (
	"slices"
	"strings"

	"github.com/leat-dev/leat/dialect"
)

// AgentInfo says which agents can be named.
type AgentInfo struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Default bool   `json:"default,omitempty"`
}

// Agents lists the configured agents, sorted by name. It is no secret among those who may ask at all.
func (g *Gateway) Agents() []AgentInfo {
	out := make([]AgentInfo, 0, len(g.cfg.Agents))
	for name, a := range g.cfg.Agents {
		out = append(out, AgentInfo{Name: name, Kind: a.Kind, Default: name == g.cfg.DefaultAgent})
	}
	slices.SortFunc(out, func(a, b AgentInfo) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Dialects lists the wire formats that streams may be pushed in, sorted by name.
func (g *Gateway) Dialects() []dialect.Dialect { return g.cfg.Dialects.List() }
