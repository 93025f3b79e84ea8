package agui

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server/internal/chats"
)

// payload has the fields in which pages answer interrupts. Those of the schemas are approved, reason and text. A decision is for requests with options:
// the metadata of their interrupts lists them.
//
// Approved is a pointer because a page may answer with a text only.
type payload struct {
	Approved *bool  `json:"approved"`
	Decision string `json:"decision"`
	Text     string `json:"text"`
	Reason   string `json:"reason"`
}

// interruptAnswer returns the answer to a request that an interrupt was sent for. The payload is an object as its schema says, or simply true,
// false or a text.
func interruptAnswer(r *event.Request, e *resumeEntry) gateway.Command {
	isApproval := r.Kind == event.RequestApproval
	if e.Status == "cancelled" {
		return gateway.Command{Decision: event.Deny}
	}
	// Pages with a simple form answer with a boolean or a text, although the schema says otherwise.
	var isTrue bool
	if err := json.Unmarshal(e.Payload, &isTrue); err == nil && isApproval && string(e.Payload) != "null" {
		return decisionOf(isTrue, "")
	}
	var o payload
	if err := json.Unmarshal(e.Payload, &o); err == nil { // else it isn't an object
		switch {
		case o.Approved != nil:
			return decisionOf(*o.Approved, cmp.Or(o.Reason, o.Text))
		case o.Decision != "" || o.Text != "":
			return chats.OutputAnswer(r, cmp.Or(o.Decision, o.Text))
		}
	}
	text := jsonText(e.Payload)
	if isApproval && (text == "" || text == "null") {
		return decisionOf(true, "") // resolved, and nothing else
	}
	return chats.OutputAnswer(r, text)
}

// decisionOf returns the answer to an approval.
func decisionOf(isApproved bool, text string) gateway.Command {
	if isApproved {
		return gateway.Command{Decision: event.Approve, Text: text}
	}
	return gateway.Command{Decision: event.Deny, Text: text}
}

// jsonText returns the text of a JSON value: the content of a string, or the value itself.
func jsonText(v json.RawMessage) string {
	var s string
	if err := json.Unmarshal(v, &s); err == nil {
		return s
	}
	return strings.TrimSpace(string(v))
}
