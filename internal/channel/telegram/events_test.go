package telegram_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agentsdk"
	fake "github.com/leat-dev/leat/chattest/telegram"
	"github.com/leat-dev/leat/dialect"
	sdk "github.com/leat-dev/leat/dialect/agentsdk"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/telegram"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// runtimeServer is a server of agentsdk-go whose stream the test writes.
type runtimeServer struct {
	frames chan string // one event, as JSON
}

func (s *runtimeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		select {
		case frame, ok := <-s.frames:
			if !ok {
				return
			}
			fmt.Fprintf(w, "data: %s\n\n", frame)
			_ = http.NewResponseController(w).Flush() // a client that has gone is noticed by the context
		case <-r.Context().Done():
			return
		}
	}
}

// startBot starts a gateway with an agent of agentsdk-go and a Telegram bot, and lets Ann say hello to it.
func startBot(t *testing.T) (*runtimeServer, *fake.Server) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	upstream := &runtimeServer{frames: make(chan string)}
	runtime := httptest.NewServer(upstream)
	t.Cleanup(runtime.Close)
	spec, err := agent.ParseSpec("agentsdk:" + runtime.URL)
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.Kinds{agentsdk.Kind(dialect.NewRegistry(sdk.Dialect()))}.Make(spec)
	if err != nil {
		t.Fatal(err)
	}
	roster := gateway.NewRoster(quiet)
	if err := roster.Add("sdk", gateway.Agent{Agent: a}); err != nil {
		t.Fatal(err)
	}
	bot := fake.New(fake.Options{Token: "1:test"})
	api := httptest.NewServer(bot)
	t.Cleanup(api.Close)
	t.Cleanup(api.CloseClientConnections)
	store := memory.New()
	t.Cleanup(func() { _ = store.Close() })
	pipeline := channel.New(channel.Config{Journal: store, Log: quiet})
	pipeline.Add(telegram.New(telegram.Options{Name: "tg", Token: "1:test", Streaming: true, URL: api.URL, Log: quiet}), channel.Options{Allow: []string{"7"}})
	gw, err := gateway.New(gateway.Config{Journal: store, Agents: roster, DefaultAgent: "sdk", Hooks: gateway.Hooks{Watchers: []gateway.Watcher{pipeline}}})
	if err != nil {
		t.Fatal(err)
	}
	roster.Start()
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := pipeline.Start(t.Context(), gw, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		pipeline.Shutdown(ended)
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		roster.Close()
	})
	bot.Say(fake.Private(7, "Ann"), "hello")
	return upstream, bot
}

// The events of agentsdk-go have the effects in a chat that the table of Maven's streaming document describes.
func TestAgentsdkEvents(t *testing.T) {
	upstream, bot := startBot(t)
	send := func(frames ...string) {
		t.Helper()
		for _, f := range frames {
			select {
			case upstream.frames <- f:
			case <-time.After(time.Minute):
				t.Fatalf("the agent doesn't take %s", f)
			}
		}
	}
	// wait waits until the draft or a message of the bot contains a text.
	wait := func(want string) {
		t.Helper()
		limit := time.After(time.Minute)
		for {
			changed := bot.Changed()
			shown, _, _ := bot.Draft(7, 0)
			for _, m := range bot.Visible(7) {
				shown += "\n" + m.Text
			}
			if strings.Contains(shown, want) {
				return
			}
			select {
			case <-changed:
			case <-limit:
				t.Fatalf("the chat doesn't show %q, but %q", want, shown)
			}
		}
	}
	draft := func() string {
		text, _, _ := bot.Draft(7, 0)
		return text
	}
	text := func(s string) string {
		return fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, s)
	}
	start := `{"type":"content_block_start","index":0,"content_block":{"type":"text"}}`
	stop := `{"type":"content_block_stop","index":0}`

	// EventContentBlockDelta (text): append to the user-visible content buffer.
	send(`{"type":"iteration_start","iteration":0}`, `{"type":"message_start","message":{"role":"assistant"}}`, start, text("I look "))
	wait("I look")
	send(text("at the files."), stop)
	wait("I look at the files.")

	// EventContentBlockStart (tool_use) and EventContentBlockDelta (input_json_delta): the input is buffered for the summary that
	// EventToolExecutionStart shows in a row of the status card.
	send(`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t0","name":"Bash"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"command\":\"ls"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":" -la\"}"}}`,
		`{"type":"content_block_stop","index":1}`, `{"type":"message_stop"}`,
		`{"type":"tool_execution_start","tool_use_id":"t0","name":"Bash","iteration":0}`)
	wait("⏳ Bash(ls -la)")
	wait("Working…")

	// EventToolExecutionOutput: stream subprocess output into the tool row.
	send(`{"type":"tool_execution_output","tool_use_id":"t0","name":"Bash","output":"a.txt\n","is_stderr":false}`)
	wait("a.txt")
	send(`{"type":"tool_execution_output","tool_use_id":"t0","name":"Bash","output":"b.txt\n","is_stderr":false}`)
	wait("a.txt\nb.txt")

	// EventToolExecutionResult: mark the row done or failed.
	send(`{"type":"tool_execution_result","tool_use_id":"t0","name":"Bash","output":{"metadata":{"is_error":true},"output":"a.txt\nb.txt\n"}}`)
	wait("❌ Bash(ls -la)")

	// EventIterationStart: bump the iteration counter, reset the content buffer.
	send(`{"type":"iteration_start","iteration":1}`, `{"type":"message_start","message":{"role":"assistant"}}`, start, text("There are two."), stop)
	wait("🔄 Iteration 2")
	wait("There are two.")
	if got := draft(); strings.Contains(got, "I look") {
		t.Errorf("the live message of the second iteration: %q", got)
	}

	// EventError: surface the error to the user. The report has the texts of all iterations.
	send(`{"type":"error","output":"the model is overloaded","is_error":true}`)
	close(upstream.frames)
	wait("I look at the files.\n\nThere are two.\n\n⚠️")
	for _, m := range bot.Visible(7) {
		if strings.Contains(m.Text, "Working…") && !strings.Contains(m.Text, "There are two.") {
			continue // the card is deleted after the report
		}
		if !strings.Contains(m.Text, "overloaded") {
			t.Errorf("the report: %q", m.Text)
		}
	}
	for _, v := range bot.Violations() {
		t.Error(v)
	}
}
