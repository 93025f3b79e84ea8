package plugin

import (
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/base/process"
)

// Kind returns the agent kind "plugin". Its agents decode events with the dialect "leat" of dialects.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "plugin",
		Summary: "a long-running program on this machine that serves many turns at once; see docs/plugins.md",
		Target:  "COMMAND",
		Options: []agent.Option{
			{Name: "env", Help: "environment variables to pass on, separated by commas, in addition to " + strings.Join(process.Always, ", ")},
		},
		New: func(s agent.Spec) (agent.Agent, error) {
			leat, err := dialects.Lookup("leat")
			if err != nil {
				return nil, err
			}
			command, err := agent.Command(s.Target)
			if err != nil {
				return nil, err
			}
			return New(Config{Command: command, Env: process.Names(s.Options["env"]), Dialect: leat})
		},
	}
}
