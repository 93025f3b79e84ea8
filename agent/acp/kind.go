package acp

import (
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/base/process"
)

// Kind is the agent as a kind.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "acp",
		Summary: "a coding agent as a child process that speaks the Agent Client Protocol",
		Target:  "COMMAND",
		Options: []agent.Option{
			{Name: "dir", Help: "folder in which it works", Default: "that of the gateway"},
			{Name: "env", Help: "names of environment variables that it gets, separated by commas, beside " + strings.Join(process.Always, ", ")},
		},
		New: func(s agent.Spec) (agent.Agent, error) {
			d, err := dialects.Lookup("acp")
			if err != nil {
				return nil, err
			}
			command, err := agent.Command(s.Target)
			if err != nil {
				return nil, err
			}
			return New(Config{Command: command, Dir: s.Options["dir"], Env: process.Names(s.Options["env"]), Dialect: d})
		},
	}
}
