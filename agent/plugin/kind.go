package plugin

import (
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/base/process"
)

// Kind is the agent as a kind. The dialect is leat.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "plugin",
		Summary: "a program on this machine that stays and answers many turns at once: docs/plugins.md",
		Target:  "COMMAND",
		Options: []agent.Option{
			{Name: "env", Help: "names of environment variables that it gets, separated by commas, beside " + strings.Join(process.Always, ", ")},
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
