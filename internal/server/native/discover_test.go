package native_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway"
)

// Only operators can discover upstreams; TestWalk covers the other callers.
func TestDiscover(t *testing.T) {
	var failure error
	h := newHarness(t, options{gateway: func(c *gateway.Config) {
		c.Agents = gateway.Agents{
			"asked": {Agent: echo, Discover: func(context.Context) ([]agent.Offer, error) {
				return []agent.Offer{{Type: agent.OfferAgent, ID: "agent-1", Name: "Ann's", Spec: "letta:http://h?agent=agent-1"}}, failure
			}},
			"mute": {Agent: echo},
		}
		c.DefaultAgent = "asked"
	}})
	for _, c := range []struct {
		name    string
		failure error
		status  int
		body    string
	}{
		{"asked", nil, http.StatusOK, `{"offers":[{"what":"agent","id":"agent-1","name":"Ann's","spec":"letta:http://h?agent=agent-1"}]}`},
		{"mute", nil, http.StatusNotFound, `"reason":"not_found"`},
		{"nobody", nil, http.StatusNotFound, `"reason":"not_found"`},
		{"asked", errors.New("the server\nrefuses"), http.StatusBadGateway, `{"error":"the server refuses","reason":"upstream"}`},
	} {
		failure = c.failure
		status, body := h.do(http.MethodPost, "/api/agents/"+c.name+"/discover", "", "")
		if status != c.status || !strings.Contains(string(body), c.body) {
			t.Errorf("%s: %d %s", c.name, status, body)
		}
	}
}
