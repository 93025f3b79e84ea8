package compat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/sse"
)

// thoughtful emits reasoning, text, a tool call and more text, in steps that readers see one by one.
var thoughtful = agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
	step := func(err error) error { return errors.Join(err, out.Flush()) }
	if err := errors.Join(step(out.Reasoning("hm, ")), step(out.Reasoning("yes")), step(out.Text("Hel")), step(out.Text("lo."))); err != nil {
		return err
	}
	tool, err := out.Tool("clock", "call-1")
	if err != nil {
		return err
	}
	if err := errors.Join(tool.Input("{}"), tool.Output("noon"), tool.Done(), step(out.Text("It is noon."))); err != nil {
		return err
	}
	return out.End(event.Completed, "", &event.Usage{Input: 7, Output: 5, CacheRead: 2})
})

const (
	ask     = `{"model":"eliza","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`
	askOnce = `{"model":"eliza","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`
)

var ids = regexp.MustCompile(`[0-9a-f]{32}|"created":\d+`)

// spelled formats a stream, with the deltas of a block joined.
func spelled(all []sse.Event) string {
	var b strings.Builder
	last := ""
	for _, e := range all {
		if e.Name == "ping" {
			continue
		}
		data := ids.ReplaceAllString(string(e.Data), "ID")
		kind := delta.ReplaceAllString(data, `$1`)
		if m := delta.FindStringSubmatch(data); m != nil && kind == last {
			s := strings.TrimSuffix(b.String(), "»\n")
			b.Reset()
			fmt.Fprintf(&b, "%s%s»\n", s, m[2])
			continue
		} else if m != nil {
			fmt.Fprintf(&b, "%s %s «%s»\n", e.Name, m[1], m[2])
		} else {
			fmt.Fprintf(&b, "%s %s\n", e.Name, data)
		}
		last = kind
	}
	return b.String()
}

var delta = regexp.MustCompile(`^(?:.*"index":\d+,"delta":\{(?:"type":"\w+",)?"(text|thinking|content|reasoning_content)":"([^"]+)".*)$`)

