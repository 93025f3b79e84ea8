package letta

import (
	"context"
	"fmt"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// Kind returns the agent kind "letta". Its agents decode with the given dialects, so that the registry's counters include them.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "letta",
		Summary: "an agent of a Letta server: its V1 API (http, https) or the App Server of Letta Code (ws, wss)",
		Target:  "URL",
		Options: append([]agent.Option{
			{Name: "agent", Help: "the agent's id at the server; may contain {tenant}, {subject} and {conversation}"},
			{Name: "conversation", Help: "the conversation's id at the server, with the same placeholders, or default for the agent's default conversation; if empty, each conversation gets a separate one"},
			{Name: "stream", Help: "tokens, or steps for complete messages (V1)", Default: streamTokens},
			{Name: "background", Help: "false if the server can't continue a run without a reader (V1)", Default: "true"},
			{Name: "mode", Help: "permission mode of Letta Code, such as standard or unrestricted: the tools that need no approval (App Server)"},
		}, agent.SecretOptions("token", "token of the server", "")...),
		New: func(s agent.Spec) (agent.Agent, error) {
			c, err := parseSpec(s)
			if err != nil {
				return nil, err
			}
			return newAgent(c, dialects)
		},
		Discover: func(ctx context.Context, s agent.Spec) ([]agent.Offer, error) { return discover(ctx, dialects, s) },
		Schemes:  []string{"ws", "wss", "http", "https"},
	}
}

// parseSpec reads the options of the kind. newAgent checks whether they fit the server.
func parseSpec(s agent.Spec) (config, error) {
	c := config{URL: s.Target, Agent: s.Options["agent"], Conversation: s.Options["conversation"], Mode: s.Options["mode"]}
	switch v := s.Options["stream"]; v {
	case "", streamTokens:
	case "steps":
		c.Steps = true
	default:
		return c, fmt.Errorf("invalid stream %q; use tokens or steps", v)
	}
	var err error
	if c.Background, err = s.Bool("background", true); err != nil {
		return c, err
	}
	c.Token, err = s.Secret("token")
	return c, err
}

// streamTokens is the default of the option stream.
const streamTokens = "tokens"
