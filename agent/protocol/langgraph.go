package protocol

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// defaultAssistant is the name of the graph in LangGraph's templates.
const defaultAssistant = "agent"

// langgraph is a graph on a LangGraph server. The server stores the history in a thread, so a run gets only the
// new message.
//
// A run continues on the server when its stream breaks or the gateway stops. The stream is resumed with the id
// of the last event, which servers send only if they store the events of a run.
type langgraph struct {
	server
	assistant string
	runs      sync.Map    // turn id to run id, for Probe and Stop
	stays     atomic.Bool // the server sends event ids, so its runs can be resumed
}

var (
	_ agent.Agent   = (*langgraph)(nil)
	_ agent.Drainer = (*langgraph)(nil)
	_ agent.Checker = (*langgraph)(nil)
	_ agent.Stopper = (*langgraph)(nil)
	_ agent.Prober  = (*langgraph)(nil)
)

// thread returns the thread id of a conversation: its own id if that is a UUID, as LangGraph requires, and
// otherwise a hash of it. The id is computed and not stored, so a conversation finds its thread even after its
// turn failed before anything was stored.
func thread(conversation string) string {
	if id, err := uuid.Parse(conversation); err == nil {
		return id.String()
	}
	return uuid.NewHash(sha256.New(), uuid.NameSpaceURL, []byte("leat:"+conversation), 8).String()
}

// langgraphInput is the body that starts a run. Input has the new message, or Command the answer to an
// interrupt. Resumable asks the server to store the events, Leave "continue" keeps the run alive without its
// stream, and Missing "create" creates the thread if necessary.
type langgraphInput struct {
	Assistant string            `json:"assistant_id"`
	Input     any               `json:"input,omitempty"`
	Command   *langgraphCommand `json:"command,omitempty"`
	Modes     []string          `json:"stream_mode"`
	Resumable bool              `json:"stream_resumable"`
	Leave     string            `json:"on_disconnect"`
	Missing   string            `json:"if_not_exists"`
}

// langgraphCommand resumes a graph that has stopped at an interrupt.
type langgraphCommand struct {
	Resume any `json:"resume"`
}

// langgraphState is the stored state of a turn: the run and the point after its last event. Without a run id
// the turn can't be resumed. The state that is stored before answers are sent has neither, on purpose.
type langgraphState struct {
	Run string `json:"run,omitempty"`
	call.Point
}

// Run starts a run on the conversation's thread. The user's answers start another run, which resumes the graph.
func (a *langgraph) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	in, err := emitter.Inline(ctx, in)
	if err != nil {
		return err
	}
	return a.run(ctx, in, langgraphState{}, emitter)
}

// Resume implements [agent.Resumer]. It resumes the stream of the run after the last event. If the run or the
// event is unknown, the turn ends as interrupted: the message isn't sent again, since the server may be working
// on it and the thread would then contain it twice.
func (a *langgraph) Resume(ctx context.Context, in agent.Input, state json.RawMessage, emitter *agent.Emitter) error {
	var from langgraphState
	if len(state) > 0 {
		if err := json.Unmarshal(state, &from); err != nil {
			return fmt.Errorf("stored state: %w", err)
		}
	}
	if from.Run == "" || from.Last == "" {
		return emitter.End(event.Interrupted, "the gateway was restarted before the server sent the id of the run", nil)
	}
	return a.run(ctx, in, from, emitter)
}

// NeedsDrain implements [agent.Drainer]. Older servers don't store the events of runs, so their streams can't
// be resumed. It returns true until a frame with an id has shown that the server does.
func (a *langgraph) NeedsDrain() bool { return !a.stays.Load() }

