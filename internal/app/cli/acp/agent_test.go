package acp

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/agent"
	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/attachments"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/eliza"
	"github.com/leat-dev/leat/internal/server/files"
	"github.com/leat-dev/leat/internal/server/native"
	store "github.com/leat-dev/leat/internal/store/files"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// agentFunc is an agent of the gateway.
type agentFunc func(context.Context, agent.Input, *agent.Emitter) error

func (f agentFunc) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	return f(ctx, in, out)
}

// mirror sends the files of a message back, and its text.
func mirror(_ context.Context, in agent.Input, out *agent.Emitter) error {
	for _, p := range in.Message.Parts {
		if p.Media != nil {
			if err := out.Media(*p.Media); err != nil {
				return err
			}
		}
	}
	return out.Text("re: " + in.Message.Text)
}

// asking asks for a choice among options, and says what was chosen.
func asking(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
	a, err := out.Ask(ctx, event.Request{ID: "r", Kind: event.RequestInput, Prompt: "Which?", Options: []string{"Always red", "No, never", "blue"}})
	if err != nil {
		return err
	}
	return out.Text("chosen: " + string(a.Decision))
}

// hung never answers.
func hung(ctx context.Context, _ agent.Input, _ *agent.Emitter) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// newGateway returns a client of a gateway with a store for files.
func newGateway(t *testing.T) *leat.Client {
	t.Helper()
	dir, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	j := memory.New()
	attached := attachments.NewStore(attachments.Config{Journal: j, Files: dir, MaxFile: 64 << 20})
	gw, err := gateway.New(gateway.Config{
		Journal: j, Attachments: attached, DefaultAgent: "mirror", Settings: gateway.Settings{Drain: time.Millisecond},
		Agents: gateway.Agents{"mirror": {Agent: agentFunc(mirror)}, "asking": {Agent: agentFunc(asking)}, "hung": {Agent: agentFunc(hung)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Options{})
	files.Register(srv, attachments.NewService(attached, gw))
	native.Register(srv, gw)
	eliza.Register(srv, gw, eliza.Options{})
	ts := httptest.NewServer(srv)
	client := &leat.Client{URL: ts.URL, HTTP: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(func() {
		client.HTTP.CloseIdleConnections()
		srv.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		ts.Close()
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// editor is the other side of a connection.
type editor struct {
	t     *testing.T
	in    *io.PipeWriter
	out   *bufio.Reader
	calls int
	// early are responses that arrived while another one was awaited.
	early map[int][]byte
	// updates are the session/update notifications so far, and answer responds to requests of the agent.
	updates []map[string]any
	answer  func(method string, params map[string]any) any
	done    chan error
}

func edit(t *testing.T, c *leat.Client) *editor {
	t.Helper()
	input, in := io.Pipe()
	out, output := io.Pipe()
	e := &editor{t: t, in: in, out: bufio.NewReader(out), done: make(chan error, 1), early: map[int][]byte{}}
	o := Options{
		Client: c, Version: "1", Input: input, Output: output, Log: slog.New(slog.DiscardHandler), Explain: func(err error) error { return err },
		Title: func(s string) string { return s }, Question: func(r *event.Request) string { return r.Prompt },
	}
	go func() { e.done <- Run(context.WithoutCancel(t.Context()), o) }()
	t.Cleanup(func() {
		_ = in.Close() // ends the agent, if the test has not
		_ = out.Close()
		if err := <-e.done; err != nil {
			t.Error(err)
		}
	})
	e.call("initialize", map[string]any{"protocolVersion": 1, "clientInfo": map[string]string{"name": "test"}}, nil)
	return e
}

func (e *editor) write(m map[string]any) {
	e.t.Helper()
	m["jsonrpc"] = "2.0"
	b, err := json.Marshal(m)
	if err != nil {
		e.t.Fatal(err)
	}
	if _, err := e.in.Write(append(b, '\n')); err != nil {
		e.t.Fatal(err)
	}
}

// call sends a request and returns the message of its error, or "". It handles what arrives before the response.
func (e *editor) call(method string, params, result any) string {
	e.t.Helper()
	e.calls++
	e.write(map[string]any{"id": e.calls, "method": method, "params": params})
	return e.await(e.calls, result)
}

func (e *editor) await(id int, result any) string {
	e.t.Helper()
	for {
		line, isEarly := e.early[id]
		if !isEarly {
			var err error
			if line, err = e.out.ReadBytes('\n'); err != nil {
				e.t.Fatal(err)
			}
		}
		delete(e.early, id)
		var m struct {
			ID     int
			Method string
			Params map[string]any
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(line, &m); err != nil {
			e.t.Fatalf("%v: %s", err, line)
		}
		switch {
		case m.Method == "session/update":
			e.updates = append(e.updates, m.Params["update"].(map[string]any))
		case m.Method != "":
			e.write(map[string]any{"id": m.ID, "result": e.answer(m.Method, m.Params)})
		case m.ID != id:
			e.early[m.ID] = line
		case m.Error != nil:
			return m.Error.Message
		default:
			if result != nil {
				if err := json.Unmarshal(m.Result, result); err != nil {
					e.t.Fatal(err)
				}
			}
			return ""
		}
	}
}

// open opens a new session and returns its id.
func (e *editor) open() string {
	e.t.Helper()
	var session struct{ SessionID string }
	if failure := e.call("session/new", map[string]any{"cwd": "/work", "mcpServers": []any{}}, &session); failure != "" {
		e.t.Fatal(failure)
	}
	return session.SessionID
}

// prompt sends a prompt and returns why its turn has ended.
func (e *editor) prompt(session string, content ...map[string]any) string {
	e.t.Helper()
	var result struct{ StopReason string }
	if failure := e.call("session/prompt", map[string]any{"sessionId": session, "prompt": content}, &result); failure != "" {
		return failure
	}
	return result.StopReason
}

func text(s string) map[string]any { return map[string]any{"type": "text", "text": s} }

// shown returns the texts of updates of a kind.
func (e *editor) shown(kind string) (texts []string) {
	for _, u := range e.updates {
		if content, ok := u["content"].(map[string]any); ok && u["sessionUpdate"] == kind && content["type"] == "text" {
			texts = append(texts, content["text"].(string))
		}
	}
	return texts
}

// A picture that is too large for a message is stored first, and comes back as a picture. One that is too large for the editor comes as a link.
func TestPictures(t *testing.T) {
	e := edit(t, newGateway(t))
	session := e.open()
	png := []byte("\x89PNG\r\n\x1a\n")
	for _, size := range []int{100, 2 << 20, maxPicture + 1} {
		e.updates = nil
		data := base64.StdEncoding.EncodeToString(append(png[:8:8], make([]byte, size-8)...))
		picture := map[string]any{"type": "image", "mimeType": "image/png", "data": data}
		if reason := e.prompt(session, text("look"), picture); reason != "end_turn" {
			t.Fatal(reason)
		}
		if answer := strings.Join(e.shown(agentChunk), ""); strings.TrimSpace(answer) != "re: look" {
			t.Errorf("answer %q", answer)
		}
		var content map[string]any
		for _, u := range e.updates {
			if c, ok := u["content"].(map[string]any); ok && c["type"] != "text" {
				content = c
			}
		}
		if size <= maxPicture && content["data"] != data || size > maxPicture && (content["type"] != "resource_link" || !strings.HasPrefix(content["uri"].(string), "http://127.0.0.1:")) {
			t.Errorf("%d bytes: %.200v", size, content)
		}
	}
	if failure := e.prompt(session, map[string]any{"type": "image", "mimeType": "image/png", "data": "no base64!"}); !strings.HasPrefix(failure, "block 1: invalid base64") {
		t.Errorf("invalid base64: %s", failure)
	}
	if failure := e.prompt(session, map[string]any{"type": "hologram"}); failure != `block 1: unknown type "hologram"` {
		t.Errorf("unknown block: %s", failure)
	}
}

// A conversation with more messages than a snapshot has is replayed completely, and an archived one isn't listed.
func TestHistory(t *testing.T) {
	c := newGateway(t)
	conversation, err := c.Create(t.Context(), leat.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 130 {
		want = append(want, fmt.Sprintf("message %d", i))
		message := leat.Message{Role: event.User, Text: want[i]}
		if _, err := c.Do(t.Context(), conversation.ID, leat.Command{Type: "inject", Message: &message}); err != nil {
			t.Fatal(err)
		}
	}
	e := edit(t, c)
	if failure := e.call("session/load", map[string]any{"sessionId": conversation.ID, "cwd": "/work", "mcpServers": []any{}}, nil); failure != "" {
		t.Fatal(failure)
	}
	if got := e.shown(userChunk); strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("%d messages: %v", len(got), got)
	}
	var list struct{ Sessions []sessionInfo }
	listed := func(dir string) int {
		t.Helper()
		if failure := e.call("session/list", map[string]any{"cwd": dir}, &list); failure != "" {
			t.Fatal(failure)
		}
		return len(list.Sessions)
	}
	if n := listed("/elsewhere"); n != 1 || list.Sessions[0].Dir != "/elsewhere" {
		t.Errorf("a conversation without a folder: %v", list.Sessions)
	}
	if _, err := c.Do(t.Context(), conversation.ID, leat.Command{Type: "update", Metadata: map[string]json.RawMessage{leat.MetaArchived: json.RawMessage("true")}}); err != nil {
		t.Fatal(err)
	}
	if n := listed("/elsewhere"); n != 0 {
		t.Errorf("an archived conversation: %v", list.Sessions)
	}
}

// A question with choices is a request for permission whose options are the choices.
func TestChoices(t *testing.T) {
	e := edit(t, newGateway(t))
	session := e.open()
	var kinds []string
	e.answer = func(_ string, params map[string]any) any {
		for _, o := range params["options"].([]any) {
			kinds = append(kinds, o.(map[string]any)["kind"].(string))
		}
		return map[string]any{"outcome": map[string]string{"outcome": "selected", "optionId": "blue"}}
	}
	e.call("session/set_mode", map[string]any{"sessionId": session, "modeId": "asking"}, nil)
	if reason := e.prompt(session, text("go")); reason != "end_turn" {
		t.Fatal(reason)
	}
	if got := strings.Join(kinds, " "); got != "allow_always reject_always allow_once" {
		t.Errorf("kinds %s", got)
	}
	if got := strings.Join(e.shown(agentChunk), ""); got != "chosen: blue" {
		t.Errorf("answer %q", got)
	}
}

// The turn of a prompt continues after the editor has closed the input. A cancel without a prompt stops it.
func TestEndOfInput(t *testing.T) {
	c := newGateway(t)
	first := edit(t, c)
	session := first.open()
	first.call("session/set_mode", map[string]any{"sessionId": session, "modeId": "hung"}, nil)
	first.write(map[string]any{"id": 99, "method": "session/prompt", "params": map[string]any{"sessionId": session, "prompt": []any{text("wait")}}})
	turn := runningTurn(t, c, session)
	if err := first.in.Close(); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, first.out) }() // until the program has ended
	second := edit(t, c)
	if failure := second.call("session/load", map[string]any{"sessionId": session, "cwd": "/work", "mcpServers": []any{}}, nil); failure != "" {
		t.Fatal(failure)
	}
	if _, got, err := c.Turn(t.Context(), turn); err != nil || !got.Unfinished() {
		t.Fatalf("%v, the turn is %v", err, got)
	}
	second.write(map[string]any{"method": "session/cancel", "params": map[string]any{"sessionId": session}})
	if err := c.Follow(t.Context(), session, func(u leat.Update) error {
		if got := u.Transcript.Turn(turn); got != nil && got.Outcome == event.Cancelled {
			return leat.ErrStop
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// runningTurn waits until a turn runs in a conversation, and returns it.
func runningTurn(t *testing.T, c *leat.Client, conversation string) (turn string) {
	t.Helper()
	if err := c.Follow(t.Context(), conversation, func(u leat.Update) error {
		for _, running := range u.Transcript.Turns {
			turn = running.ID
			return leat.ErrStop
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return turn
}
