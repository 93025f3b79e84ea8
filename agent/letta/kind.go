package letta

import (
	"context"
	"fmt"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// Kind returns the kind. Its streams are decoded by the given dialects.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "letta",
		Summary: "an agent on a Letta server: its V1 API (http, https) or the App Server of Letta Code (ws, wss)",
		Target:  "URL",
		Options: append([]agent.Option{
			{Name: "agent", Help: "the agent's id there; may hold {tenant}, {subject} and {conversation}"},
			{Name: "conversation", Help: "the conversation's id there, with the same names in braces, or default for the agent's own; without it each conversation gets one of its own"},
			{Name: "stream", Help: "tokens, or steps for whole messages (V1)", Default: streamTokens},
			{Name: "background", Help: "false where the server can't go on with a run that nobody reads (V1)", Default: "true"},
			{Name: "mode", Help: "which tools are allowed without asking: unrestricted, standard and so on, as Letta Code names them (App Server)"},
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

func parseSpec(s agent.Spec) (config, error) {
	c := config{URL: s.Target, Agent: s.Options["agent"], Conversation: s.Options["conversation"], Mode: s.Options["mode"]}
	switch v := s.Options["stream"]; v {
	case "", streamTokens:
	case "steps":
		c.Steps = true
	default:
		return c, fmt.Errorf("stream is %q; it takes tokens or steps", v)
	}
	var err error
	if c.Background, err = s.Bool("background", true); err != nil {
		return c, err
	}
	c.Token, err = s.Secret("token")
	return c, err
}

const streamTokens = "tokens"
