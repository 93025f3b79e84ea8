package compat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/transcript"
)

// mcpHost is a host with the SDK for Go that runs leat mcp.
type mcpHost struct {
	t       *testing.T
	session *mcp.ClientSession
	outputs map[string]*jsonschema.Resolved // schemas of the tools' outputs

	mu       sync.Mutex
	progress map[any][]*mcp.ProgressNotificationParams // by token
	reported chan struct{}                             // gets a value with each report, unless it has one already
}

// mcpAnswer is the output of ask and answer.
type mcpAnswer struct {
	Conversation, Turn, State, Text, Error string
	Question                               *struct {
		Request, Prompt string
		Options         []string
	}
}

// mcpCommand returns the command that a host starts.
func mcpCommand(t *testing.T, url, token string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(buildLeat(t), "mcp", "--url", url)
	cmd.Env = append(os.Environ(), "LEAT_API_TOKEN="+token)
	return cmd
}

// startMCP starts a host that wants a revision of the protocol. If it is empty, the host wants the newest that the SDK knows.
func startMCP(t *testing.T, url, token, revision string) *mcpHost {
	t.Helper()
	h := connectMCP(t, &mcp.CommandTransport{Command: mcpCommand(t, url, token)}, revision)
	t.Cleanup(h.close)
	return h
}

// connectMCP connects a host to a program that was started.
func connectMCP(t *testing.T, transport mcp.Transport, revision string) *mcpHost {
	t.Helper()
	h := &mcpHost{t: t, outputs: map[string]*jsonschema.Resolved{}, progress: map[any][]*mcp.ProgressNotificationParams{}, reported: make(chan struct{}, 1)}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.progress[r.Params.ProgressToken] = append(h.progress[r.Params.ProgressToken], r.Params)
			select {
			case h.reported <- struct{}{}:
			default:
			}
		},
	})
	var err error
	if h.session, err = client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision}); err != nil {
		t.Fatal(err)
	}
	return h
}

// awaitProgress waits for a report about a question.
func (h *mcpHost) awaitProgress(text string) {
	h.t.Helper()
	limit := time.After(time.Minute)
	for {
		h.mu.Lock()
		n := len(h.progress["ask "+text])
		h.mu.Unlock()
		if n > 0 {
			return
		}
		select {
		case <-h.reported:
		case <-limit:
			h.t.Fatalf("no progress of %s", text)
		}
	}
}

// close closes the program's input and waits for the program. It may be called more than once.
func (h *mcpHost) close() {
	h.t.Helper()
	if err := h.session.Close(); err != nil {
		h.t.Errorf("leat mcp ended with %v", err)
	}
}

// call calls a tool, and checks that its output has the schema of the tool.
func (h *mcpHost) call(ctx context.Context, tool string, arguments map[string]any, output any) (*mcp.CallToolResult, error) {
	h.t.Helper()
	params := &mcp.CallToolParams{Name: tool, Arguments: arguments}
	params.SetProgressToken(fmt.Sprint(tool, " ", arguments["text"]))
	result, err := h.session.CallTool(ctx, params)
	if err != nil {
		return nil, err
	}
	if result.StructuredContent == nil {
		if !result.IsError {
			h.t.Errorf("%s has no structured content", tool)
		}
		return result, nil
	}
	if err := h.outputs[tool].Validate(result.StructuredContent); err != nil {
		h.t.Errorf("%s: %v", tool, err)
	}
	b, err := json.Marshal(result.StructuredContent)
	if err == nil && output != nil {
		err = json.Unmarshal(b, output)
	}
	return result, err
}

// must is call for one that is answered. It returns the text for people.
func (h *mcpHost) must(tool string, arguments map[string]any, output any) (shown string) {
	h.t.Helper()
	result, err := h.call(h.t.Context(), tool, arguments, output)
	if err != nil {
		h.t.Fatalf("%s %v: %v", tool, arguments, err)
	}
	return shownText(h.t, result)
}

func shownText(t *testing.T, result *mcp.CallToolResult) string {
	t.Helper()
	if len(result.Content) != 1 {
		t.Fatalf("%d contents", len(result.Content))
	}
	return result.Content[0].(*mcp.TextContent).Text
}

