package protocol

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// a2a is an agent of the Agent2Agent protocol (a2a-protocol.org) over JSON-RPC. Versions 1.0 and 0.3 differ in
// the names of methods, roles and fields, but not in the order of requests, so one type serves both.
//
// The server answers a message with a stream about one task. Its context id groups the tasks of a conversation
// and is stored as the agent's session; its task id is needed to answer the task's requests, to resume its
// stream, to probe it and to cancel it.
type a2a struct {
	server
	old   bool     // version 0.3
	tasks sync.Map // turn id to id of the running task, for Probe and Stop
}

var (
	_ agent.Agent   = (*a2a)(nil)
	_ agent.Checker = (*a2a)(nil)
	_ agent.Stopper = (*a2a)(nil)
	_ agent.Prober  = (*a2a)(nil)
)

// newA2A makes an agent of kind a2a. The version is an option, because the agent doesn't fetch the server's
// agent card, which announces it.
func newA2A(spec agent.Spec, s server) (agent.Agent, error) {
	switch v := spec.Options["version"]; v {
	case "", "1.0", "0.3":
		return &a2a{server: s, old: v == "0.3"}, nil
	default:
		return nil, fmt.Errorf("invalid version %q; use 1.0 or 0.3", v)
	}
}

// a2aSession is the agent's session of a conversation. The server chooses the context id in its first response,
// and may change it later; the last one is stored.
type a2aSession struct {
	Context string `json:"context"`
}