func TestMessagesStream(t *testing.T) {
	h := newHarness(t, one(thoughtful), quota.Limits{})
	res := h.send(http.MethodPost, "/v1/messages", ask)
	got := spelled(h.events(res))
	want := `message_start {"type":"message_start","message":{"id":"msg_ID","type":"message","role":"assistant","model":"eliza","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}}
content_block_start {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
content_block_delta thinking «hm, yes»
content_block_stop {"type":"content_block_stop","index":0}
content_block_start {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}
content_block_delta text «Hello.\n\nIt is noon.»
content_block_stop {"type":"content_block_stop","index":1}
message_delta {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":7,"output_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":2}}
message_stop {"type":"message_stop"}
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if v := h.visible(res.Header); v != "Hello.\n\nIt is noon." {
		t.Errorf("the transcript has %q", v)
	}
}

func TestCompletionsStream(t *testing.T) {
	h := newHarness(t, one(thoughtful), quota.Limits{})
	res := h.send(http.MethodPost, "/v1/chat/completions", strings.Replace(ask, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1))
	got := spelled(h.events(res))
	want := ` {"id":"chatcmpl-ID","object":"chat.completion.chunk",ID,"model":"eliza","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}
 reasoning_content «hm, yes»
 content «Hello.\n\nIt is noon.»
 {"id":"chatcmpl-ID","object":"chat.completion.chunk",ID,"model":"eliza","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}
 {"id":"chatcmpl-ID","object":"chat.completion.chunk",ID,"model":"eliza","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":0}}}
 [DONE]
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// If the agent is refused, the error comes before the stream, and no conversation stays.
func TestStoppedAgent(t *testing.T) {
	stopped := status.NewAgent("eliza", "test")
	stopped.Begin()
	stopped.Ready()
	h := newHarness(t, one(echo), quota.Limits{}, func(c *gateway.Config) { c.Admit = stopped.Admit })
	stopped.Do("stop")
	requestID := regexp.MustCompile(`,"request_id":"[^"]+"`)
	keyed := strings.NewReplacer(`"max_tokens"`, `"user":"k","metadata":{"user_id":"k"},"max_tokens"`)
	for path, want := range map[string]string{
		"/v1/messages":         `{"type":"error","error":{"type":"service_unavailable","message":"Agent is not running"}}`,
		"/v1/chat/completions": `{"error":{"message":"Agent is not running","type":"server_error","param":null,"code":"not_running"}}`,
	} {
		for _, body := range []string{ask, askOnce, keyed.Replace(ask), keyed.Replace(askOnce)} {
			res := h.send(http.MethodPost, path, body)
			got := requestID.ReplaceAllString(strings.TrimSpace(readAll(t, res)), "")
			if res.StatusCode != http.StatusServiceUnavailable || got != want {
				t.Errorf("%s %s: %d %s\nwant %s", path, body, res.StatusCode, got, want)
			}
		}
	}
	if n := h.stored(); n != 0 {
		t.Errorf("%d conversations", n)
	}
	stopped.Do("start")
	h.post(http.StatusOK, nil, "/v1/messages", keyed.Replace(askOnce))
}

func TestNotStreamed(t *testing.T) {
	h := newHarness(t, one(thoughtful), quota.Limits{})
	for path, want := range map[string]string{
		"/v1/messages": `{"id":"msg_ID","type":"message","role":"assistant","model":"eliza","content":[{"type":"thinking","thinking":"hm, yes","signature":""},` +
			`{"type":"text","text":"Hello.\n\nIt is noon."}],"stop_reason":"end_turn","stop_sequence":null,` +
			`"usage":{"input_tokens":7,"output_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":2}}`,
		"/v1/chat/completions": `{"id":"chatcmpl-ID","object":"chat.completion",ID,"model":"eliza","choices":[{"index":0,"message":{"role":"assistant","content":"Hello.\n\nIt is noon.",` +
			`"refusal":null,"reasoning_content":"hm, yes"},"logprobs":null,"finish_reason":"stop"}],` +
			`"usage":{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":0}}}`,
	} {
		var got json.RawMessage
		h.post(http.StatusOK, &got, path, askOnce)
		if s := ids.ReplaceAllString(string(got), "ID"); s != want {
			t.Errorf("%s: got\n%s\nwant\n%s", path, s, want)
		}
	}
}

// texts joins the text of an answer's stream, and reports whether it ended completely and with which error.
func texts(t *testing.T, all []sse.Event) (text string, whole bool, failure string) {
	t.Helper()
	for _, e := range all {
		if string(e.Data) == "[DONE]" || e.Name == "message_stop" {
			whole = true
			continue
		}
		var f struct {
			Delta   struct{ Text string }
			Choices []struct{ Delta struct{ Content string } }
			Error   *struct{ Type, Message string }
		}
		if err := json.Unmarshal(e.Data, &f); err != nil {
			t.Fatalf("%v: %s", err, e.Data)
		}
		text += f.Delta.Text
		if len(f.Choices) > 0 {
			text += f.Choices[0].Delta.Content
		}
		if f.Error != nil {
			failure = f.Error.Type + ": " + f.Error.Message
		}
	}
	return text, whole, failure
}

// A status can change until the turn ends, so it and everything after it are held back.
func TestStatusesAreHeldBack(t *testing.T) {
	for name, a := range map[string]struct {
		run  func(step func(error) error, out *agent.Emitter) error
		text string
	}{
		"statuses": {func(step func(error) error, out *agent.Emitter) error {
			return errors.Join(step(out.Text("On it.")), step(out.Status("Looking...", dialect.Replace)), step(out.Status("Playing", dialect.Replace)))
		}, "On it.\n\nPlaying"},
		"statuses alone": {func(step func(error) error, out *agent.Emitter) error {
			return errors.Join(step(out.Status("Looking...", dialect.Replace)), step(out.Status("Playing", dialect.Replace)))
		}, "Playing"},
		"text behind": {func(step func(error) error, out *agent.Emitter) error {
			return errors.Join(step(out.Status("Looking...", dialect.Replace)), step(out.Text("Found.")), step(out.Status("Playing", dialect.Replace)))
		}, "Playing\n\nFound."},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, one(agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
				return a.run(func(err error) error { return errors.Join(err, out.Flush()) }, out)
			})), quota.Limits{})
			for _, path := range []string{"/v1/messages", "/v1/chat/completions"} {
				res := h.send(http.MethodPost, path, ask)
				text, whole, failure := texts(t, h.events(res))
				if text != a.text || !whole || failure != "" {
					t.Errorf("%s: %q, whole %v, failure %q; want %q", path, text, whole, failure, a.text)
				}
				if v := h.visible(res.Header); v != text {
					t.Errorf("%s: the transcript has %q", path, v)
				}
			}
		})
	}
}

