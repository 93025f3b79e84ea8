package letta

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// Kind returns the kind. Its streams are decoded by the given dialects.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "letta",
		Summary: "an agent on a Letta server: its V1 API (http, https) or the App Server of Letta Code (ws, wss)",
		Target:  "URL",
		Options: []agent.Option{
			{Name: "agent", Help: "the agent's id there; may hold {tenant}, {subject} and {conversation}"},
			{Name: "conversation", Help: "the conversation's id there, with the same names in braces, or default for the agent's own; without it each conversation gets one of its own"},
			{Name: "token_env", Help: "environment variable that holds the server's token"},
			{Name: "token_file", Help: "file that holds it"},
			{Name: "stream", Help: "tokens, or steps for whole messages (V1)", Default: streamTokens},
			{Name: "background", Help: "false where the server can't go on with a run that nobody reads (V1)", Default: "true"},
			{Name: "mode", Help: "which tools are allowed without asking: unrestricted, standard and so on, as Letta Code names them (App Server)"},
		},
		New: func(s agent.Spec) (agent.Agent, error) {
			c, err := config(s)
			if err != nil {
				return nil, err
			}
			return New(c, dialects)
		},
		Discover: func(ctx context.Context, s agent.Spec) ([]agent.Offer, error) { return discover(ctx, dialects, s) },
		Schemes:  []string{"ws", "wss", "http", "https"},
	}
}

func config(s agent.Spec) (Config, error) {
	c := Config{URL: s.Target, Agent: s.Options["agent"], Conversation: s.Options["conversation"], Mode: s.Options["mode"], Background: true}
	switch v := s.Options["stream"]; v {
	case "", streamTokens:
	case "steps":
		c.Steps = true
	default:
		return c, fmt.Errorf("stream is %q; it takes tokens or steps", v)
	}
	switch v := s.Options["background"]; v {
	case "", "true":
	case "false":
		c.Background = false
	default:
		return c, fmt.Errorf("background is %q; it takes true or false", v)
	}
	var err error
	c.Token, err = token(s.Options["token_env"], s.Options["token_file"])
	return c, err
}

const streamTokens = "tokens"

// token returns the token that the variable or the file holds.
func token(env, file string) (string, error) {
	switch {
	case env != "" && file != "":
		return "", fmt.Errorf("token_env and token_file are both given")
	case env != "":
		t := os.Getenv(env)
		if t == "" {
			return "", fmt.Errorf("token_env: the environment variable %s is not set", env)
		}
		return t, nil
	case file != "":
		b, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("token_file: %w", err)
		}
		t := strings.TrimSpace(string(b))
		if t == "" {
			return "", fmt.Errorf("token_file: %s is empty", file)
		}
		return t, nil
	}
	return "", nil
}
