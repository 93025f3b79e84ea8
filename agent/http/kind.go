package http

import (
	"cmp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// defaultDialect is the default of the option dialect. It has an explicit end, so a stream that was cut off never looks complete.
const defaultDialect = "eliza-actions"

// Kind returns the kind http. The registry has the dialects that its option can name.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "http",
		Summary: "a program behind a URL: gets each turn as JSON and answers with a stream in any dialect",
		Target:  "URL",
		Options: append([]agent.Option{
			{Name: "dialect", Help: "the dialect of the answer", Default: defaultDialect},
			{Name: "stop", Help: "URL that is called after a turn was stopped"},
			{Name: "control", Help: "URL that gets answers to the agent's requests, and messages sent while a turn runs"},
		}, agent.SecretOptions("secret", "key that signs the requests, in the header Leat-Signature", "")...),
		New: func(s agent.Spec) (agent.Agent, error) {
			d, err := dialects.Lookup(cmp.Or(s.Options["dialect"], defaultDialect))
			if err != nil {
				return nil, err
			}
			c := Config{URL: s.Target, Dialect: d, Stop: s.Options["stop"]}
			if c.Secret, err = s.Secret("secret"); err != nil {
				return nil, err
			}
			if control := s.Options["control"]; control != "" {
				return newControlled(c, control)
			}
			return New(c)
		},
	}
}