// ops emits operations one by one, each seen by readers.
func ops(out *agent.Emitter, all ...event.Event) error {
	for _, e := range all {
		if err := errors.Join(out.Emit([]event.Event{e}, nil), out.Flush()); err != nil {
			return err
		}
	}
	return nil
}

// A text that changes after it was sent can't be corrected.
func TestReplacedText(t *testing.T) {
	begin := []event.Event{
		{Type: event.MessageStart, Message: "m", Body: &event.Body{Role: event.Assistant}},
		{Type: event.PartStart, Message: "m", Part: "p", Body: &event.Body{Kind: event.KindText}},
		{Type: event.PartAppend, Message: "m", Part: "p", Text: "Paris is in"},
	}
	for name, c := range map[string]struct {
		then  []event.Event
		text  string
		whole bool
	}{
		"replaced":           {[]event.Event{{Type: event.PartReplace, Message: "m", Part: "p", Text: "Rome"}}, "Paris is in", false},
		"retracted":          {[]event.Event{{Type: event.PartReplace, Message: "m", Part: "p"}}, "Paris is in", false},
		"ended, retracted":   {[]event.Event{{Type: event.PartEnd, Message: "m", Part: "p"}, {Type: event.PartReplace, Message: "m", Part: "p"}}, "Paris is in", false},
		"replaced by more":   {[]event.Event{{Type: event.PartReplace, Message: "m", Part: "p", Text: "Paris is in France"}}, "Paris is in France", true},
		"replaced, and back": {[]event.Event{{Type: event.PartReplace, Message: "m", Part: "p", Text: "Rome"}, {Type: event.PartReplace, Message: "m", Part: "p", Text: "Paris is in Texas"}}, "Paris is in Texas", true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/v1/messages", "/v1/chat/completions"} {
				sent := make(chan struct{})
				h := newHarness(t, one(agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
					if err := ops(out, begin...); err != nil {
						return err
					}
					select {
					case <-sent: // the client has it
					case <-ctx.Done():
						return ctx.Err()
					}
					return ops(out, c.then...)
				})), quota.Limits{})
				res := h.send(http.MethodPost, path, ask)
				first := untilText(t, res, "Paris is in")
				close(sent)
				text, whole, failure := texts(t, append(first, h.events(res)...))
				if text != c.text || whole != c.whole || (failure != "") == c.whole {
					t.Errorf("%s: %q, whole %v, failure %q; want %q, %v", path, text, whole, failure, c.text, c.whole)
				}
				if v := h.visible(res.Header); c.whole && v != text {
					t.Errorf("%s: the transcript has %q", path, v)
				}
			}
		})
	}
}

