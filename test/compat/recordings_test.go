package compat

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/leat-dev/leat/dialect"
	leatanthropic "github.com/leat-dev/leat/dialect/anthropic"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/dialect/openaichat"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/sse"
)

// told is what a stream comes to, as a client and a decoder of Leat's can both say it.
type told struct {
	Texts, Reasoning []string
	Tools            []string // names and arguments of those that the client is to run
	Failed           bool
}

// decoded is what Leat's decoder makes of a stream.
func decoded(t *testing.T, d dialect.Dialect, body []byte) told {
	t.Helper()
	s := dialect.NewStream(d)
	ops, err := s.Write(body)
	if err != nil {
		t.Fatal(err)
	}
	rest, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	tr := dialecttest.Fold(t, append(ops, rest...))
	v := told{Failed: tr.Turn(dialecttest.Turn).Outcome == event.Failed}
	for _, m := range tr.Messages {
		for _, p := range m.Parts {
			switch text := p.Text(event.Text); {
			case p.Kind == event.KindText && text != "":
				v.Texts = append(v.Texts, text)
			case p.Kind == event.KindReasoning && text != "":
				v.Reasoning = append(v.Reasoning, text)
			case p.Kind == event.KindTool && p.State == "":
				v.Tools = append(v.Tools, p.Name+" "+compact(t, p.Text(event.Input)))
			}
		}
	}
	return v
}

// compact takes the spaces out of JSON, which some put in.
func compact(t *testing.T, s string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// upstream answers everything with one stream.
func upstream(t *testing.T, body []byte) string {
	t.Helper()
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if _, err := w.Write(body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(ts.Close)
	return ts.URL
}

// stream returns the bytes of a recording as the API sends them. Recordings of bare data get the names of their events back,
// if the API has it.
func stream(t *testing.T, d dialect.Dialect, path string, named bool) []byte {
	t.Helper()
	body := dialecttest.Load(t, d, path, "").Body
	if !named || filepath.Ext(path) != ".jsonl" {
		return body
	}
	var out []byte
	var r sse.Reader
	if err := r.Feed(body, func(e sse.Event) error {
		var v struct{ Type string }
		if err := json.Unmarshal(e.Data, &v); err != nil {
			return err
		}
		var err error
		out, err = sse.AppendEvent(out, "", v.Type, e.Data)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// The same bytes, read by the API's own client and by Leat's decoder, are the same answer.
func TestAnthropicRecordings(t *testing.T) {
	for _, path := range dialecttest.Glob(t, "anthropic/*") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			body := stream(t, leatanthropic.Dialect(), path, true)
			m, err := anthropicMessage(t, anthropicClient(upstream(t, body), "key"), "any")
			if err != nil {
				t.Fatal(err)
			}
			same(t, anthropicTold(t, m), decoded(t, leatanthropic.Dialect(), body))
		})
	}
}

func anthropicTold(t *testing.T, m anthropic.Message) told {
	t.Helper()
	v := told{Failed: m.StopReason == anthropic.StopReasonRefusal}
	for _, c := range m.Content {
		switch {
		case c.Type == "text" && c.Text != "":
			v.Texts = append(v.Texts, c.Text)
		case c.Type == "thinking" && c.Thinking != "":
			v.Reasoning = append(v.Reasoning, c.Thinking)
		case c.Type == "tool_use":
			v.Tools = append(v.Tools, c.Name+" "+compact(t, string(c.Input)))
		}
	}
	return v
}

func same(t *testing.T, client, leat told) {
	t.Helper()
	for _, v := range []struct {
		what         string
		client, leat []string
	}{{"texts", client.Texts, leat.Texts}, {"reasoning", client.Reasoning, leat.Reasoning}, {"tools", client.Tools, leat.Tools}} {
		if !slices.Equal(v.client, v.leat) {
			t.Errorf("%s: the client has\n%q\nLeat has\n%q", v.what, v.client, v.leat)
		}
	}
	if client.Failed != leat.Failed {
		t.Errorf("failed: the client says %v, Leat %v", client.Failed, leat.Failed)
	}
}

// As above, of everything that speaks this API. The client drops reasoning, which servers send though the API has none.
func TestOpenAIRecordings(t *testing.T) {
	for _, path := range append(dialecttest.Glob(t, "openai-chat/*"), dialecttest.Glob(t, "letta-appserver/openai-api/chat-*")...) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			body := stream(t, openaichat.Dialect(), path, false)
			acc, err := openaiCompletion(t, openaiClient(upstream(t, body), "key"), "any")
			client := told{Failed: err != nil}
			for _, c := range acc.Choices {
				if c.Message.Content != "" {
					client.Texts = append(client.Texts, c.Message.Content)
				}
				for _, call := range c.Message.ToolCalls {
					client.Tools = append(client.Tools, call.Function.Name+" "+compact(t, call.Function.Arguments))
				}
			}
			leat := decoded(t, openaichat.Dialect(), body)
			leat.Reasoning = nil
			same(t, client, leat)
		})
	}
}

// The clients take an interrupted stream for an answer without a stop reason rather than an error. Leat's decoders
// say that it was cut.
func TestCutRecordings(t *testing.T) {
	half := func(b []byte) []byte { return b[:bytes.LastIndex(b[:len(b)/2], []byte("\n\n"))+2] }
	cut := func(d dialect.Dialect, body []byte) {
		t.Helper()
		s := dialect.NewStream(d)
		if _, err := s.Write(body); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Close(); !errors.Is(err, dialect.ErrCutShort) {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
	body := half(stream(t, leatanthropic.Dialect(), dialecttest.Glob(t, "anthropic/text.jsonl")[0], true))
	m, err := anthropicMessage(t, anthropicClient(upstream(t, body), "key"), "any")
	if err != nil || m.StopReason != "" || anthropicText(m) == "" {
		t.Errorf("%v, stop %q", err, m.StopReason)
	}
	cut(leatanthropic.Dialect(), body)
	body = half(stream(t, openaichat.Dialect(), dialecttest.Glob(t, "openai-chat/real-model-1.sse")[0], false))
	acc, err := openaiCompletion(t, openaiClient(upstream(t, body), "key"), "any")
	if err != nil || acc.Choices[0].FinishReason != "" || acc.Choices[0].Message.Content == "" {
		t.Errorf("%v, %+v", err, acc.Choices)
	}
	cut(openaichat.Dialect(), body)
}
