package models

import (
	"net/http"
	"slices"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// reasonModel is the reason of a request for a model that isn't an agent.
const reasonModel = "model_not_found"

// ErrNoAgent refuses a request without an agent if none is configured.
var ErrNoAgent = server.Errorf(http.StatusServiceUnavailable, gateway.ReasonNotRunning, "Agent is not running: no agent is configured")

// Unknown returns the refusal of a model that isn't an agent.
func Unknown(name string) error {
	return server.Errorf(http.StatusNotFound, reasonModel, "no agent is named %q; GET /v1/models lists them", name)
}

// IsAgent reports whether an agent is configured. The gateway's own agent, for pushed streams, does not count.
func IsAgent(gw *gateway.Gateway, p gateway.Principal, name string) bool {
	return slices.ContainsFunc(gw.Catalog().Agents(p), func(a gateway.AgentInfo) bool { return a.Name == name })
}

// Default returns the name of the agent for requests without one, or "".
func Default(gw *gateway.Gateway, p gateway.Principal) string {
	for _, a := range gw.Catalog().Agents(p) {
		if a.Default {
			return a.Name
		}
	}
	return ""
}
