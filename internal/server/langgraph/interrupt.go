// Interrupts: the questions of agents, and their answers.

package langgraph

import (
	"cmp"
	"encoding/json"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/transcript"
)

// interrupt is a question in a state.
type interrupt struct {
	ID        string          `json:"id"`
	Value     json.RawMessage `json:"value"`
	Phase     string          `json:"when"` // during
	Resumable bool            `json:"resumable"`
	Namespace []string        `json:"ns"`
}

// interruptID returns the id of a question. Agents may use the id of a request again in another turn, but clients ignore a question that they have
// answered.
func interruptID(turn string, r *event.Request) string { return turn + "." + r.ID }

// interruptOf returns a request as an interrupt. The messages are those of its turn.
func interruptOf(turn string, messages []*transcript.Message, r *event.Request) interrupt {
	return interrupt{ID: interruptID(turn, r), Value: questionOf(turn, messages, r), Phase: "during", Resumable: true, Namespace: []string{}}
}

// approvalQuestion is the question of LangChain's middleware for approvals, which ready-made pages show with buttons.
type approvalQuestion struct {
	Actions []actionRequest `json:"action_requests"`
	Reviews []reviewConfig  `json:"review_configs"`
	Options []string        `json:"options,omitempty"`
}

type actionRequest struct {
	Name        string          `json:"name"`
	Args        json.RawMessage `json:"args"`
	Description string          `json:"description,omitempty"`
}

type reviewConfig struct {
	Action    string   `json:"action_name"`
	Decisions []string `json:"allowed_decisions"`
}

// toolQuestion is a tool of the client, as the SDK knows it: it runs the tool by itself, and answers with the result.
type toolQuestion struct {
	Type string   `json:"type"` // tool
	Call toolCall `json:"tool_call"`
}

// textQuestion is a question to a person.
type textQuestion struct {
	Type    string          `json:"type"` // question
	Prompt  string          `json:"prompt"`
	Options []string        `json:"options,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// questionOf returns the value of an interrupt.
func questionOf(turn string, messages []*transcript.Message, r *event.Request) json.RawMessage {
	switch {
	case r.Kind == event.RequestApproval:
		name, args := cmp.Or(r.Tool, "approval"), json.RawMessage("{}")
		if _, p := chats.ToolOf(messages, r); p != nil {
			name, args = chats.ToolName(p), argsOf(p)
		}
		return jsonOf(approvalQuestion{
			Actions: []actionRequest{{name, args, r.Prompt}},
			Reviews: []reviewConfig{{name, []string{"approve", "reject"}}},
			Options: r.Options,
		})
	case chats.IsClientTool(r):
		return jsonOf(toolQuestion{"tool", toolCall{ID: interruptID(turn, r), Name: r.Tool, Args: dataOf(r, "{}"), Type: "tool_call"}})
	}
	return jsonOf(textQuestion{"question", cmp.Or(r.Prompt, "The agent needs an answer."), r.Options, dataOf(r, "")})
}

// dataOf returns the data of a request. It is a text of the agent, and so need not be JSON.
func dataOf(r *event.Request, otherwise string) json.RawMessage {
	switch {
	case len(r.Data) == 0:
		return json.RawMessage(otherwise)
	case !json.Valid(r.Data):
		return jsonOf(string(r.Data))
	}
	return r.Data
}

// decision is an answer of LangChain's middleware, or of the pages before it, whose types are accept, response and ignore.
type decision struct {
	Type    string          `json:"type"`
	Message string          `json:"message"`
	Args    json.RawMessage `json:"args"`
}

// answerTo returns the answer to a request that the value of a resume means.
func answerTo(turn string, r *event.Request, value json.RawMessage) (gateway.Command, error) {
	if chats.IsClientTool(r) {
		return toolAnswer(interruptID(turn, r), value), nil
	}
	if r.Kind == event.RequestApproval {
		var answer struct {
			Decisions []decision `json:"decisions"`
		}
		list := &answer.Decisions
		// Either form may be missing. Then the value is in a form that the page has chosen.
		if json.Unmarshal(value, &answer) == nil && len(*list) == 1 || json.Unmarshal(value, list) == nil && len(*list) == 1 {
			if d := (*list)[0]; d.Type != "" {
				return decisionAnswer(&d)
			}
		}
	}
	return chats.PayloadAnswer(r, value), nil
}

// decisionAnswer returns the answer that a decision means. An agent can't take arguments that were edited.
func decisionAnswer(d *decision) (gateway.Command, error) {
	switch d.Type {
	case "approve", "accept":
		return chats.DecisionAnswer(true, d.Message), nil
	case "reject", "ignore":
		return chats.DecisionAnswer(false, d.Message), nil
	case "response", "respond":
		return chats.DecisionAnswer(false, cmp.Or(d.Message, chats.TextOf(d.Args))), nil
	}
	return gateway.Command{}, unsupported("a decision of type %q can't be given here; use approve or reject", d.Type)
}

// toolAnswer returns the answer of a tool of the client. The SDK sends its result under the id of the call, and a failure as an object with an error.
func toolAnswer(call string, value json.RawMessage) gateway.Command {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(value, &o); err == nil && len(o) == 1 { // else it is the result itself
		if result, ok := o[call]; ok {
			return toolAnswer("", result)
		}
		if text, ok := o["error"]; ok {
			return gateway.Command{Text: chats.ErrorAnswer(chats.TextOf(text))}
		}
	}
	return gateway.Command{Text: cmp.Or(chats.TextOf(value), "(no output)")} // an answer needs a text
}
