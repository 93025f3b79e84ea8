package openclaw

import (
	"cmp"
	"context"
	"os"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// defaultTokenEnv is the environment variable that holds the token if no option sets one.
const defaultTokenEnv = "OPENCLAW_TOKEN"

// Kind returns the agent kind "openclaw", which a configuration names as openclaw:ws://HOST:PORT. The decoder comes from dialects, so that
// it counts into the gateway's metrics.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "openclaw",
		Summary: "an OpenClaw gateway, over its WebSocket: text, tools, thinking, files, approvals; runs outlive a restart of either side",
		Target:  "ws://HOST:PORT",
		Options: append([]agent.Option{
			{Name: "session", Help: "key of the OpenClaw session; {tenant}, {subject} and {conversation} are replaced", Default: defaultSession},
			{Name: "agent", Help: "id of the OpenClaw agent; the default is that of the gateway"},
			{Name: "media_root", Help: "local folder with the files that the agent names"},
		}, agent.SecretOptions("token", "token of the gateway", defaultTokenEnv)...),
		New: func(s agent.Spec) (agent.Agent, error) {
			d, err := dialects.Lookup("openclaw")
			if err != nil {
				return nil, err
			}
			c := config{
				URL: s.Target, Dialect: d,
				Session: s.Options["session"], Agent: s.Options["agent"], MediaRoot: s.Options["media_root"],
			}
			if c.Token, err = s.Secret("token"); err != nil {
				return nil, err
			}
			c.Token = cmp.Or(c.Token, strings.TrimSpace(os.Getenv(defaultTokenEnv)))
			return newGatewayAgent(c)
		},
		Discover: func(ctx context.Context, s agent.Spec) ([]agent.Offer, error) { return discover(ctx, dialects, s) },
		Schemes:  []string{"ws", "wss"},
	}
}
