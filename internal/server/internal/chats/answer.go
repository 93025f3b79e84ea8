// Answers to the questions of agents.

package chats

import (
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
)

// OutputAnswer returns the answer that the output of a call means: one of the decisions of the request, or a text.
//
// Clients that have no approvals and choices answer with a text, in which upper and lower case mean the same.
func OutputAnswer(r *event.Request, output string) gateway.Command {
	decisions := r.Options
	if r.Kind == event.RequestApproval {
		decisions = append([]string{string(event.Approve), string(event.Deny)}, decisions...)
	}
	for _, d := range decisions {
		if strings.EqualFold(d, strings.TrimSpace(output)) {
			return gateway.Command{Decision: event.Decision(d)}
		}
	}
	if output == "" {
		output = "(no output)" // an answer needs a decision or a text
	}
	return gateway.Command{Text: output}
}

// ErrorAnswer returns the text for an agent whose tool failed in the client. The turn continues: the agent decides what to do without the tool.
//
// An empty text would not be an answer.
func ErrorAnswer(text string) string {
	if text == "" {
		text = "the tool failed"
	}
	return "Error: " + text
}
