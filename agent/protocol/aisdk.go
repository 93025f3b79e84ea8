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

// aisdk is a route of the AI SDK, as its useChat calls it.
type aisdk struct{ server }

var (
	_ agent.Agent   = (*aisdk)(nil)
	_ agent.Checker = (*aisdk)(nil)
)

// aisdkInput is what a route is sent.
type aisdkInput struct {
	ID       string         `json:"id"`
	Trigger  string         `json:"trigger"`
	Messages []aisdkMessage `json:"messages"`
}

type aisdkMessage struct {
	ID    string      `json:"id"`
	Role  string      `json:"role"`
	Parts []aisdkPart `json:"parts"`
}

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

type aisdkApproval struct {
	ID       string `json:"id"`
	Approved bool   `json:"approved"`
	Reason   string `json:"reason,omitempty"`
}

// Run sends the conversation. After a tool's approval it sends the conversation again, with the answer so far and the decision: the route
// stores nothing between two requests.
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

func aisdkOf(m agent.Message) aisdkMessage {
	text, attachments := files(m)
	message := aisdkMessage{ID: m.ID, Role: string(m.Role), Parts: []aisdkPart{{Type: "text", Text: &text}}}
	for _, f := range attachments {
		message.Parts = append(message.Parts, aisdkPart{Type: "file", URL: f.URL, MediaType: f.MIME, Filename: f.Name})
	}
	return message
}

// aisdkAnswer is the assistant's message so far, in the form in which the route gets it back after an approval.
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

func (a *aisdkAnswer) tool(id string) *aisdkPart {
	i := slices.IndexFunc(a.Parts, func(p aisdkPart) bool { return p.Call == id })
	if i < 0 {
		return nil
	}
	return &a.Parts[i]
}

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
