package compat

import (
	"context"
	"encoding/base64"
	"fmt"
	"iter"
	"net/http"

	a2a0 "github.com/a2aproject/a2a-go/a2a"
	client0 "github.com/a2aproject/a2a-go/a2aclient"
	card0 "github.com/a2aproject/a2a-go/a2aclient/agentcard"
)

// clientOld is the client of protocol 0.3.
type clientOld struct {
	sdk   *client0.Client
	about *a2a0.AgentCard
}

func newClientOld(ctx context.Context, base, agent, token string, web *http.Client) (a2aClient, error) {
	card, err := card0.NewResolver(web).Resolve(ctx, base+"/a2a/"+agent, card0.WithRequestHeader("Authorization", "Bearer "+token))
	if err != nil {
		return nil, err
	}
	store := client0.NewInMemoryCredentialsStore()
	store.Set(a2aSession, "bearer", client0.AuthCredential(token))
	sdk, err := client0.NewFromCard(ctx, card, client0.WithJSONRPCTransport(web), client0.WithInterceptors(&client0.AuthInterceptor{Service: store}))
	return &clientOld{sdk, card}, err
}

func (c *clientOld) card() string {
	return fmt.Sprintf("%s %s %v %v", c.about.Name, c.about.ProtocolVersion, c.about.PreferredTransport, c.about.Capabilities.Streaming)
}

func (c *clientOld) errors() a2aErrors {
	return a2aErrors{a2a0.ErrTaskNotFound, a2a0.ErrTaskNotCancelable, a2a0.ErrUnsupportedOperation, a2a0.ErrPushNotificationNotSupported, a2a0.ErrInvalidParams}
}

func (c *clientOld) params(m a2aMessage) *a2a0.MessageSendParams {
	var parts a2a0.ContentParts
	if m.Text != "" {
		parts = append(parts, a2a0.TextPart{Text: m.Text})
	}
	if m.Data != nil {
		parts = append(parts, a2a0.DataPart{Data: m.Data})
	}
	if m.File != nil {
		file := a2a0.FileBytes{FileMeta: a2a0.FileMeta{MimeType: "image/png", Name: "a.png"}, Bytes: base64.StdEncoding.EncodeToString(m.File)}
		parts = append(parts, a2a0.FilePart{File: file})
	}
	message := a2a0.NewMessage(a2a0.MessageRoleUser, parts...)
	message.TaskID, message.ContextID = a2a0.TaskID(m.Task), m.Context
	if m.ID != "" {
		message.ID = m.ID
	}
	params := &a2a0.MessageSendParams{Message: message}
	if m.HasPush {
		params.Config = &a2a0.MessageSendConfig{PushConfig: &a2a0.PushConfig{URL: "http://127.0.0.1:1/"}}
	}
	return params
}

func (c *clientOld) send(ctx context.Context, m a2aMessage) (*a2aTask, error) {
	result, err := c.sdk.SendMessage(client0.WithSessionID(ctx, a2aSession), c.params(m))
	if err != nil {
		return nil, err
	}
	task, ok := result.(*a2a0.Task)
	if !ok {
		return nil, fmt.Errorf("the result is a %T", result)
	}
	return c.task(task), nil
}

func (c *clientOld) stream(ctx context.Context, m a2aMessage) iter.Seq2[a2aEvent, error] {
	return c.events(c.sdk.SendStreamingMessage(client0.WithSessionID(ctx, a2aSession), c.params(m)))
}

func (c *clientOld) subscribe(ctx context.Context, id string) iter.Seq2[a2aEvent, error] {
	return c.events(c.sdk.ResubscribeToTask(client0.WithSessionID(ctx, a2aSession), &a2a0.TaskIDParams{ID: a2a0.TaskID(id)}))
}

func (c *clientOld) get(ctx context.Context, id string) (*a2aTask, error) {
	task, err := c.sdk.GetTask(client0.WithSessionID(ctx, a2aSession), &a2a0.TaskQueryParams{ID: a2a0.TaskID(id)})
	if err != nil {
		return nil, err
	}
	return c.task(task), nil
}

func (c *clientOld) cancel(ctx context.Context, id string) (*a2aTask, error) {
	task, err := c.sdk.CancelTask(client0.WithSessionID(ctx, a2aSession), &a2a0.TaskIDParams{ID: a2a0.TaskID(id)})
	if err != nil {
		return nil, err
	}
	return c.task(task), nil
}

func (c *clientOld) events(events iter.Seq2[a2a0.Event, error]) iter.Seq2[a2aEvent, error] {
	return func(yield func(a2aEvent, error) bool) {
		for event, err := range events {
			var e a2aEvent
			switch event := event.(type) {
			case nil:
			case *a2a0.Task:
				e.task = c.task(event)
			case *a2a0.TaskStatusUpdateEvent:
				e.status = c.status(event.Status)
				e.status.isFinal = event.Final
			case *a2a0.TaskArtifactUpdateEvent:
				e.artifact = c.artifact(event.Artifact)
				e.artifact.isAppend, e.artifact.isLast = event.Append, event.LastChunk
			default:
				err = fmt.Errorf("the event is a %T", event)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (c *clientOld) task(t *a2a0.Task) *a2aTask {
	task := &a2aTask{id: string(t.ID), context: t.ContextID, artifacts: map[string]*a2aArtifact{}, a2aStatus: *c.status(t.Status)}
	for _, a := range t.Artifacts {
		task.artifacts[string(a.ID)] = c.artifact(a)
	}
	for _, m := range t.History {
		text, _ := c.parts(m.Parts)
		task.history = append(task.history, string(m.Role)+" "+text)
	}
	return task
}

func (c *clientOld) status(s a2a0.TaskStatus) *a2aStatus {
	status := &a2aStatus{state: string(s.State)}
	if s.Message != nil {
		status.note, _ = c.parts(s.Message.Parts)
	}
	return status
}

func (c *clientOld) artifact(a *a2a0.Artifact) *a2aArtifact {
	text, kinds := c.parts(a.Parts)
	return &a2aArtifact{id: string(a.ID), text: text, kinds: kinds}
}

func (*clientOld) parts(parts a2a0.ContentParts) (text string, kinds []string) {
	for _, p := range parts {
		switch p := p.(type) {
		case a2a0.TextPart:
			text += p.Text
			kinds = append(kinds, "text")
		case a2a0.FilePart:
			kinds = append(kinds, "file")
		case a2a0.DataPart:
			kinds = append(kinds, fmt.Sprint("data ", p.Data))
		}
	}
	return text, kinds
}