// a2aRequest is a JSON-RPC request. ID is the turn's idempotency key. The frames of the response repeat it, but
// the agent ignores it, since each stream belongs to one request.
type a2aRequest struct {
	Version string `json:"jsonrpc"`
	ID      string `json:"id"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

// a2aMessage is a message of the user. In version 1.0 Role is ROLE_USER and Kind is missing; in 0.3 they are
// "user" and "message". Task is set only in an answer to a task that has asked for input: without it, the
// server would start another task.
type a2aMessage struct {
	Kind    string    `json:"kind,omitempty"` // 0.3
	ID      string    `json:"messageId"`
	Role    string    `json:"role"`
	Parts   []a2aPart `json:"parts"`
	Context string    `json:"contextId,omitempty"`
	Task    string    `json:"taskId,omitempty"`
}

// a2aPart is a part of a message, of which exactly one content is set. Version 1.0 has Text, URL or Raw
// (base64) and distinguishes them by the key. Version 0.3 names the type in Kind and has a file in File.
type a2aPart struct {
	Kind string   `json:"kind,omitempty"` // 0.3
	Text string   `json:"text,omitempty"`
	File *a2aFile `json:"file,omitempty"` // 0.3

	URL  string `json:"url,omitempty"`
	Raw  string `json:"raw,omitempty"`
	Name string `json:"filename,omitempty"`
	MIME string `json:"mediaType,omitempty"`
}

// a2aFile is a file in version 0.3: its address in URI, or its content in base64 in Bytes.
type a2aFile struct {
	Name  string `json:"name,omitempty"`
	MIME  string `json:"mimeType,omitempty"`
	URI   string `json:"uri,omitempty"`
	Bytes string `json:"bytes,omitempty"`
}

// a2aIDs are the ids in a frame. Task is set in a task object, TaskID in objects that refer to one.
type a2aIDs struct {
	Task    string `json:"id"`
	TaskID  string `json:"taskId"`
	Context string `json:"contextId"`
	Kind    string `json:"kind"`
}

// Run sends the message. After a request of the agent it sends the user's answer as a message to the same task,
// with an id that is derived from the message's, because ids of messages must be unique.
//
// The frames are inspected before they are decoded: a context id or a task id in them is recorded at once, so
// that Stop and Probe know the task while it runs. A changed context is stored when the turn ends, also after a
// failure, since the server has the message by then. The turn's own context may be canceled at that point, so
// the session is stored without its cancellation.
func (a *a2a) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	in, err := emitter.Inline(ctx, in)
	if err != nil {
		return err
	}
	var session a2aSession
	if len(in.Session) > 0 {
		if err := json.Unmarshal(in.Session, &session); err != nil {
			return fmt.Errorf("session: %w", err)
		}
	}
	current, task := session, ""
	t := a.talk(emitter)
	t.Frame = func(f dialect.Frame) {
		ids := frameIDs(f.Data)
		if ids.Context != "" {
			current.Context = ids.Context
		}
		if ids.TaskID != "" && ids.TaskID != task {
			task = ids.TaskID
			a.tasks.Store(in.Turn, task)
		}
	}
	count := 0
	t.Request = func(ctx context.Context, answers []event.Answer) (*http.Request, error) {
		m := a.message(in.Message, current.Context)
		if len(answers) > 0 {
			count++
			m = a.message(agent.Message{ID: in.Message.ID + "-" + strconv.Itoa(count), Text: answerText(answers)}, current.Context)
			m.Task = task
		}
		return a.request(ctx, in.Key, "SendStreamingMessage", "message/stream", map[string]any{"message": m})
	}
	t.Rejoin = func(ctx context.Context, _ string) (*http.Request, error) {
		if task == "" {
			return nil, nil
		}
		return a.request(ctx, in.Key, "SubscribeToTask", "tasks/resubscribe", map[string]any{"id": task})
	}
	err = t.Run(ctx)
	if err == nil || ctx.Err() == nil { // otherwise Stop needs the id
		a.tasks.Delete(in.Turn)
	}
	if current != session {
		storeSession(context.WithoutCancel(ctx), emitter, current)
	}
	return err
}

// answerText joins the answers to one text, since a message to a task is plain text.
func answerText(answers []event.Answer) string {
	text := ""
	for _, a := range answers {
		a.Text = cmp.Or(a.Text, string(a.Decision))
		text += a.Text
	}
	return text
}

// frameIDs returns the ids in a frame of either version. Version 0.3 has a kind in the object, version 1.0 a key for each type.
func frameIDs(data []byte) a2aIDs {
	var f struct {
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(data, &f) == nil && f.Result != nil {
		data = f.Result
	}
	var u struct {
		Task     *a2aIDs         `json:"task"`
		Status   *a2aIDs         `json:"statusUpdate"`
		Artifact *a2aIDs         `json:"artifactUpdate"`
		Message  json.RawMessage `json:"message"`
		a2aIDs                   // fields of version 0.3
	}
	if json.Unmarshal(data, &u) != nil {
		return a2aIDs{}
	}
	switch {
	case u.Task != nil:
		u.Task.TaskID = u.Task.Task
		return *u.Task
	case u.Status != nil:
		return *u.Status
	case u.Artifact != nil:
		return *u.Artifact
	case u.Kind == "task":
		return a2aIDs{TaskID: u.a2aIDs.Task, Context: u.Context}
	case u.Kind != "":
		return a2aIDs{TaskID: u.TaskID, Context: u.Context}
	}
	var m a2aIDs
	if json.Unmarshal(u.Message, &m) != nil {
		return a2aIDs{}
	}
	return a2aIDs{Context: m.Context}
}

// message returns a message of the user in the configured version. The first part is always the text, also if
// it is empty, because a message without parts is invalid. Files whose content is in a data URL are sent as
// bytes, others by their address.
func (a *a2a) message(m agent.Message, conversation string) a2aMessage {
	text, attachments := files(m)
	message := a2aMessage{ID: m.ID, Role: "ROLE_USER", Context: conversation, Parts: []a2aPart{{Text: text}}}
	if a.old {
		message.Kind, message.Role, message.Parts[0].Kind = "message", "user", "text"
	}
	for _, f := range attachments {
		data, inline := f.data()
		p := a2aPart{URL: f.URL, Name: f.Name, MIME: f.MIME}
		if inline {
			p.URL, p.Raw = "", data
		}
		if a.old {
			p = a2aPart{Kind: "file", File: &a2aFile{Name: p.Name, MIME: p.MIME, URI: p.URL, Bytes: p.Raw}}
		}
		message.Parts = append(message.Parts, p)
	}
	return message
}

// request returns a JSON-RPC request. method is the method's name in version 1.0, old the one in 0.3. The
// header A2A-Version tells a server that supports several versions which one the body has.
func (a *a2a) request(ctx context.Context, key, method, old string, params any) (*http.Request, error) {
	version := "1.0"
	if a.old {
		method, version = old, "0.3"
	}
	req, err := call.Stream(ctx, a.url, a.token, key, a2aRequest{Version: "2.0", ID: key, Method: method, Params: params})
	if err == nil {
		req.Header.Set("A2A-Version", version)
	}
	return req, err
}

// Probe implements [agent.Prober]: it asks for the state of the task. Only the two states of active work keep a
// silent turn alive. In any other state, such as completed or input-required, the server doesn't work on the
// task, so waiting for its stream is useless.
func (a *a2a) Probe(ctx context.Context, in agent.Input) error {
	task, ok := a.tasks.Load(in.Turn)
	if !ok {
		return errNoRun
	}
	req, err := a.request(ctx, in.Key, "GetTask", "tasks/get", map[string]any{"id": task})
	if err != nil {
		return err
	}
	var r struct {
		Result struct {
			Status struct {
				State string `json:"state"`
			} `json:"status"`
		} `json:"result"`
	}
	if err := call.Do(a.client, req, &r); err != nil {
		return err
	}
	switch state := r.Result.Status.State; state {
	case "submitted", "working", "TASK_STATE_SUBMITTED", "TASK_STATE_WORKING":
		return nil
	default:
		return fmt.Errorf("the state of the task is %q", state)
	}
}

// Stop implements [agent.Stopper]. A task continues after its stream is closed, so it must be canceled.
func (a *a2a) Stop(ctx context.Context, in agent.Input) error {
	task, ok := a.tasks.LoadAndDelete(in.Turn)
	if !ok {
		return nil
	}
	req, err := a.request(ctx, in.Key, "CancelTask", "tasks/cancel", map[string]any{"id": task})
	if err != nil {
		return err
	}
	return call.Do(a.client, req, nil)
}
