package http

import (
	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// defaultDialect is that of agents that name none. Its explicit end makes a cut never look like success.
const defaultDialect = "eliza-actions"

// Kind is the agent as a kind.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "http",
		Summary: "a program behind a URL: is sent what there is to answer, answers with a stream in any dialect",
		Target:  "URL",
		Options: append([]agent.Option{
			{Name: "dialect", Help: "the dialect of the answer", Default: defaultDialect},
			{Name: "stop", Help: "URL that is told when a turn was stopped"},
			{Name: "control", Help: "URL that is told of answers to its questions, and of messages while a turn runs"},
		}, agent.SecretOptions("secret", "key that signs the requests, in the header Leat-Signature", "")...),
		New: func(s agent.Spec) (agent.Agent, error) {
			name := s.Options["dialect"]
			if name == "" {
				name = defaultDialect
			}
			d, err := dialects.Lookup(name)
			if err != nil {
				return nil, err
			}
			c := Config{URL: s.Target, Dialect: d, Stop: s.Options["stop"]}
			if c.Secret, err = s.Secret("secret"); err != nil {
				return nil, err
			}
			if control := s.Options["control"]; control != "" {
				return NewControlled(c, control)
			}
			return New(c)
		},
	}
}
