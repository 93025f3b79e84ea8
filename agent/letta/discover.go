package letta

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// agentInfo is an agent in the lists of both servers.
type agentInfo struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Updated time.Time `json:"updated_at"`
	LastRun time.Time `json:"last_run_completion"`
}

// discover lists the agents of a server and offers each as an agent for Leat's settings. It needs no agent id, so it fills in
// one that is never sent.
func discover(ctx context.Context, dialects dialect.Registry, s agent.Spec) ([]agent.Offer, error) {
	c, err := parseSpec(s)
	if err != nil {
		return nil, err
	}
	c.Agent, c.Conversation = "any", ""
	a, err := newAgent(c, dialects)
	if err != nil {
		return nil, err
	}
	var agents []agentInfo
	switch a := a.(type) {
	case *restAgent:
		defer a.Close()
		agents, err = a.agents(ctx)
	case *socketAgent:
		agents, err = a.agents(ctx)
	}
	if err != nil {
		return nil, err
	}
	offers := make([]agent.Offer, len(agents))
	for i, info := range agents {
		if info.LastRun.After(info.Updated) {
			info.Updated = info.LastRun
		}
		offers[i] = agent.Offer{
			Type: agent.OfferAgent, ID: info.ID, Name: info.Name, Updated: info.Updated,
			Spec: agent.Spec{Name: s.Kind, Kind: s.Kind, Target: s.Target, Options: s.Options}.WithOption("agent", info.ID).String(),
		}
	}
	return offers, nil
}

// agents lists up to agent.MaxOffers agents of the server.
func (r *restAgent) agents(ctx context.Context) (agents []agentInfo, err error) {
	err = r.callJSON(ctx, &agents, http.MethodGet, url.Values{"limit": {strconv.Itoa(agent.MaxOffers)}}, nil, "agents/")
	return agents, err
}

// agents lists up to agent.MaxOffers agents of the server, over a connection that it closes again. The App Server answers a request
// with a frame that repeats request_id; all other frames on this connection are ignored.
func (k *socketAgent) agents(ctx context.Context) ([]agentInfo, error) {
	l, err := k.dial(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer l.close()
	var list struct {
		Agents []agentInfo `json:"agents"`
	}
	query := map[string]int{"limit": agent.MaxOffers}
	err = k.request(ctx, l, map[string]any{"type": "agent_list", "query": query}, &list, ignore)
	return list.Agents, err
}
