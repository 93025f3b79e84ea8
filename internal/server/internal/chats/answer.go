// Answers to the questions of agents.

package chats

import (
	"bytes"
	"cmp"
	"encoding/json"
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

// payload has the fields in which pages answer questions: approved and reason, or text. A decision is for requests with options.
//
// Approved is a pointer because a page may answer with a text only.
type payload struct {
	Approved *bool  `json:"approved"`
	Decision string `json:"decision"`
	Text     string `json:"text"`
	Reason   string `json:"reason"`
}

// PayloadAnswer returns the answer to a request that a JSON value means. The value is an object with the fields of a payload, or simply true, false
// or a text. No value approves, because the client has resolved the question and says nothing else.
func PayloadAnswer(r *event.Request, value json.RawMessage) gateway.Command {
	isApproval := r.Kind == event.RequestApproval
	// Pages with a simple form answer with a boolean or a text.
	var isTrue bool
	if err := json.Unmarshal(value, &isTrue); err == nil && isApproval && string(value) != "null" {
		return DecisionAnswer(isTrue, "")
	}
	var o payload
	if err := json.Unmarshal(value, &o); err == nil { // else it isn't an object
		switch {
		case o.Approved != nil:
			return DecisionAnswer(*o.Approved, cmp.Or(o.Reason, o.Text))
		case o.Decision != "" || o.Text != "":
			return OutputAnswer(r, cmp.Or(o.Decision, o.Text))
		}
	}
	text := TextOf(value)
	if isApproval && (text == "" || text == "null") {
		return DecisionAnswer(true, "")
	}
	return OutputAnswer(r, text)
}

// DecisionAnswer returns the answer to an approval.
func DecisionAnswer(isApproved bool, text string) gateway.Command {
	if isApproved {
		return gateway.Command{Decision: event.Approve, Text: text}
	}
	return gateway.Command{Decision: event.Deny, Text: text}
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

// TextOf returns the text of a JSON value that a client sent: the content of a string, or the value itself.
//
// Agents get answers as texts, but a page may answer with any value. Other values than strings reach the agent as JSON.
func TextOf(v json.RawMessage) string {
	var s string
	if err := json.Unmarshal(v, &s); err == nil {
		return s
	}
	return string(bytes.TrimSpace(v))
}
