package channel

import (
	"cmp"
	"context"
	"slices"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// compact asks the agent of a chat to shorten the context of its session. The reply of the agent's upstream is delivered as a turn; if
// the agent can't, the reply says so.
func (c *connector) compact(ctx context.Context, t *chat, m *InboundMessage, author string) (reply string, err error) {
	b := c.current(t)
	if b == nil {
		return textNoSession, nil
	}
	s, err := c.pipeline.gateway.Conversation(ctx, c.principalOf(b), gateway.ActionRead, b.Conversation)
	if isDeleted(err) {
		return textNoSession, nil
	}
	if err != nil {
		return "", err
	}
	agents := c.pipeline.gateway.Catalog().Agents(c.principalOf(b))
	i := slices.IndexFunc(agents, func(a gateway.AgentInfo) bool { return cmp.Or(s.Agent, defaultAgent(agents)) == a.Name })
	if i < 0 || agents[i].Compact == "" {
		return textNoCompact, nil
	}
	isBusy := false
	err = c.pipeline.gateway.ViewTranscript(ctx, c.principalOf(b), b.Conversation, func(log *transcript.Transcript) bool {
		isBusy = len(unfinished(log)) > 0
		return true
	})
	if err != nil {
		return "", err
	}
	if isBusy { // the message could become a part of the running turn
		return textCompactBusy, nil
	}
	command := *m
	command.Content, command.Media, command.Hints.Group = agents[i].Compact, nil, false // without the author's name
	return "", c.ask(ctx, &command, author)
}

// defaultAgent returns the name of the agent that answers in conversations without one of their own.
func defaultAgent(agents []gateway.AgentInfo) string {
	for _, a := range agents {
		if a.Default {
			return a.Name
		}
	}
	return ""
}
