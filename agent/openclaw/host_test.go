package openclaw

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/openclaw"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// turnHost stands in for Leat's gateway: it stores the log, state, session and files of one turn across several runs of the
// agent.
type turnHost struct {
	t   testing.TB
	id  string
	in  agent.Input
	out *agent.Emitter

	mu          sync.Mutex
	mapper      *dialect.Mapper
	newIDs      int
	log         []event.Event
	transcript  transcript.Transcript
	state       json.RawMessage
	mapperState json.RawMessage
	session     json.RawMessage
	sent        []string
	files       map[string]event.Media
	bytes       map[string][]byte
	workspace   map[string]string // files in the workspace, by path; nil without a workspace
	answers     map[string]chan event.Answer
	trouble     *agent.Error
	detached    bool
}

func newTurnHost(t testing.TB, text string) *turnHost {
	h := &turnHost{t: t, id: "turn-1", files: map[string]event.Media{}, bytes: map[string][]byte{}, answers: map[string]chan event.Answer{}}
	h.in = agent.Input{Conversation: "C1", Turn: h.id, Key: h.id, Message: agent.Message{ID: "m1", Role: event.User, Text: text}}
	h.mapper = dialect.NewMapper(h.id, h.newID)
	h.add(event.Event{Type: event.TurnStart, Turn: h.id, Body: &event.Body{Agent: "claw"}})
	return h
}

func (h *turnHost) newID() string { h.newIDs++; return fmt.Sprintf("m%d", h.newIDs) }

func (h *turnHost) add(e event.Event) {
	e.Seq = int64(len(h.log) + 1)
	h.log = append(h.log, e)
	if err := h.transcript.Apply(&e); err != nil {
		h.t.Errorf("event %d does not apply: %v", e.Seq, err)
	}
}

// Emit implements [agent.Sink].
func (h *turnHost) Emit(_ context.Context, ops []event.Event, state json.RawMessage) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.detached || h.turnLocked().State == transcript.TurnEnded {
		return agent.ErrTurnOver
	}
	if len(ops) > 0 {
		h.trouble = nil // progress clears it
	}
	events, err := h.mapper.Map(ops, int64(len(h.log)+1))
	for _, e := range events {
		h.add(e)
		if e.Type == event.TurnResume {
			if ch := h.answers[e.Body.Answer.ID]; ch != nil {
				ch <- *e.Body.Answer
			}
		}
	}
	if err != nil {
		h.t.Errorf("map: %v", err)
		return err
	}
	if state != nil {
		h.state = append(json.RawMessage{}, state...)
		if h.mapperState, err = h.mapper.State(); err != nil {
			h.t.Error(err)
		}
	}
	return nil
}

// Trouble implements [agent.TroubleSink].
func (h *turnHost) Trouble(e *agent.Error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trouble = e
}

func (h *turnHost) Flush(context.Context) error { return nil }
func (h *turnHost) ReportProgress()             {}

func (h *turnHost) Wait(ctx context.Context, r event.Request) (event.Answer, error) {
	ch := make(chan event.Answer, 1)
	h.mu.Lock()
	if h.answers[r.ID] == nil {
		h.answers[r.ID] = ch
		h.add(event.Event{Type: event.TurnWait, Turn: h.id, Body: &event.Body{Request: &r}})
	}
	h.mu.Unlock()
	select {
	case a := <-ch:
		return a, nil
	case <-ctx.Done():
		return event.Answer{}, context.Cause(ctx)
	}
}

func (h *turnHost) KeepSession(_ context.Context, s json.RawMessage) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session = append(json.RawMessage{}, s...)
	return nil
}

func (h *turnHost) Raw(sent bool, data []byte) {
	if strings.Contains(string(data), fakeToken) || strings.Contains(string(data), "dev-t0ken") {
		h.t.Errorf("a recording holds a secret: %s", data)
	}
	if sent {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.sent = append(h.sent, string(data))
	}
}

func (h *turnHost) PutFile(_ context.Context, f agent.File, r io.Reader) (event.Media, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return event.Media{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	m := event.Media{URL: "/api/files/" + f.Name, Name: f.Name, MIME: f.MIME, Size: int64(len(b))}
	if f.Origin == "" {
		h.t.Error("a file without an origin")
	}
	h.files[f.Origin], h.bytes[m.URL] = m, b
	return m, nil
}

func (h *turnHost) FindFile(_ context.Context, origin string) (event.Media, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m, ok := h.files[origin]
	return m, ok, nil
}

func (h *turnHost) OpenFile(_ context.Context, m event.Media) (io.ReadCloser, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, ok := h.bytes[m.URL]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// PutPath implements [agent.WorkspaceSink].
func (h *turnHost) PutPath(ctx context.Context, path string) (event.Media, error) {
	if h.workspace == nil {
		return event.Media{}, agent.ErrNoFiles
	}
	text, ok := h.workspace[path]
	if !ok {
		return event.Media{}, errors.New("it is not below the workspace")
	}
	return h.PutFile(ctx, agent.File{Name: path[strings.LastIndex(path, "/")+1:], Origin: "workspace " + path}, strings.NewReader(text))
}

func (h *turnHost) FilePath(_ context.Context, m event.Media) string {
	if h.workspace == nil {
		return ""
	}
	return "/space/" + m.Name
}

func (h *turnHost) turnLocked() *transcript.Turn { return h.transcript.Turn(h.id) }

func (h *turnHost) turn() transcript.Turn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return *h.turnLocked()
}

func (h *turnHost) visible() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.transcript.Visible(h.id)
}

