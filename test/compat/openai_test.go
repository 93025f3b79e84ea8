package compat

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
)

func openaiClient(url, key string, opts ...option.RequestOption) openai.Client {
	return openai.NewClient(append([]option.RequestOption{option.WithBaseURL(url + "/v1"), option.WithAPIKey(key), option.WithMaxRetries(0)}, opts...)...)
}

func openaiAsk(model string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
}

// The chunks have the text of the transcript, the reasoning in a separate field, and the usage.
func TestOpenAIRaw(t *testing.T) {
	h := serve(t)
	client := openaiClient(h.url, secret)
	var res *http.Response
	stream := client.Chat.Completions.NewStreaming(t.Context(), openaiAsk("thinker"), option.WithResponseInto(&res))
	defer func() { _ = stream.Close() }()
	var text, reasoning, finish string
	var total int64
	for stream.Next() {
		chunk := stream.Current()
		total += chunk.Usage.TotalTokens
		for _, c := range chunk.Choices {
			text += c.Delta.Content
			finish += c.FinishReason
			if raw := c.Delta.JSON.ExtraFields["reasoning_content"].Raw(); raw != "" {
				reasoning += strings.Trim(raw, `"`)
			}
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if text != said["thinker"] || reasoning != thought || finish != "stop" || total != 12 {
		t.Errorf("text %q, reasoning %q, finish %q, %d tokens", text, reasoning, finish, total)
	}
	if got := h.visible(t, res); got != text {
		t.Errorf("the transcript has %q", got)
	}
}

// The client's own accumulator.
func TestOpenAIAccumulated(t *testing.T) {
	h := serve(t)
	client := openaiClient(h.url, secret)
	for model, want := range said {
		t.Run(model, func(t *testing.T) {
			var res *http.Response
			acc, err := openaiCompletion(t, client, model, option.WithResponseInto(&res))
			if err != nil {
				t.Fatal(err)
			}
			if c := acc.Choices[0]; c.Message.Content != want || c.FinishReason != "stop" || acc.Model != model {
				t.Errorf("%q, finish %q, model %q", c.Message.Content, c.FinishReason, acc.Model)
			}
			if got := h.visible(t, res); got != want {
				t.Errorf("the transcript has %q", got)
			}
		})
	}
}

// openaiCompletion streams an answer into the client's accumulator.
func openaiCompletion(t *testing.T, client openai.Client, model string, opts ...option.RequestOption) (openai.ChatCompletionAccumulator, error) {
	t.Helper()
	stream := client.Chat.Completions.NewStreaming(t.Context(), openaiAsk(model), opts...)
	defer func() { _ = stream.Close() }()
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			t.Fatalf("the accumulator refuses %s", stream.Current().RawJSON())
		}
	}
	return acc, stream.Err()
}

func TestOpenAINotStreamed(t *testing.T) {
	h := serve(t)
	client := openaiClient(h.url, secret)
	ask := openaiAsk("thinker")
	ask.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
	var res *http.Response
	c, err := client.Chat.Completions.New(t.Context(), ask, option.WithResponseInto(&res))
	if err != nil {
		t.Fatal(err)
	}
	if m := c.Choices[0].Message; m.Content != said["thinker"] || c.Choices[0].FinishReason != "stop" || c.Usage.TotalTokens != 12 {
		t.Errorf("%+v, usage %+v", m, c.Usage)
	}
	if got := h.visible(t, res); got != said["thinker"] {
		t.Errorf("the transcript has %q", got)
	}
	var names []string
	for pages := client.Models.ListAutoPaging(t.Context()); pages.Next(); {
		names = append(names, pages.Current().ID)
	}
	if want := []string{"failing", "limited", "player", "thinker"}; !slices.Equal(names, want) {
		t.Errorf("models %q, want %q", names, want)
	}
}

func TestOpenAIErrors(t *testing.T) {
	h := serve(t)
	client, wrong := openaiClient(h.url, secret), openaiClient(h.url, "wrong")
	alice := openaiClient(h.url, secret, option.WithHeader("Leat-Subject", "alice"))
	if _, err := openaiCompletion(t, alice, "thinker"); err != nil {
		t.Fatal(err)
	}
	tools := openaiAsk("thinker")
	tools.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "f"})}
	for name, tt := range map[string]struct {
		client     openai.Client
		ask        openai.ChatCompletionNewParams
		status     int
		kind, code string
		begun      bool // its turn has begun, and so has its stream
	}{
		"unknown model":    {client, openaiAsk("gpt"), 404, "invalid_request_error", "model_not_found", false},
		"wrong key":        {wrong, openaiAsk("thinker"), 401, "invalid_request_error", "invalid_api_key", false},
		"tools":            {client, tools, 400, "invalid_request_error", "tools_not_supported", false},
		"failed turn":      {client, openaiAsk("failing"), 529, "server_error", "overloaded_error", true},
		"upstream's limit": {client, openaiAsk("limited"), 429, "rate_limit_error", "rate_limit_error", true},
		"user's limit":     {alice, openaiAsk("thinker"), 429, "rate_limit_error", "rate_limited", false},
	} {
		t.Run(name, func(t *testing.T) {
			stream := tt.client.Chat.Completions.NewStreaming(t.Context(), tt.ask)
			defer func() { _ = stream.Close() }()
			for stream.Next() {
				if !tt.begun {
					t.Errorf("got %s", stream.Current().RawJSON())
				}
			}
			if tt.begun {
				openaiCut(t, stream.Err(), tt.code)
			} else {
				openaiWant(t, stream.Err(), tt.status, tt.kind, tt.code)
			}
			tt.ask.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
			_, err := tt.client.Chat.Completions.New(t.Context(), tt.ask)
			openaiWant(t, err, tt.status, tt.kind, tt.code)
		})
	}
}

func openaiWant(t *testing.T, err error, status int, kind, code string) {
	t.Helper()
	var e *openai.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is not an API error", err)
	}
	if e.StatusCode != status || e.Type != kind || e.Code != code || e.Message == "" {
		t.Errorf("%d %q %q %q; want %d %q %q", e.StatusCode, e.Type, e.Code, e.Message, status, kind, code)
	}
}

// A turn that fails in the middle yields the text so far and then the client's stream error, not a finished answer.
func TestOpenAIFailsMidway(t *testing.T) {
	acc, err := openaiCompletion(t, openaiClient(serve(t).url, secret), "failing")
	openaiCut(t, err, "overloaded_error")
	if c := acc.Choices[0]; c.Message.Content != "so far" || c.FinishReason != "" {
		t.Errorf("%q, finish %q", c.Message.Content, c.FinishReason)
	}
}

// openaiCut is openaiWant for a stream that has begun.
func openaiCut(t *testing.T, err error, code string) {
	t.Helper()
	var e *ssestream.StreamError
	if !errors.As(err, &e) || !strings.Contains(e.Message, code) {
		t.Errorf("%v is not a stream error with %q", err, code)
	}
}
