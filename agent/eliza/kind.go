package eliza

import (
	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// Kind is the agent as a kind.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "eliza",
		Summary: "an agent behind an Eliza server: its chat, and what it tells over its socket",
		Target:  "URL",
		Options: append([]agent.Option{
			{Name: "title", Help: "title of the conversations that are made there, with {tenant}, {subject}, {conversation}", Default: DefaultTitle},
		}, agent.SecretOptions("token", "token of the server", "")...),
		New: func(s agent.Spec) (agent.Agent, error) {
			d, err := dialects.Lookup("eliza-chat")
			if err != nil {
				return nil, err
			}
			token, err := s.Secret("token")
			if err != nil {
				return nil, err
			}
			return New(Config{URL: s.Target, Token: token, Title: s.Options["title"], Dialect: d})
		},
	}
}
