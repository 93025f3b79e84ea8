package protocol

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// aisdk is a route of the AI SDK, as its useChat calls it. The route streams chunks of one assistant message;
// it stores nothing, so the agent has no session, and a broken stream can't be resumed.
type aisdk struct{ server }

var (
	_ agent.Agent   = (*aisdk)(nil)
	_ agent.Checker = (*aisdk)(nil)
)

// aisdkInput is the body that useChat posts: the id of the chat and all of its messages. Trigger is
// "submit-message" for a new message; useChat's other trigger, which regenerates an answer, isn't needed, since
// Leat sends a repeated question as a new message.
type aisdkInput struct {
	ID       string         `json:"id"`
	Trigger  string         `json:"trigger"`
	Messages []aisdkMessage `json:"messages"`
}

// aisdkMessage is a UIMessage of the AI SDK. Its role is "user", "assistant" or "system".
type aisdkMessage struct {
	ID    string      `json:"id"`
	Role  string      `json:"role"`
	Parts []aisdkPart `json:"parts"`
}

// aisdkPart is a part of a message. Type is "text", "file", "tool-NAME" for a tool that the route declares, or
// "dynamic-tool" with the name in Tool. Text is a pointer so that an empty text is sent too: the SDK rejects a
// text part without the key.
type aisdkPart struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	URL       string          `json:"url,omitempty"`
	MediaType string          `json:"mediaType,omitempty"`
	Filename  string          `json:"filename,omitempty"`
	Call      string          `json:"toolCallId,omitempty"`
	Tool      string          `json:"toolName,omitempty"` // of a dynamic tool
	State     string          `json:"state,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"`
	Approval  *aisdkApproval  `json:"approval,omitempty"`

	builder *strings.Builder // collects the deltas of Text
}

// aisdkApproval is a tool's request for an approval and, when it is sent back, the user's decision.
type aisdkApproval struct {
	ID       string `json:"id"`
	Approved bool   `json:"approved"`
	Reason   string `json:"reason,omitempty"`
}

// Run sends the conversation. After a tool's approval it sends the conversation again, with the answer so far
// and the decision: the route stores nothing between two requests. The answer grows over all rounds of a turn,
// because [aisdkAnswer.frame] sees every frame.
func (a *aisdk) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	in, err := emitter.Inline(ctx, in)
	if err != nil {
		return err
	}
	body := aisdkInput{ID: in.Conversation, Trigger: "submit-message"}
	for _, m := range conversation(in) {
		body.Messages = append(body.Messages, aisdkOf(m))
	}
	answer := aisdkAnswer{ID: in.Turn}
	t := a.talk(emitter)
	t.Frame = answer.frame
	t.Request = func(ctx context.Context, answers []event.Answer) (*http.Request, error) {
		send := body
		if len(answers) > 0 {
			answer.approve(answers)
			send.Messages = append(slices.Clip(body.Messages), aisdkMessage{ID: answer.ID, Role: "assistant", Parts: answer.Parts})
		}
		return call.Stream(ctx, a.url, a.token, in.Key, send)
	}
	return t.Run(ctx)
}

// aisdkOf converts a message. The text part is first, and files follow as URLs, which may be data URLs.
func aisdkOf(m agent.Message) aisdkMessage {
	text, attachments := files(m)
	message := aisdkMessage{ID: m.ID, Role: string(m.Role), Parts: []aisdkPart{{Type: "text", Text: &text}}}
	for _, f := range attachments {
		message.Parts = append(message.Parts, aisdkPart{Type: "file", URL: f.URL, MediaType: f.MIME, Filename: f.Name})
	}
	return message
}

// aisdkAnswer is the assistant's message so far, in the form in which the route gets it back after an approval.
// It is used only by the goroutine of Run.
type aisdkAnswer struct {
	ID    string
	Parts []aisdkPart
}

// frame adds a chunk to the message. It ignores chunks that the message doesn't contain, such as reasoning.
func (a *aisdkAnswer) frame(f dialect.Frame) {
	var in struct {
		Type      string          `json:"type"`
		MessageID string          `json:"messageId"`
		Delta     string          `json:"delta"`
		Call      string          `json:"toolCallId"`
		Tool      string          `json:"toolName"`
		Dynamic   bool            `json:"dynamic"`
		Input     json.RawMessage `json:"input"`
		Output    json.RawMessage `json:"output"`
		Approval  string          `json:"approvalId"`
	}
	if json.Unmarshal(f.Data, &in) != nil {
		return
	}
	switch in.Type {
	case "start":
		if in.MessageID != "" {
			a.ID = in.MessageID
		}
	case "text-delta":
		if n := len(a.Parts); n > 0 && a.Parts[n-1].Type == "text" {
			a.Parts[n-1].builder.WriteString(in.Delta)
		} else {
			p := aisdkPart{Type: "text", builder: &strings.Builder{}}
			p.builder.WriteString(in.Delta)
			a.Parts = append(a.Parts, p)
		}
	case "tool-input-available":
		p := aisdkPart{Type: "tool-" + in.Tool, Call: in.Call, State: "input-available", Input: in.Input}
		if in.Dynamic {
			p.Type, p.Tool = "dynamic-tool", in.Tool
		}
		a.Parts = append(a.Parts, p)
	case "tool-output-available":
		if p := a.tool(in.Call); p != nil {
			p.State, p.Output = "output-available", in.Output
		}
	case "tool-approval-request":
		if p := a.tool(in.Call); p != nil {
			p.State, p.Approval = "approval-requested", &aisdkApproval{ID: in.Approval}
		}
	}
}

// tool returns the part of a tool call, or nil if the stream hasn't contained its input. The pointer is valid
// until a part is appended.
func (a *aisdkAnswer) tool(id string) *aisdkPart {
	i := slices.IndexFunc(a.Parts, func(p aisdkPart) bool { return p.Call == id })
	if i < 0 {
		return nil
	}
	return &a.Parts[i]
}

// approve completes the message for the next request: it sets the texts that frame has collected, and writes
// each decision into the part that asked for it. The route then runs the approved tools.
func (a *aisdkAnswer) approve(answers []event.Answer) {
	for i := range a.Parts {
		if p := &a.Parts[i]; p.builder != nil {
			text := p.builder.String()
			p.Text = &text
		}
	}
	for _, answer := range answers {
		for i := range a.Parts {
			if p := &a.Parts[i]; p.Approval != nil && p.Approval.ID == answer.ID {
				p.State, p.Approval.Approved, p.Approval.Reason = "approval-responded", answer.Decision == event.Approve, answer.Text
			}
		}
	}
}
