package eliza

import (
	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// Kind returns the agent kind "eliza". Its agents decode their streams with the dialect "eliza-chat" of dialects.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "eliza",
		Summary: "an agent on an Eliza server, with the events of its socket as signals",
		Target:  "URL",
		Options: append([]agent.Option{
			{Name: "title", Help: "title of the conversations on the server, with {tenant}, {subject}, {conversation}", Default: defaultTitle},
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
