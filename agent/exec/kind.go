package exec

import (
	"cmp"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/base/process"
)

// defaultDialect is the default of the option dialect. It has an explicit end, so output that was cut off never looks complete.
const defaultDialect = "eliza-actions"

// Kind returns the kind exec. The registry has the dialects that its option can name.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "exec",
		Summary: "a program on this machine, started for each turn: JSON on its standard input, a stream on its standard output",
		Target:  "COMMAND",
		Options: []agent.Option{
			{Name: "dialect", Help: "the dialect of the program's output", Default: defaultDialect},
			{Name: "env", Help: "names of further environment variables for the program, separated by commas; it always gets " + strings.Join(process.Always, ", ")},
		},
		New: func(s agent.Spec) (agent.Agent, error) {
			d, err := dialects.Lookup(cmp.Or(s.Options["dialect"], defaultDialect))
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

// environment returns the environment of the program for one turn.
func (a *Agent) environment(in agent.Input) []string {
	variables := []string{"LEAT_CONVERSATION=" + in.Conversation, "LEAT_TURN=" + in.Turn, "LEAT_KEY=" + in.Key}
	return process.Environment(variables, a.cfg.Env...)
}
