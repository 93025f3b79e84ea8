package compat

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"

	a2a1 "github.com/a2aproject/a2a-go/v2/a2a"
	client1 "github.com/a2aproject/a2a-go/v2/a2aclient"
	card1 "github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
)

// clientNew is the client of protocol 1.0.
type clientNew struct {
	sdk   *client1.Client
	about *a2a1.AgentCard
}

// parseCard parses a card. The specification has the scopes of a requirement in an object, as the clients for Node and Python read them. The client
// for Go expects the list itself, and can't read the card otherwise.
func parseCard(card []byte) (*a2a1.AgentCard, error) {
	return card1.DefaultCardParser(bytes.ReplaceAll(card, []byte(`{"list":[]}`), []byte(`[]`)))
}

func newClientNew(ctx context.Context, base, agent, token string, web *http.Client) (a2aClient, error) {
	resolver := &card1.Resolver{Client: web, CardParser: parseCard}
	card, err := resolver.Resolve(ctx, base+"/a2a/"+agent, card1.WithRequestHeader("Authorization", "Bearer "+token))
	if err != nil {
		return nil, err
	}
	store := client1.NewInMemoryCredentialsStore()
	store.Set(a2aSession, "bearer", client1.AuthCredential(token))
	sdk, err := client1.NewFromCard(ctx, card, client1.WithJSONRPCTransport(web), client1.WithCallInterceptors(&client1.AuthInterceptor{Service: store}))
	return &clientNew{sdk, card}, err
}

func (c *clientNew) card() string {
	first := c.about.SupportedInterfaces[0]
	return fmt.Sprintf("%s %s %v %v", c.about.Name, first.ProtocolVersion, first.ProtocolBinding, c.about.Capabilities.Streaming)
}

func (c *clientNew) errors() a2aErrors {
	return a2aErrors{a2a1.ErrTaskNotFound, a2a1.ErrTaskNotCancelable, a2a1.ErrUnsupportedOperation, a2a1.ErrPushNotificationNotSupported, a2a1.ErrInvalidParams}
}

func (c *clientNew) params(m a2aMessage) *a2a1.SendMessageRequest {
	var parts a2a1.ContentParts
	if m.Text != "" {
		parts = append(parts, a2a1.NewTextPart(m.Text))
	}
	if m.Data != nil {
		parts = append(parts, a2a1.NewDataPart(m.Data))
	}
	if m.File != nil {
		file := a2a1.NewRawPart(m.File)
		file.MediaType, file.Filename = "image/png", "a.png"
		parts = append(parts, file)
	}
	message := a2a1.NewMessage(a2a1.MessageRoleUser, parts...)
	message.TaskID, message.ContextID = a2a1.TaskID(m.Task), m.Context
	if m.ID != "" {
		message.ID = m.ID
	}
	params := &a2a1.SendMessageRequest{Message: message}
	if m.HasPush {
		params.Config = &a2a1.SendMessageConfig{PushConfig: &a2a1.PushConfig{URL: "http://127.0.0.1:1/"}}
	}
	return params
}

func (c *clientNew) send(ctx context.Context, m a2aMessage) (*a2aTask, error) {
	result, err := c.sdk.SendMessage(client1.AttachSessionID(ctx, a2aSession), c.params(m))
	if err != nil {
		return nil, err
	}
	task, ok := result.(*a2a1.Task)
	if !ok {
		return nil, fmt.Errorf("the result is a %T", result)
	}
	return c.task(task), nil
}

func (c *clientNew) stream(ctx context.Context, m a2aMessage) iter.Seq2[a2aEvent, error] {
	return c.events(c.sdk.SendStreamingMessage(client1.AttachSessionID(ctx, a2aSession), c.params(m)))
}

func (c *clientNew) subscribe(ctx context.Context, id string) iter.Seq2[a2aEvent, error] {
	return c.events(c.sdk.SubscribeToTask(client1.AttachSessionID(ctx, a2aSession), &a2a1.SubscribeToTaskRequest{ID: a2a1.TaskID(id)}))
}

func (c *clientNew) get(ctx context.Context, id string) (*a2aTask, error) {
	task, err := c.sdk.GetTask(client1.AttachSessionID(ctx, a2aSession), &a2a1.GetTaskRequest{ID: a2a1.TaskID(id)})
	if err != nil {
		return nil, err
	}
	return c.task(task), nil
}

func (c *clientNew) cancel(ctx context.Context, id string) (*a2aTask, error) {
	task, err := c.sdk.CancelTask(client1.AttachSessionID(ctx, a2aSession), &a2a1.CancelTaskRequest{ID: a2a1.TaskID(id)})
	if err != nil {
		return nil, err
	}
	return c.task(task), nil
}

func (c *clientNew) events(events iter.Seq2[a2a1.Event, error]) iter.Seq2[a2aEvent, error] {
	return func(yield func(a2aEvent, error) bool) {
		for event, err := range events {
			var e a2aEvent
			switch event := event.(type) {
			case nil:
			case *a2a1.Task:
				e.task = c.task(event)
			case *a2a1.TaskStatusUpdateEvent:
				e.status = c.status(event.Status)
			case *a2a1.TaskArtifactUpdateEvent:
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

func (c *clientNew) task(t *a2a1.Task) *a2aTask {
	task := &a2aTask{id: string(t.ID), context: t.ContextID, artifacts: map[string]*a2aArtifact{}, a2aStatus: *c.status(t.Status)}
	for _, a := range t.Artifacts {
		task.artifacts[string(a.ID)] = c.artifact(a)
	}
	for _, m := range t.History {
		text, _ := c.parts(m.Parts)
		task.history = append(task.history, strings.ToLower(strings.TrimPrefix(string(m.Role), "ROLE_"))+" "+text)
	}
	return task
}

func (c *clientNew) status(s a2a1.TaskStatus) *a2aStatus {
	status := &a2aStatus{state: strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(string(s.State), "TASK_STATE_"), "_", "-"))}
	if s.Message != nil {
		status.note, _ = c.parts(s.Message.Parts)
	}
	return status
}

func (c *clientNew) artifact(a *a2a1.Artifact) *a2aArtifact {
	text, kinds := c.parts(a.Parts)
	return &a2aArtifact{id: string(a.ID), text: text, kinds: kinds}
}

func (*clientNew) parts(parts a2a1.ContentParts) (text string, kinds []string) {
	for _, p := range parts {
		switch content := p.Content.(type) {
		case a2a1.Text:
			text += string(content)
			kinds = append(kinds, "text")
		case a2a1.Raw, a2a1.URL:
			kinds = append(kinds, "file")
		case a2a1.Data:
			kinds = append(kinds, fmt.Sprint("data ", content.Value))
		}
	}
	return text, kinds
}
