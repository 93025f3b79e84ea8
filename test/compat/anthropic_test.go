package compat

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

func anthropicClient(url, key string, opts ...option.RequestOption) anthropic.Client {
	return anthropic.NewClient(append([]option.RequestOption{option.WithBaseURL(url), option.WithAPIKey(key), option.WithMaxRetries(0)}, opts...)...)
}

func anthropicAsk(model string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: anthropic.Model(model), MaxTokens: 64,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hi"))},
	}
}

// The events arrive in order, with reasoning in separate blocks, and with the text of the transcript.
func TestAnthropicRaw(t *testing.T) {
	h := serve(t)
	client := anthropicClient(h.url, secret)
	var res *http.Response
	stream := client.Messages.NewStreaming(t.Context(), anthropicAsk("thinker"), option.WithResponseInto(&res))
	defer func() { _ = stream.Close() }()
	var types []string
	var text, thinking string
	for stream.Next() {
		e := stream.Current()
		if len(types) == 0 || types[len(types)-1] != e.Type {
			types = append(types, e.Type)
		}
		text += e.Delta.Text
		thinking += e.Delta.Thinking
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	block := []string{"content_block_start", "content_block_delta", "content_block_stop"}
	if want := slices.Concat([]string{"message_start"}, block, block, []string{"message_delta", "message_stop"}); !slices.Equal(types, want) {
		t.Errorf("events %q, want %q", types, want)
	}
	if text != said["thinker"] || thinking != thought {
		t.Errorf("text %q, thinking %q", text, thinking)
	}
	if got := h.visible(t, res); got != text {
		t.Errorf("the transcript has %q", got)
	}
}

// The client's own accumulator.
func TestAnthropicAccumulated(t *testing.T) {
	h := serve(t)
	client := anthropicClient(h.url, secret)
	for model, want := range said {
		t.Run(model, func(t *testing.T) {
			var res *http.Response
			m, err := anthropicMessage(t, client, model, option.WithResponseInto(&res))
			if err != nil {
				t.Fatal(err)
			}
			if got := anthropicText(m); got != want || m.StopReason != anthropic.StopReasonEndTurn || string(m.Model) != model {
				t.Errorf("%q, stop %q, model %q", got, m.StopReason, m.Model)
			}
			if got := h.visible(t, res); got != want {
				t.Errorf("the transcript has %q", got)
			}
			if model == "thinker" && (m.Content[0].Type != "thinking" || m.Content[0].Thinking != thought || m.Usage.InputTokens != 7 || m.Usage.OutputTokens != 5) {
				t.Errorf("first block %+v, usage %+v", m.Content[0], m.Usage)
			}
		})
	}
}

// anthropicMessage streams an answer into the client's accumulator.
func anthropicMessage(t *testing.T, client anthropic.Client, model string, opts ...option.RequestOption) (anthropic.Message, error) {
	t.Helper()
	stream := client.Messages.NewStreaming(t.Context(), anthropicAsk(model), opts...)
	defer func() { _ = stream.Close() }()
	var m anthropic.Message
	for stream.Next() {
		if err := m.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	return m, stream.Err()
}

func anthropicText(m anthropic.Message) string {
	var b strings.Builder
	for _, c := range m.Content {
		b.WriteString(c.Text)
	}
	return b.String()
}

func TestAnthropicNotStreamed(t *testing.T) {
	h := serve(t)
	client := anthropicClient(h.url, secret)
	var res *http.Response
	m, err := client.Messages.New(t.Context(), anthropicAsk("thinker"), option.WithResponseInto(&res))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Content) != 2 || m.Content[0].AsThinking().Thinking != thought || m.Content[1].AsText().Text != said["thinker"] {
		t.Errorf("content %+v", m.Content)
	}
	if got := h.visible(t, res); got != said["thinker"] {
		t.Errorf("the transcript has %q", got)
	}
	var names []string
	for pages := client.Models.ListAutoPaging(t.Context(), anthropic.ModelListParams{}); pages.Next(); {
		names = append(names, pages.Current().ID)
	}
	if want := []string{"failing", "limited", "player", "thinker"}; !slices.Equal(names, want) {
		t.Errorf("models %q, want %q", names, want)
	}
}

func TestAnthropicErrors(t *testing.T) {
	h := serve(t)
	client, wrong := anthropicClient(h.url, secret), anthropicClient(h.url, "wrong")
	alice := anthropicClient(h.url, secret, option.WithHeader("Leat-Subject", "alice"))
	if _, err := alice.Messages.New(t.Context(), anthropicAsk("thinker")); err != nil {
		t.Fatal(err)
	}
	tools := anthropicAsk("thinker")
	tools.Tools = []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{}, "f")}
	for name, tt := range map[string]struct {
		client anthropic.Client
		ask    anthropic.MessageNewParams
		status int
		kind   anthropic.ErrorType
		says   string
		begun  bool // its turn has begun, and so has its stream
	}{
		"unknown model":    {client, anthropicAsk("gpt"), 404, anthropic.ErrorTypeNotFoundError, "gpt", false},
		"wrong key":        {wrong, anthropicAsk("thinker"), 401, anthropic.ErrorTypeAuthenticationError, "", false},
		"tools":            {client, tools, 400, anthropic.ErrorTypeInvalidRequestError, "tools", false},
		"failed turn":      {client, anthropicAsk("failing"), 529, anthropic.ErrorTypeOverloadedError, "the model is busy", true},
		"upstream's limit": {client, anthropicAsk("limited"), 429, anthropic.ErrorTypeRateLimitError, "too many tokens a minute", true},
		"user's limit":     {alice, anthropicAsk("thinker"), 429, anthropic.ErrorTypeRateLimitError, "messages per minute", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tt.client.Messages.New(t.Context(), tt.ask)
			anthropicWant(t, err, tt.status, tt.kind, tt.says)
			stream := tt.client.Messages.NewStreaming(t.Context(), tt.ask)
			defer func() { _ = stream.Close() }()
			for stream.Next() {
				if !tt.begun {
					t.Errorf("got %s", stream.Current().RawJSON())
				}
			}
			if tt.begun {
				tt.status = http.StatusOK
			}
			anthropicWant(t, stream.Err(), tt.status, tt.kind, tt.says)
		})
	}
}

// A turn that fails in the middle yields the text so far and then the API's error, not a finished answer.
func TestAnthropicFailsMidway(t *testing.T) {
	m, err := anthropicMessage(t, anthropicClient(serve(t).url, secret), "failing")
	anthropicWant(t, err, http.StatusOK, anthropic.ErrorTypeOverloadedError, "the model is busy")
	if anthropicText(m) != "so far" || m.StopReason != "" {
		t.Errorf("%q, stop %q", anthropicText(m), m.StopReason)
	}
}

func anthropicWant(t *testing.T, err error, status int, kind anthropic.ErrorType, says string) {
	t.Helper()
	var e *anthropic.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is not an API error", err)
	}
	if e.StatusCode != status || e.Type() != kind || !strings.Contains(e.RawJSON(), says) || e.RequestID == "" {
		t.Errorf("%d %q %s, request %q; want %d %q", e.StatusCode, e.Type(), e.RawJSON(), e.RequestID, status, kind)
	}
}