// list requests the tools and resolves their schemas.
func (h *mcpHost) list() *mcp.ListToolsResult {
	h.t.Helper()
	tools, err := h.session.ListTools(h.t.Context(), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		for _, s := range []any{tool.InputSchema, tool.OutputSchema} {
			b, err := json.Marshal(s)
			if err != nil {
				h.t.Fatal(err)
			}
			schema := &jsonschema.Schema{}
			if err := json.Unmarshal(b, schema); err != nil {
				h.t.Fatalf("%s: %v", tool.Name, err)
			}
			resolved, err := schema.Resolve(nil)
			if err != nil {
				h.t.Fatalf("%s: %v", tool.Name, err)
			}
			h.outputs[tool.Name] = resolved // the second one
		}
	}
	return tools
}

// opened opens a gate of the agents.
func opened(t *testing.T, control, gate string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, control+"/"+gate, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
}

// lastTurn waits until the newest turn of a conversation fulfils a condition.
func lastTurn(t *testing.T, c *leat.Client, conversation string, condition func(*transcript.Turn) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := c.Follow(ctx, conversation, func(u leat.Update) error {
		if turns := u.Transcript.Turns; len(turns) > 0 && condition(turns[len(turns)-1]) {
			return leat.ErrStop
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The official SDK for Go as the host of leat mcp.
func TestMCPGo(t *testing.T) {
	url, control := serveChats(t)
	client := &leat.Client{URL: url, Token: secret}
	long := strings.Join(pieces(), "")
	start := func(t *testing.T) *mcpHost {
		h := startMCP(t, url, secret, "")
		h.list()
		return h
	}

	t.Run("revisions", func(t *testing.T) {
		for wanted, want := range map[string]string{"": "2025-11-25", "2025-11-25": "2025-11-25", "2025-06-18": "2025-06-18", "2025-03-26": "2025-03-26", "2024-11-05": "2024-11-05"} {
			h := startMCP(t, url, secret, wanted)
			r := h.session.InitializeResult()
			if r.ProtocolVersion != want || r.ServerInfo.Name != "leat" || r.Instructions == "" || r.Capabilities.Tools == nil || r.Capabilities.Resources != nil || r.Capabilities.Prompts != nil {
				t.Errorf("%q: %+v", wanted, r)
			}
			if err := h.session.Ping(t.Context(), nil); err != nil {
				t.Error(err)
			}
			h.list()
			var a mcpAnswer
			if h.must("ask", map[string]any{"text": "hello"}, &a); a.Text != "re: hello" {
				t.Errorf("%q: %+v", wanted, a)
			}
			h.close()
		}
	})

	t.Run("the list of tools", func(t *testing.T) {
		var names []string
		for _, tool := range startMCP(t, url, secret, "").list().Tools {
			names = append(names, tool.Name)
			if tool.Description == "" || tool.Title == "" || tool.Annotations != nil && tool.Annotations.ReadOnlyHint != (tool.Name == "read" || tool.Name == "conversations") {
				t.Errorf("%+v", tool)
			}
		}
		if got := strings.Join(names, " "); got != "ask answer conversations read stop" {
			t.Errorf("tools %s", got)
		}
	})

	t.Run("each tool", func(t *testing.T) {
		h := start(t)
		var first, second mcpAnswer
		if shown := h.must("ask", map[string]any{"text": "hello"}, &first); first.State != "completed" || first.Text != "re: hello" || shown != first.Text {
			t.Errorf("%+v, shown %q", first, shown)
		}
		if h.must("ask", map[string]any{"text": "again", "conversation": first.Conversation}, &second); second.Conversation != first.Conversation || second.Text != "re: again" {
			t.Errorf("%+v", second)
		}
		var list struct{ Conversations []struct{ ID, Title string } }
		if h.must("conversations", map[string]any{"limit": 200}, &list); !slices.ContainsFunc(list.Conversations, func(c struct{ ID, Title string }) bool { return c.ID == first.Conversation && c.Title == "hello" }) {
			t.Errorf("%+v", list)
		}
		var page struct {
			Messages []struct{ ID, Role, Text string }
			Earlier  bool
		}
		if h.must("read", map[string]any{"conversation": first.Conversation, "limit": 3}, &page); len(page.Messages) != 3 || page.Messages[1].Text != "again" || !page.Earlier {
			t.Errorf("%+v", page)
		}
		if h.must("read", map[string]any{"conversation": first.Conversation, "before": page.Messages[0].ID}, &page); len(page.Messages) != 1 || page.Messages[0].Text != "hello" || page.Earlier {
			t.Errorf("%+v", page)
		}
		var asked, done mcpAnswer
		h.must("ask", map[string]any{"text": "x", "agent": "approval"}, &asked)
		if q := asked.Question; asked.State != "waiting" || q == nil || q.Prompt != "Run ls?" || !slices.Equal(q.Options, []string{"approve", "deny"}) {
			t.Fatalf("%+v", asked)
		}
		if h.must("answer", map[string]any{"conversation": asked.Conversation, "decision": "approve"}, &done); done.Turn != asked.Turn || done.Text != "I need to look. There is one file." {
			t.Errorf("%+v", done)
		}
		var slow mcpAnswer
		if h.must("ask", map[string]any{"text": t.Name(), "agent": "long", "wait_seconds": 1}, &slow); slow.State != "running" {
			t.Errorf("%+v", slow)
		}
		var stopped struct{ Stopped []string }
		if h.must("stop", map[string]any{"conversation": slow.Conversation}, &stopped); !slices.Equal(stopped.Stopped, []string{slow.Turn}) {
			t.Errorf("%+v", stopped)
		}
	})

	t.Run("errors", func(t *testing.T) {
		h := start(t)
		var failed mcpAnswer
		result, err := h.call(t.Context(), "ask", map[string]any{"text": "x", "agent": "failing"}, &failed)
		if err != nil || !result.IsError || failed.State != "failed" || failed.Text != "so far" || failed.Error != "The model is busy." {
			t.Errorf("%v %+v", err, failed)
		}
		for _, tt := range []struct {
			tool      string
			arguments map[string]any
			want      string
		}{
			{"ask", map[string]any{"text": " "}, "text is empty"},
			{"ask", map[string]any{"text": 7}, "invalid params"},
			{"ask", map[string]any{"text": "x", "agent": "nobody"}, "nobody"},
			{"read", map[string]any{"conversation": "nowhere"}, "not found"},
			{"conversations", map[string]any{"limit": 1000}, "limit must be 1 to 200"},
		} {
			result, err := h.call(t.Context(), tt.tool, tt.arguments, nil)
			if err != nil || !result.IsError || !strings.Contains(shownText(t, result), tt.want) {
				t.Errorf("%s %v: %v %+v", tt.tool, tt.arguments, err, result)
			}
		}
		_, err = h.call(t.Context(), "nothing", nil, nil)
		if wire, ok := errors.AsType[*jsonrpc.Error](err); !ok || wire.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("an unknown tool: %v", err)
		}
		if _, err = h.session.ListResources(t.Context(), nil); err == nil {
			t.Error("there are resources")
		}
		wrong := startMCP(t, url, "wrong", "")
		wrong.list()
		if result, err := wrong.call(t.Context(), "conversations", nil, nil); err != nil || !result.IsError || !strings.Contains(shownText(t, result), "rejected the token") {
			t.Errorf("a wrong token: %v %+v", err, result)
		}
	})

	t.Run("progress", func(t *testing.T) {
		h := start(t)
		gate := "progress"
		var a mcpAnswer
		done := make(chan error, 1)
		go func() {
			_, err := h.call(t.Context(), "ask", map[string]any{"text": gate, "agent": "long"}, &a)
			done <- err
		}()
		h.awaitProgress(gate)
		opened(t, control, gate)
		opened(t, control, gate+"-end")
		if err := <-done; err != nil || a.Text != long {
			t.Errorf("%v, an answer of %d bytes of %d", err, len(a.Text), len(long))
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		reports := h.progress["ask "+gate]
		for i, r := range reports {
			if !strings.HasPrefix(r.Message, "word") || i > 0 && r.Progress <= reports[i-1].Progress {
				t.Errorf("report %d: %+v", i, r)
			}
		}
		if len(reports) == 0 || len(h.progress) != 1 {
			t.Errorf("%d reports for %d tokens", len(reports), len(h.progress))
		}
	})

	t.Run("cancellation", func(t *testing.T) {
		h := start(t)
		var first mcpAnswer
		h.must("ask", map[string]any{"text": "hello"}, &first)
		for _, stops := range []bool{true, false} {
			ctx, cancel := context.WithCancel(t.Context())
			done, text := make(chan error, 1), fmt.Sprint("cancellation ", stops)
			go func() {
				_, err := h.call(ctx, "ask", map[string]any{"text": text, "agent": "long", "conversation": first.Conversation, "stop_on_cancel": stops}, nil)
				done <- err
			}()
			h.awaitProgress(text)
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("canceled with %v", err)
			}
			if stops {
				lastTurn(t, client, first.Conversation, func(turn *transcript.Turn) bool { return turn.Outcome == "cancelled" })
			}
		}
		// The second one runs on, until it is stopped.
		var stopped struct{ Stopped []string }
		if h.must("stop", map[string]any{"conversation": first.Conversation}, &stopped); len(stopped.Stopped) != 1 {
			t.Errorf("%+v", stopped)
		}
	})

	t.Run("two hosts", func(t *testing.T) {
		one, two := start(t), start(t)
		gate := "two-hosts"
		var first, second mcpAnswer
		one.must("ask", map[string]any{"text": gate, "agent": "long", "wait_seconds": 1}, &first)
		done := make(chan error, 1)
		go func() {
			_, err := two.call(t.Context(), "ask", map[string]any{"text": "x", "agent": "tools", "conversation": first.Conversation}, &second)
			done <- err
		}()
		var parallel sync.WaitGroup
		for i := range 20 {
			parallel.Go(func() {
				text := fmt.Sprint("question ", i)
				var a mcpAnswer
				if _, err := []*mcpHost{one, two}[i%2].call(t.Context(), "ask", map[string]any{"text": text, "agent": "plain"}, &a); err != nil || a.Text != "re: "+text {
					t.Errorf("%v, %+v", err, a)
				}
			})
		}
		parallel.Wait()
		opened(t, control, gate)
		opened(t, control, gate+"-end")
		if err := <-done; err != nil || second.State != "completed" || second.Text != "Done." {
			t.Errorf("%v, %+v", err, second)
		}
		var page struct{ Messages []struct{ Role, Text string } }
		one.must("read", map[string]any{"conversation": first.Conversation}, &page)
		if n := len(page.Messages); n != 4 || page.Messages[1].Text != long || page.Messages[3].Text != "Done." {
			t.Errorf("%d messages", n)
		}
	})

	t.Run("the end of a host in the middle of a question", func(t *testing.T) {
		// The SDK closes a session after its calls. A host that is killed doesn't wait for them.
		cmd := mcpCommand(t, url, secret)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		h := connectMCP(t, &mcp.IOTransport{Reader: out, Writer: in}, "")
		h.list()
		gate := "end-of-input"
		var first mcpAnswer
		h.must("ask", map[string]any{"text": "hello"}, &first)
		done := make(chan error, 1)
		go func() {
			_, err := h.call(t.Context(), "ask", map[string]any{"text": gate, "agent": "long", "conversation": first.Conversation, "stop_on_cancel": true}, nil)
			done <- err
		}()
		h.awaitProgress(gate)
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err == nil {
			t.Error("the call has a result")
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("leat mcp ended with %v", err)
		}
		opened(t, control, gate)
		opened(t, control, gate+"-end")
		lastTurn(t, client, first.Conversation, func(turn *transcript.Turn) bool { return turn.Outcome == "completed" })
		tr, err := client.Transcript(t.Context(), first.Conversation)
		if err != nil || tr.Messages[len(tr.Messages)-1].Visible() != long {
			t.Errorf("%v, the answer isn't whole", err)
		}
	})
}