func (h *turnHost) parts(kind event.PartKind) (found []*transcript.Part) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.transcript.Messages {
		for _, p := range m.Parts {
			if p.Kind == kind {
				found = append(found, p)
			}
		}
	}
	return found
}

// runUntil runs or resumes the turn until it returns, the context ends, or die is closed, which simulates a crash of Leat.
func (h *turnHost) runUntil(ctx context.Context, a *gatewayAgent, die <-chan struct{}) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	h.mu.Lock()
	h.in.Session = h.session
	h.detached = false
	state := h.state
	if h.mapperState != nil {
		h.mapper = dialect.NewMapper(h.id, h.newID)
		if err := h.mapper.Restore(h.mapperState, &h.transcript); err != nil {
			h.t.Error(err)
		}
	}
	h.mu.Unlock()
	h.out = agent.NewEmitter(ctx, h)
	result := make(chan error, 1)
	go func() {
		if state != nil {
			result <- a.Resume(ctx, h.in, state, h.out)
			return
		}
		result <- a.Run(ctx, h.in, h.out)
	}()
	select {
	case err := <-result:
		h.end(err)
		return err
	case <-die:
		h.mu.Lock()
		h.detached = true
		h.mu.Unlock()
		cancel(errors.New("killed"))
		return <-result
	}
}

// end does what the gateway does after Run has returned.
func (h *turnHost) end(err error) {
	flushed := h.out.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.turnLocked().State == transcript.TurnEnded {
		return
	}
	events, merr := h.mapper.Map(flushed, 1)
	if merr != nil {
		h.t.Errorf("what was held back does not apply: %v", merr)
	}
	for _, e := range events {
		h.add(e)
	}
	b := &event.Body{Outcome: event.Completed}
	var shown *agent.Error
	if errors.As(err, &shown) {
		b = &event.Body{Outcome: event.Failed, Error: shown.ViewerError()}
	} else if err != nil {
		b = &event.Body{Outcome: event.Failed, Error: &event.Error{Code: "agent_error", Message: err.Error()}}
	}
	h.add(event.Event{Type: event.TurnEnd, Turn: h.id, Body: b})
}

// newAgent returns an agent for the fake gateway.
func newAgent(t testing.TB, f *fakeGateway, change func(*config)) *gatewayAgent {
	t.Helper()
	c := config{URL: "ws://claw.test:18789", Token: fakeToken, Dialect: openclaw.Dialect(), dial: f.dial}
	if change != nil {
		change(&c)
	}
	a, err := newGatewayAgent(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// bubble runs a test in a synctest bubble, with a fake gateway that plays a script and an agent connected to it.
func bubble(t *testing.T, protocol int, play func(*fakeRun), test func(t *testing.T, f *fakeGateway, a *gatewayAgent)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, protocol, play)
		a := newAgent(t, f, nil)
		defer f.stop()
		defer a.Close()
		test(t, f, a)
	})
}

// checkTurn checks the outcome of the turn and the text that viewers see.
func (h *turnHost) checkTurn(t *testing.T, o event.Outcome, visible string) {
	t.Helper()
	turn := h.turn()
	if turn.Outcome != o {
		t.Errorf("the turn is %q (%+v), want %s", turn.Outcome, turn.Error, o)
	}
	if got := h.visible(); got != visible {
		t.Errorf("readers see\n%q, want\n%q", got, visible)
	}
}

// checkFailure checks the code and the message of the turn's error.
func (h *turnHost) checkFailure(t *testing.T, code string, words ...string) {
	t.Helper()
	e := h.turn().Error
	if e == nil || e.Code != code {
		t.Fatalf("the turn ends with %+v, want %s", e, code)
	}
	for _, w := range words {
		if !strings.Contains(e.Message, w) {
			t.Errorf("%q does not say %q", e.Message, w)
		}
	}
}

// checkOrder checks the texts and tool outputs that viewers see, in order.
func (h *turnHost) checkOrder(t *testing.T, want ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	var got []string
	for _, m := range h.transcript.Messages {
		for _, p := range m.Parts {
			text := p.Text(event.Text)
			if p.Kind == event.KindTool {
				text = p.Text(event.Output)
			}
			if text != "" {
				got = append(got, string(p.Kind)+" "+text)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("readers see\n%q, want\n%q", got, want)
	}
}
