package exec

import (
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/base/process"
)

// defaultDialect is that of programs that name none. Its explicit end makes a cut never look like success.
const defaultDialect = "eliza-actions"

// Kind is the agent as a kind.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "exec",
		Summary: "a program on this machine, started for each turn: JSON on its standard input, a stream on its standard output",
		Target:  "COMMAND",
		Options: []agent.Option{
			{Name: "dialect", Help: "the dialect of its output", Default: defaultDialect},
			{Name: "env", Help: "names of environment variables that it gets, separated by commas, beside " + strings.Join(process.Always, ", ")},
		},
		New: func(s agent.Spec) (agent.Agent, error) {
			name := s.Options["dialect"]
			if name == "" {
				name = defaultDialect
			}
			d, err := dialects.Lookup(name)
			if err != nil {
				return nil, err
			}
			command, err := agent.Command(s.Target)
			if err != nil {
				return nil, err
			}
			return New(Config{Command: command, Dialect: d, Env: process.Names(s.Options["env"])})
		},
	}
}

// environment is what the program of a turn sees.
func (a *Agent) environment(in agent.Input) []string {
	variables := []string{"LEAT_CONVERSATION=" + in.Conversation, "LEAT_TURN=" + in.Turn, "LEAT_KEY=" + in.Key}
	return process.Environment(variables, a.cfg.Env...)
}
