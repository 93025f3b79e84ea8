package agentsdk

import (
	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// Kind returns the kind agentsdk. The registry must have the dialect of the same name.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "agentsdk",
		Summary: "an agentsdk-go runtime behind its HTTP server",
		Target:  "URL",
		Options: append([]agent.Option{
			{Name: "session", Help: "template of the runtime's session ids, with {tenant}, {subject}, {conversation}", Default: defaultSession},
		}, agent.SecretOptions("token", "token of the server", "")...),
		New: func(s agent.Spec) (agent.Agent, error) {
			d, err := dialects.Lookup("agentsdk")
			if err != nil {
				return nil, err
			}
			token, err := s.Secret("token")
			if err != nil {
				return nil, err
			}
			return New(Config{URL: s.Target, Session: s.Options["session"], Token: token, Dialect: d})
		},
	}
}
