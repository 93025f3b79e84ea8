package openclaw

import (
	"context"
	"os"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// defaultTokenEnv is the environment variable with the token if no option gives one.
const defaultTokenEnv = "OPENCLAW_TOKEN"

// Kind is the agent as a kind.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "openclaw",
		Summary: "an OpenClaw gateway, over its WebSocket: text, tools, thinking, files, approvals; runs outlive a restart of either side",
		Target:  "ws://HOST:PORT",
		Options: append([]agent.Option{
			{Name: "session", Help: "name of the session upstream; {tenant}, {subject} and {conversation} are filled in", Default: defaultSession},
			{Name: "agent", Help: "agent whose session it is; without it the gateway's default"},
			{Name: "media_root", Help: "folder of this machine that holds the files which the agent names"},
		}, agent.SecretOptions("token", "token of the gateway", defaultTokenEnv)...),
		New: func(s agent.Spec) (agent.Agent, error) {
			d, err := dialects.Lookup("openclaw")
			if err != nil {
				return nil, err
			}
			c := config{
				URL: s.Target, Dialect: d,
				Session: s.Options["session"], gatewayAgent: s.Options["agent"], MediaRoot: s.Options["media_root"],
			}
			if c.Token, err = s.Secret("token"); err != nil {
				return nil, err
			}
			if c.Token == "" {
				c.Token = strings.TrimSpace(os.Getenv(defaultTokenEnv))
			}
			return newGatewayAgent(c)
		},
		Discover: func(ctx context.Context, s agent.Spec) ([]agent.Offer, error) { return discover(ctx, dialects, s) },
		Schemes:  []string{"ws", "wss"},
	}
}
