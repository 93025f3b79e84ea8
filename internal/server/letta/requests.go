// Requests of turns as calls that wait for the client, and their answers as results.

package letta

import (
	"cmp"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/transcript"
)

// requestsID returns the id that the requests of a turn have in common. Letta Code looks for open requests under the last id in the context of a conversation.
func requestsID(turn string) string { return "message-" + turn + ".requests" }

// requestID returns the id of a request's message. Letta Code takes what follows the separator for one of several calls of the message before it.
func requestID(turn, request string) string { return requestsID(turn) + ":tool:" + request }

// requestCallID returns the id of the call that represents a request. The ids of requests are those of the agent, and may repeat in each turn.
func requestCallID(turn, request string) string { return "call-" + turn + "." + request }

// ownerOfCall returns the id of the turn or message that is in the id of a call, or "".
func ownerOfCall(id string) string {
	owner, _, isFound := strings.Cut(strings.TrimPrefix(id, "call-"), ".")
	if !isFound {
		return ""
	}
	return owner
}

// requestOf returns a request of a turn as a call that waits for the client. An asker gets it as a question, unless it is for a tool of the client.
//
// If the request is about a call that the agent has begun itself, it has that call's id and arguments, so that clients show one call and not two. A
// question is a call of the tool ask_user with the question as its input.
func requestOf(messages []*transcript.Message, turn string, r *event.Request, isAsker bool) message {
	m := message{ID: requestID(turn, r.ID), Type: typeApproval, Otid: strings.TrimPrefix(requestID(turn, r.ID), "message-")}
	c := &call{Name: cmp.Or(r.Tool, "ask_user"), Arguments: argumentsOf(r.Data), ID: requestCallID(turn, r.ID)}
	isOwn := false // whether it is about a call of the agent
	for _, owner := range messages {
		for _, p := range owner.Parts {
			if owner.Turn == turn && p.Kind == event.KindTool && !chats.IsComplete(p) && (p.ID == r.Part || r.Part == "" && r.Kind == event.RequestApproval && p.Name == r.Tool) {
				c.ID, c.Arguments, isOwn = callID(owner.ID, p.ID), cmp.Or(p.Text(event.Input), "{}"), true
				m.Step = "step-" + owner.ID
			}
		}
	}
	switch {
	case isAsker && (r.Kind == event.RequestApproval || r.Tool == ""):
		c = &call{Name: askTool, Arguments: encode(askInput{[]question{questionOf(r, c.Arguments)}}), ID: requestCallID(turn, r.ID)}
	case r.Tool == "" || len(r.Data) == 0 && !isOwn:
		c.Arguments = encode(plainQuestion{r.Prompt, r.Options})
	}
	m.Call, m.Calls = c, c
	return m
}

// plainQuestion is the input of a call that represents a question.
type plainQuestion struct {
	Prompt  string   `json:"question"`
	Options []string `json:"options,omitempty"`
}

// encode returns the JSON of a value of this package, which can always be marshalled because it has only texts.
func encode(v any) string {
	b, err := server.Marshal(v)
	if err != nil {
		return "{}"
	}
	return string(b)
}

// requestReturnOf returns the answer to a request as the result of its call.
func requestReturnOf(turn string, c *call, a *event.Answer) message {
	text, status := cmp.Or(a.Text, string(a.Decision)), "success"
	if c.Name == askTool {
		text = sentenceOf(c, a)
	}
	if a.Decision == event.Deny && c.Name != askTool {
		status = "error"
	}
	id := requestID(turn, a.ID) + ".return"
	return message{
		ID: id, Otid: strings.TrimPrefix(id, "message-"), Type: typeReturn, CallID: c.ID, Status: status, Return: &text,
		Returns: []toolReturn{{Type: "tool", CallID: c.ID, Status: status, Return: text}},
	}
}
