package protocol

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/event"
)

// agui is an agent of the AG-UI protocol (docs.ag-ui.com). The protocol has no way to stop, probe or resume a run.
type agui struct{ server }

var (
	_ agent.Agent   = (*agui)(nil)
	_ agent.Checker = (*agui)(nil)
)

// aguiInput is the protocol's RunAgentInput. Empty lists and objects must be present.
type aguiInput struct {
	Thread   string        `json:"threadId"`
	Run      string        `json:"runId"`
	Protocol string        `json:"protocolVersion"`
	State    struct{}      `json:"state"`
	Messages []aguiMessage `json:"messages"`
	Tools    []struct{}    `json:"tools"`
	Context  []struct{}    `json:"context"`
	Props    struct{}      `json:"forwardedProps"`
	Resume   []aguiResume  `json:"resume,omitempty"`
}

// aguiMessage is a message of the conversation. ID is the id of Leat's message, so it is the same in every run.
type aguiMessage struct {
	ID      string `json:"id"`
	Role    string `json:"role"`
	Content any    `json:"content"` // a text, or a list of parts
}

// aguiPart is a part of a user's message: a text, or a file of the type image, audio, video or document with a
// Source.
type aguiPart struct {
	Type   string      `json:"type"`
	Text   string      `json:"text,omitempty"`
	Source *aguiSource `json:"source,omitempty"`
}

// aguiSource is the content of a file. Type "url" has an address in Value, and "data" the content in base64
// with its type in MIME.
type aguiSource struct {
	Type  string `json:"type"`
	Value string `json:"value"`
	MIME  string `json:"mimeType,omitempty"`
}

// aguiResume is the user's answer to one interrupt of the previous run. Status is "resolved", also for a
// denial: the other value, "cancelled", means that the user gave no answer.
type aguiResume struct {
	Interrupt string `json:"interruptId"`
	Status    string `json:"status"`
	Payload   any    `json:"payload,omitempty"`
}

// Run starts a run with the whole history, because the protocol's servers need not store any. The user's
// answers start another run in the same thread; its id has a number appended, since run ids must be unique. All
// interrupts of a run are answered in one request: the protocol rejects a run that leaves an interrupt of its
// thread open.
func (a *agui) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	in, err := emitter.Inline(ctx, in)
	if err != nil {
		return err
	}
	body := aguiInput{Thread: in.Conversation, Run: in.Turn, Protocol: "1.0", Tools: []struct{}{}, Context: []struct{}{}}
	for _, m := range conversation(in) {
		body.Messages = append(body.Messages, aguiMessage{ID: m.ID, Role: string(m.Role), Content: aguiContent(m)})
	}
	t := a.talk(emitter)
	runs := 0
	t.Request = func(ctx context.Context, answers []event.Answer) (*http.Request, error) {
		body.Resume = nil
		for _, answer := range answers {
			body.Resume = append(body.Resume, aguiAnswer(answer))
		}
		if len(answers) > 0 {
			runs++
			body.Run = fmt.Sprintf("%s-%d", in.Turn, runs+1)
		}
		return call.Stream(ctx, a.url, a.token, in.Key, body)
	}
	return t.Run(ctx)
}

// aguiContent returns the content of a message: a text if it has no files, the form that every server accepts,
// and otherwise a list that begins with the text. Only messages of the user can have files.
func aguiContent(m agent.Message) any {
	if m.Role != event.User {
		return m.Text
	}
	text, attachments := files(m)
	if len(attachments) == 0 {
		return text
	}
	parts := []aguiPart{{Type: "text", Text: text}}
	for _, f := range attachments {
		part := aguiPart{Type: f.family(), Source: &aguiSource{Type: "url", Value: f.URL, MIME: f.MIME}}
		if data, ok := f.data(); ok {
			part.Source.Type, part.Source.Value = "data", data
		}
		parts = append(parts, part)
	}
	return parts
}

// aguiAnswer returns the user's answer to an interrupt: {"approved": true or false} for an approval, otherwise the choice or the text.
func aguiAnswer(a event.Answer) aguiResume {
	r := aguiResume{Interrupt: a.ID, Status: "resolved"}
	switch {
	case a.Decision == event.Approve, a.Decision == event.Deny:
		payload := map[string]any{"approved": a.Decision == event.Approve}
		if a.Text != "" {
			payload["text"] = a.Text
		}
		r.Payload = payload
	case a.Decision != "":
		r.Payload = a.Decision
	default:
		r.Payload = value(a.Text)
	}
	return r
}

// value returns the text of an answer as JSON if it is an object or a list, and otherwise as a string. A number
// stays a string, since the user has typed a text.
func value(text string) any {
	if len(text) > 0 && (text[0] == '{' || text[0] == '[') && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return text
}