// untilText reads a stream up to a text.
func untilText(t *testing.T, res *http.Response, want string) (all []sse.Event) {
	t.Helper()
	r := &sse.Reader{}
	var raw strings.Builder
	b := make([]byte, 4<<10)
	for !strings.Contains(raw.String(), want) || !strings.HasSuffix(raw.String(), "\n\n") {
		n, err := res.Body.Read(b)
		if err != nil {
			t.Fatalf("%v after %q", err, raw.String())
		}
		raw.Write(b[:n])
		if err := r.Feed(b[:n], func(e sse.Event) error {
			e.Data = append([]byte(nil), e.Data...)
			all = append(all, e)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestTurnThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		err                       error
		status                    int
		anthropic, openai, header string
	}{
		"plain":     {errors.New("boom"), 500, "server_error: the agent failed", "server_error: the agent failed", "false"},
		"overload":  {&agent.Error{Code: "overloaded_error", Message: "busy", Retryable: true}, 529, "overloaded_error: busy", "server_error: busy", ""},
		"its limit": {&agent.Error{Code: "rate_limit_error", Message: "slow down"}, 429, "rate_limit_error: slow down", "rate_limit_error: slow down", "false"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, one(agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
				if err := out.Text("so far"); err != nil {
					return err
				}
				return c.err
			})), quota.Limits{})
			for path, want := range map[string]string{"/v1/messages": c.anthropic, "/v1/chat/completions": c.openai} {
				text, whole, failure := texts(t, h.events(h.send(http.MethodPost, path, ask)))
				if text != "so far" || whole || failure != want {
					t.Errorf("%s: %q, whole %v, %q; want %q", path, text, whole, failure, want)
				}
				var e struct {
					Error struct{ Type, Message string }
				}
				header := h.post(c.status, &e, path, askOnce)
				if got := e.Error.Type + ": " + e.Error.Message; got != want || header.Get("X-Should-Retry") != c.header {
					t.Errorf("%s: %q, X-Should-Retry %q; want %q, %q", path, got, header.Get("X-Should-Retry"), want, c.header)
				}
			}
		})
	}
}

// A stopped turn is an error. During silence, the client gets pings.
func TestStopAndPings(t *testing.T) {
	h := newHarness(t, one(agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		if err := out.Text("so far"); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})), quota.Limits{})
	for path, ping := range map[string]string{"/v1/messages": "event: ping\ndata: {\"type\":\"ping\"}\n\n", "/v1/chat/completions": ": ping\n"} {
		res := h.send(http.MethodPost, path, ask)
		first := untilText(t, res, ping)
		stop := gateway.Command{Type: gateway.CommandStop, Turn: res.Header.Get("Leat-Turn")}
		if _, err := h.gw.Do(t.Context(), admin, res.Header.Get(headerConversation), stop); err != nil {
			t.Fatal(err)
		}
		text, whole, failure := texts(t, append(first, h.events(res)...))
		if text != "so far" || whole || failure != "server_error: the turn was stopped" {
			t.Errorf("%s: %q, whole %v, %q", path, text, whole, failure)
		}
	}
}

// A gateway that stops reports that, because the client must not take a partial answer for a complete one.
func TestShutdownEndsStreams(t *testing.T) {
	h := newHarness(t, one(agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		if err := out.Text("so far"); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})), quota.Limits{})
	res := h.send(http.MethodPost, "/v1/messages", ask)
	first := untilText(t, res, "so far")
	h.srv.Close()
	text, whole, failure := texts(t, append(first, h.events(res)...))
	if text != "so far" || whole || !strings.HasPrefix(failure, "service_unavailable: ") {
		t.Errorf("%q, whole %v, %q", text, whole, failure)
	}
}

// A client that disconnects stops nothing.
func TestDisconnect(t *testing.T) {
	left, ended := make(chan struct{}), make(chan error, 1)
	h := newHarness(t, one(agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		if err := out.Text("so far"); err != nil {
			return err
		}
		<-left
		ended <- ctx.Err()
		return out.Text(", and on")
	})), quota.Limits{})
	res := h.send(http.MethodPost, "/v1/messages", ask)
	untilText(t, res, "so far")
	if err := res.Body.Close(); err != nil {
		t.Fatal(err)
	}
	close(left)
	if err := <-ended; err != nil {
		t.Fatalf("the turn was stopped: %v", err)
	}
	var again struct{ Content []struct{ Text string } }
	h.post(http.StatusOK, &again, "/v1/messages", strings.Replace(askOnce, `"hi"`, `"again"`, 1))
	if again.Content[0].Text != "so far, and on" {
		t.Errorf("got %+v", again)
	}
}
