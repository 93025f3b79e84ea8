package acp

import (
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/base/process"
)

// Kind returns the agent kind "acp". Its agents decode their streams with the dialect "acp" of dialects.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "acp",
		Summary: "a coding agent as a child process that speaks the Agent Client Protocol",
		Target:  "COMMAND",
		Options: []agent.Option{
			{Name: "dir", Help: "working directory of the agent", Default: "the gateway's"},
			{Name: "env", Help: "environment variables to pass on, separated by commas, in addition to " + strings.Join(process.Always, ", ")},
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
