// The Chat Completions API of OpenAI: its requests, and answers in its form, streamed or whole.

package compat

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/dialect/openaichat"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/models"
)

// completions is OpenAI's Chat Completions API.
type completions struct{}

// Options that would change the form of the answer (several choices, log probabilities, audio, JSON
// schemas) are refused, because a client that sets them would misread the answer. Sampling parameters are
// ignored.
func (completions) parse(r *http.Request) (*request, error) {
	var body struct {
		Model         string                     `json:"model"`
		Messages      []apiMessage               `json:"messages"`
		Stream        bool                       `json:"stream"`
		User          string                     `json:"user"`
		Metadata      map[string]json.RawMessage `json:"metadata"`
		Tools         []json.RawMessage          `json:"tools"`
		Functions     []json.RawMessage          `json:"functions"`
		N             *int                       `json:"n"`
		Logprobs      bool                       `json:"logprobs"`
		Modalities    []string                   `json:"modalities"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		ResponseFormat struct {
			Type string `json:"type"`
		} `json:"response_format"`
	}
	if err := server.Decode(r, &body); err != nil {
		return nil, err
	}
	switch f := body.ResponseFormat.Type; {
	case len(body.Tools) > 0 || len(body.Functions) > 0:
		return nil, noTools("tools")
	case body.N != nil && *body.N != 1:
		return nil, server.Invalid("n: must be 1")
	case body.Logprobs:
		return nil, server.Invalid("logprobs: not supported")
	case f != "" && f != "text":
		return nil, server.Invalid("response_format: unsupported %q; use text", f)
	}
	for _, m := range body.Modalities {
		if m != "text" {
			return nil, server.Invalid("modalities: unsupported %q; use text", m)
		}
	}
	rq := &request{model: body.Model, source: "openai", stream: body.Stream, usage: body.StreamOptions.IncludeUsage}
	var err error
	if rq.key, err = keyOf(body.User, body.Metadata); err != nil {
		return nil, err
	}
	return rq, (&reader{source: rq.source}).conversation(rq, nil, body.Messages)
}

func (completions) encoder(rq *request, turn string) encoder {
	return &openaiEncoder{openaichat.Encoder{ID: "chatcmpl-" + hexID(turn), Model: rq.model, Created: time.Now().Unix(), Usage: rq.usage}}
}

type openaiEncoder struct{ openaichat.Encoder }

func (e *openaiEncoder) fail(b []byte, err *server.Error) []byte {
	return e.Fail(b, models.OpenAIType(err), models.OpenAICode(err), err.Message)
}

// complete returns the completion for a request without stream. The format has one text and one reasoning,
// so the pieces of each kind are joined.
func (e *openaiEncoder) complete(b []byte, pieces []answer.Piece, reason string, u *event.Usage) []byte {
	var text strings.Builder
	var thoughts []string
	for _, p := range pieces {
		if p.IsReasoning {
			thoughts = append(thoughts, p.Text)
		} else {
			text.WriteString(p.Text)
		}
	}
	return e.AppendCompletion(b, text.String(), strings.Join(thoughts, event.JoinBlank), reason, u)
}
