package openclaw

import (
	"context"
	"fmt"
	"os"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// defaultTokenEnv is looked at where no variable is named.
const defaultTokenEnv = "OPENCLAW_TOKEN"

// Kind is the agent as a kind.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "openclaw",
		Summary: "an OpenClaw gateway, over its WebSocket: text, tools, thinking, files, approvals; runs outlive a restart of either side",
		Target:  "ws://HOST:PORT",
		Options: []agent.Option{
			{Name: "token_env", Help: "environment variable that holds the gateway's token", Default: defaultTokenEnv},
			{Name: "session", Help: "name of the session upstream; {tenant}, {subject} and {conversation} are filled in", Default: DefaultSession},
			{Name: "agent", Help: "agent whose session it is; without it the gateway's default"},
			{Name: "media_root", Help: "folder of this machine that holds the files which the agent names"},
		},
		New: func(s agent.Spec) (agent.Agent, error) {
			d, err := dialects.Lookup("openclaw")
			if err != nil {
				return nil, err
			}
			c := Config{
				URL: s.Target, Dialect: d,
				Session: s.Options["session"], Agent: s.Options["agent"], MediaRoot: s.Options["media_root"],
			}
			env, named := s.Options["token_env"]
			if !named {
				env = defaultTokenEnv
			}
			c.TokenEnv = env
			if c.Token = os.Getenv(env); c.Token == "" && named {
				return nil, fmt.Errorf("token_env: the environment variable %s is not set", env)
			}
			return New(c)
		},
		Discover: func(ctx context.Context, s agent.Spec) ([]agent.Offer, error) { return discover(ctx, dialects, s) },
		Schemes:  []string{"ws", "wss"},
	}
}
