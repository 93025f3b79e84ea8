// The Messages API of Anthropic: its requests, and answers in its form, streamed or whole.

package compat

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/dialect/anthropic"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/server"
)

// messages is Anthropic's Messages API.
type messages struct{}

// Sampling parameters such as temperature are ignored, because the agent chooses its own. Client tools are
// refused: the agent would never call them, and a client that relies on them must learn that. Some clients
// ask for a stream only by the Accept header.
func (messages) parse(r *http.Request) (*request, error) {
	var body struct {
		Model    string                     `json:"model"`
		System   content                    `json:"system"`
		Messages []apiMessage               `json:"messages"`
		Stream   bool                       `json:"stream"`
		Metadata map[string]json.RawMessage `json:"metadata"`
		Tools    []json.RawMessage          `json:"tools"`
		Servers  []json.RawMessage          `json:"mcp_servers"`
		Thinking struct {
			Type string `json:"type"`
		} `json:"thinking"`
	}
	if err := server.Decode(r, &body); err != nil {
		return nil, err
	}
	switch {
	case len(body.Tools) > 0:
		return nil, noTools("tools")
	case len(body.Servers) > 0:
		return nil, noTools("mcp_servers")
	}
	rq := &request{
		model: body.Model, source: "anthropic", silent: body.Thinking.Type == "disabled",
		stream: body.Stream || strings.Contains(r.Header.Get("Accept"), "text/event-stream"),
	}
	var err error
	if rq.key, err = keyOf("", body.Metadata); err != nil {
		return nil, err
	}
	return rq, (&reader{source: rq.source}).conversation(rq, body.System, body.Messages)
}

func (messages) encoder(rq *request, turn string) encoder {
	return &anthropicEncoder{anthropic.Encoder{ID: "msg_" + hexID(turn), Model: rq.model}}
}

// anthropicEncoder adds the parts of encoder that need types of this package. The embedded encoder has the
// frames of the stream.
type anthropicEncoder struct{ anthropic.Encoder }

func (e *anthropicEncoder) fail(b []byte, err *server.Error) []byte {
	return e.Fail(b, anthropicType(err), err.Message)
}

// complete returns the message for a request without stream. Reasoning becomes a thinking block, at its
// position between the texts.
func (e *anthropicEncoder) complete(b []byte, pieces []answer.Piece, reason string, u *event.Usage) []byte {
	blocks := make([]anthropic.Block, len(pieces))
	for i, p := range pieces {
		blocks[i] = anthropic.Block{Reasoning: p.IsReasoning, Text: p.Text}
	}
	return e.AppendMessage(b, blocks, reason, u)
}