// run answers a turn from its beginning or, if from has a run, from the point after its last event.
//
// The run's id is learned from the header Content-Location of the response, or from the first event on servers
// without that header. It is kept in a.runs while the turn runs, for Probe and Stop, and stored with each
// frame, for Resume. isNew means that the output from the current connection on is known to be complete: it
// starts false only for a resumed run, and any frame sets it.
func (a *langgraph) run(ctx context.Context, in agent.Input, from langgraphState, emitter *agent.Emitter) error {
	id, run, isNew := thread(in.Conversation), "", from.Run == ""
	setRun := func(r string) {
		if r != "" && r != run {
			run = r
			a.runs.Store(in.Turn, run)
		}
	}
	setRun(from.Run)
	t := a.talk(emitter)
	if !isNew {
		t.Start = &from.Point
	}
	t.State = func(p *call.Point) (json.RawMessage, error) {
		if p == nil {
			return json.Marshal(langgraphState{})
		}
		return json.Marshal(langgraphState{run, *p})
	}
	// A canceled run occupies the thread until it has ended. Until then most servers reject another run.
	t.Busy = func(f *call.Failure) bool {
		return f.Status == http.StatusConflict || f.Status == http.StatusUnprocessableEntity && strings.Contains(f.Detail, "already running")
	}
	t.Response = func(res *http.Response) {
		if _, r, ok := strings.Cut(res.Header.Get("Content-Location"), "/runs/"); ok {
			r, _, _ = strings.Cut(r, "/")
			setRun(r)
		}
	}
	t.Frame = func(f dialect.Frame) {
		isNew = true
		if f.ID != "" {
			a.stays.Store(true)
		}
		var m struct {
			Run string `json:"run_id"`
		}
		if f.Event == "metadata" && json.Unmarshal(f.Data, &m) == nil {
			setRun(m.Run)
		}
	}
	t.Request = func(ctx context.Context, answers []event.Answer) (*http.Request, error) {
		body := langgraphInput{
			Assistant: a.assistant, Modes: []string{"messages-tuple", "updates", "custom"},
			Resumable: true, Leave: "continue", Missing: "create",
			Input: map[string]any{"messages": []any{map[string]any{"role": "user", "id": in.Message.ID, "content": langgraphContent(in.Message)}}},
		}
		if len(answers) > 0 {
			body.Input, body.Command = nil, &langgraphCommand{Resume: resume(answers)}
		}
		req, err := call.Stream(ctx, call.Path(a.url, "threads", id, "runs", "stream"), a.token, in.Key, body)
		return a.keyed(req), err
	}
	t.Rejoin = func(ctx context.Context, lastID string) (*http.Request, error) {
		if run == "" || lastID == "" {
			return nil, nil
		}
		req, err := call.JSON(ctx, http.MethodGet, call.Path(a.url, "threads", id, "runs", run, "stream"), a.token, nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Last-Event-ID", lastID)
		return a.keyed(req), nil
	}
	t.Closed = func(ctx context.Context) error {
		err := a.outcome(ctx, id, run)
		if err == nil && !isNew {
			// Servers store the events of a run only for some time. So an empty stream doesn't prove that the answer is complete.
			return &call.Failure{Code: call.CodeCutShort, Message: "the run has ended, but the server no longer has its output from while the gateway was away", Retryable: true}
		}
		return err
	}
	err := t.Run(ctx)
	if err == nil || ctx.Err() == nil { // otherwise Stop needs the id
		a.runs.Delete(in.Turn)
	}
	return err
}

// keyed adds the token in the header that LangGraph Platform reads. Other servers read the bearer token.
func (a *langgraph) keyed(req *http.Request) *http.Request {
	if req != nil && a.token != "" {
		req.Header.Set("X-Api-Key", string(a.token))
	}
	return req
}

// do sends a request without a body and decodes the response into v, unless v is nil.
func (a *langgraph) do(ctx context.Context, method string, to *url.URL, v any) error {
	req, err := call.JSON(ctx, method, to, a.token, nil)
	if err != nil {
		return err
	}
	return call.Do(a.client, a.keyed(req), v)
}

// langgraphContent returns the content of the user's message in the form of LangChain's messages: a text, or a
// list of a text and files. An image has the type image_url, and any other file the type file.
func langgraphContent(m agent.Message) any {
	text, attachments := files(m)
	if len(attachments) == 0 {
		return text
	}
	parts := []map[string]any{{"type": "text", "text": text}}
	for _, f := range attachments {
		if f.family() == "image" {
			parts = append(parts, map[string]any{"type": "image_url", "image_url": map[string]string{"url": f.URL}})
		} else {
			parts = append(parts, map[string]any{"type": "file", "mime_type": f.MIME, "url": f.URL})
		}
	}
	return parts
}

// resume returns the value with which a graph resumes: the answer to its interrupt, or a map by interrupt id if
// there are several, as the server requires. A decision without a text is sent as its word, such as "approve";
// a text that is a JSON object or list as that JSON.
func resume(answers []event.Answer) any {
	resumeValue := func(a event.Answer) any {
		if a.Text == "" && a.Decision != "" {
			return a.Decision
		}
		return value(a.Text)
	}
	if len(answers) == 1 {
		return resumeValue(answers[0])
	}
	values := map[string]any{}
	for _, a := range answers {
		values[a.ID] = resumeValue(a)
	}
	return values
}

// outcome asks for the status of a run whose stream was closed without an end, since newer servers don't send
// one. It returns nil if the run succeeded, and an error that wraps [agent.ErrBroken] if the stream should be
// resumed: the run continues, or the server can't be asked now. If the status can't be known, the turn fails as
// cut short rather than completing with a part of its answer.
func (a *langgraph) outcome(ctx context.Context, thread, run string) error {
	failure := &call.Failure{Code: call.CodeCutShort, Message: "the server closed the stream of a run that hasn't ended", Retryable: true}
	if run == "" {
		return failure
	}
	status, err := a.status(ctx, thread, run)
	if err != nil {
		if f, ok := errors.AsType[*call.Failure](err); ok {
			if f.Retry {
				return fmt.Errorf("%w: %w", agent.ErrBroken, err) // the server may be restarting
			}
			failure.Message += ": " + f.Message
			failure.Detail = f.Detail
		}
		return failure
	}
	switch status {
	case "success":
		return nil
	case "pending", "running":
		return fmt.Errorf("%w: the run continues", agent.ErrBroken)
	}
	return &call.Failure{Code: "run_" + status, Message: "the run ended as " + status, Retryable: status == "timeout"}
}

// status asks for the state of a run.
func (a *langgraph) status(ctx context.Context, thread, run string) (string, error) {
	var r struct {
		Status string `json:"status"`
	}
	err := a.do(ctx, http.MethodGet, call.Path(a.url, "threads", thread, "runs", run), &r)
	return r.Status, err
}

// Probe implements [agent.Prober]: it asks for the status of the run.
func (a *langgraph) Probe(ctx context.Context, in agent.Input) error {
	run, ok := a.runs.Load(in.Turn)
	if !ok {
		return errNoRun
	}
	status, err := a.status(ctx, thread(in.Conversation), run.(string))
	if err != nil || status == "pending" || status == "running" {
		return err
	}
	return fmt.Errorf("the status of the run is %q", status)
}

// Stop implements [agent.Stopper]. A run continues after its stream is closed, so it must be canceled. The
// request returns after the run has ended; otherwise the thread could still be occupied when the next turn
// starts.
func (a *langgraph) Stop(ctx context.Context, in agent.Input) error {
	run, ok := a.runs.LoadAndDelete(in.Turn)
	if !ok {
		return nil
	}
	to := call.Path(a.url, "threads", thread(in.Conversation), "runs", run.(string), "cancel")
	to.RawQuery = "wait=true" // otherwise the thread may still be occupied when the next turn starts
	return a.do(ctx, http.MethodPost, to, nil)
}

// Check implements [agent.Checker]. It asks for the assistant, which needs the token. The endpoint accepts only
// ids of assistants, so a response that rejects the name of a graph proves that the server works and the token
// is valid.
func (a *langgraph) Check(ctx context.Context) error {
	err := a.do(ctx, http.MethodGet, call.Path(a.url, "assistants", a.assistant), nil)
	if failed, ok := errors.AsType[*call.Failure](err); ok && (failed.Status == http.StatusNotFound || failed.Status == http.StatusUnprocessableEntity) {
		return nil // the assistant is a graph's name, which this request doesn't accept
	}
	return err
}
