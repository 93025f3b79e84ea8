package responses

import (
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/server/outputtest"
	"github.com/leat-dev/leat/internal/service/quota"
)

type agentFunc = outputtest.AgentFunc

var echo = outputtest.Echo

// harness is a gateway with this surface behind a real listener.
type harness struct{ *outputtest.Harness }

func newHarness(t *testing.T, a agent.Agent, limits quota.Limits) *harness {
	t.Helper()
	return &harness{outputtest.Start(t, a, limits, func(h *outputtest.Harness) { Register(h.Server, h.Gateway) })}
}
