package compat

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
)

// The clients of the Responses API for Node, by their own tests in the folder node.
func TestResponsesNode(t *testing.T) {
	requireNode(t, "openai-6")
	runClient(t, "node", "node", "--test", "--test-timeout=300000", "responses.test.js")
}

// The client for Python, by its own test in the folder python.
func TestResponsesPython(t *testing.T) {
	runPython(t, "responses.py")
}

// text is an input.
func text(s string) responses.ResponseNewParamsInputUnion {
	return responses.ResponseNewParamsInputUnion{OfString: openai.String(s)}
}

// received is what a client has of a stream.
type received struct {
	text string
	last int64
	end  responses.Response
}

// take reads a stream until its end, or until enough reports that the client has enough.
func (c *received) take(t *testing.T, s *ssestream.Stream[responses.ResponseStreamEventUnion], enough func() bool) {
	t.Helper()
	defer func() { _ = s.Close() }()
	for s.Next() {
		e := s.Current()
		if e.SequenceNumber <= c.last {
			t.Fatalf("%s has the number %d after %d", e.Type, e.SequenceNumber, c.last)
		}
		c.last = e.SequenceNumber
		if e.Type == "response.output_text.delta" {
			c.text += e.Delta
		}
		if e.Type == "response.completed" || e.Type == "response.failed" || e.Type == "response.incomplete" {
			c.end = e.Response
		}
		if enough != nil && enough() {
			return
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
}

// The client for Go: streams, the background with a cut, waits, and conversations.
func TestResponsesGo(t *testing.T) {
	url, control := serveChats(t)
	client := openaiClient(url, secret)
	ask := func(params responses.ResponseNewParams) received {
		t.Helper()
		c := received{last: -1}
		c.take(t, client.Responses.NewStreaming(t.Context(), params), nil)
		return c
	}

	first := ask(responses.ResponseNewParams{Model: "plain", Input: text("hi")})
	if first.text != "re: hi" || first.end.OutputText() != "re: hi" || first.end.Status != "completed" {
		t.Errorf("%q, %+v", first.text, first.end)
	}
	next, err := client.Responses.New(t.Context(), responses.ResponseNewParams{Model: "plain", Input: text("again"), PreviousResponseID: openai.String(first.end.ID)})
	if err != nil || next.OutputText() != "re: again" || next.Conversation.ID != first.end.Conversation.ID {
		t.Errorf("%v: %+v", err, next)
	}
	if failed := ask(responses.ResponseNewParams{Model: "failing", Input: text("hi")}); failed.end.Status != "failed" || failed.end.Error.Message != "The model is busy." {
		t.Errorf("%+v", failed.end)
	}

	// In the background, with a client that is cut.
	const gate = "responses-go"
	started, err := client.Responses.New(t.Context(), responses.ResponseNewParams{Model: "long", Input: text(gate), Background: openai.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	cut := received{last: -1}
	cut.take(t, client.Responses.GetStreaming(t.Context(), started.ID, responses.ResponseGetParams{}), func() bool { return len(cut.text) > 50 })
	for _, name := range []string{gate, gate + "-end"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, control+"/"+name, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
	cut.take(t, client.Responses.GetStreaming(t.Context(), started.ID, responses.ResponseGetParams{StartingAfter: openai.Int(cut.last)}), nil)
	if want := strings.Join(pieces(), ""); cut.text != want || cut.end.OutputText() != want {
		t.Errorf("%q", cut.text)
	}

	// A tool of the client.
	asked := ask(responses.ResponseNewParams{Model: "client-tool", Input: text("where?")})
	call := asked.end.Output[len(asked.end.Output)-1].AsFunctionCall()
	var arguments struct{ Precise bool }
	if err := json.Unmarshal([]byte(call.Arguments), &arguments); err != nil || !arguments.Precise || call.Name != "getLocation" {
		t.Fatalf("%v: %+v", err, call)
	}
	done := ask(responses.ResponseNewParams{
		Model: "client-tool", PreviousResponseID: openai.String(asked.end.ID),
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{{OfFunctionCallOutput: &responses.ResponseInputItemFunctionCallOutputParam{
			CallID: openai.String(call.CallID), Output: responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: openai.String("Berlin")},
		}}}},
	})
	if done.text != "You are at Berlin." {
		t.Errorf("%q", done.text)
	}

	c, err := client.Conversations.New(t.Context(), conversations.ConversationNewParams{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Conversations.Delete(t.Context(), c.ID); err != nil {
		t.Error(err)
	}
}
