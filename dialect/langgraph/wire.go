package langgraph

import (
	"encoding/json"

	"github.com/leat-dev/leat/dialect/internal/decoding"
)

// message is a message of LangChain, or a chunk of one. The fields of Response are raw, so that a wrong type in one of them doesn't make the
// message invalid: they are the provider's own.
type message struct {
	Type       string          `json:"type"`
	ID         string          `json:"id"`
	Content    json.RawMessage `json:"content"`
	Name       string          `json:"name"`
	Status     string          `json:"status"`       // of a tool's result
	ToolCallID string          `json:"tool_call_id"` // of a tool's result
	Calls      []call          `json:"tool_calls"`
	Chunks     []chunk         `json:"tool_call_chunks"`
	Usage      *usage          `json:"usage_metadata"` // absent if the provider doesn't stream it
	Response   struct {
		Model  json.RawMessage `json:"model_name"`
		Finish json.RawMessage `json:"finish_reason"` // of OpenAI's and Google's models
		Stop   json.RawMessage `json:"stop_reason"`   // of Anthropic's
		Done   json.RawMessage `json:"done_reason"`   // of Ollama's
	} `json:"response_metadata"`
	Extra struct {
		Reasoning json.RawMessage `json:"reasoning_content"`
	} `json:"additional_kwargs"`
}

// stopReason returns the model's stop reason, whose key depends on the provider. It returns "" if the message has none, as is the case for
// every chunk but the last.
func (m *message) stopReason() string {
	for _, raw := range []json.RawMessage{m.Response.Finish, m.Response.Stop, m.Response.Done} {
		if s := decoding.String(raw); s != "" {
			return s
		}
	}
	return ""
}

// call is a tool call of a complete message. Args is an object.
type call struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// chunk is a piece of a tool call. Args is a piece of JSON as a string; only the first piece has ID and Name.
type chunk struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Args  json.RawMessage `json:"args"`
	Index json.RawMessage `json:"index"`
}

// usage is the usage_metadata of a message, in tokens.
type usage struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
}

// piece is a block of a content that is a list. Anthropic's models send Thinking, others Reasoning.
type piece struct {
	Type      string          `json:"type"`
	Text      json.RawMessage `json:"text"`
	Thinking  json.RawMessage `json:"thinking"`
	Reasoning json.RawMessage `json:"reasoning"`
}

// piecesOf returns the content of a message as a list of blocks, which is valid until the next call. A content is a string, or a list of
// blocks and plain strings. Some providers send the reasoning outside of the content; it becomes the first block.
func (r *reader) piecesOf(m *message) ([]piece, error) {
	r.pieces = r.pieces[:0]
	if m.Extra.Reasoning != nil {
		r.pieces = append(r.pieces, piece{Type: "reasoning", Reasoning: m.Extra.Reasoning})
	}
	switch {
	case len(m.Content) == 0, string(m.Content) == "null":
	case m.Content[0] == '[':
		list, err := lists.Read(&r.blocks, m.Content)
		if err != nil {
			return nil, decoding.Fault("content of a message", err)
		}
		for _, raw := range *list {
			if len(raw) > 0 && raw[0] == '"' {
				r.pieces = append(r.pieces, piece{Type: "text", Text: raw})
				continue
			}
			p, err := blocks.Read(&r.block, raw)
			if err != nil {
				return nil, decoding.Fault("content of a message", err)
			}
			r.pieces = append(r.pieces, *p)
		}
	default:
		r.pieces = append(r.pieces, piece{Type: "text", Text: m.Content})
	}
	return r.pieces, nil
}

// thought returns the reasoning in a piece, or nil if the piece is text. It is a JSON token, which may end inside a character.
func (p *piece) thought() json.RawMessage {
	if p.Thinking != nil {
		return p.Thinking
	}
	return p.Reasoning
}

// interrupt is a question of the graph. Newer servers give it an id, older ones only the namespace of its node.
type interrupt struct {
	ID    string          `json:"id"`
	NS    []string        `json:"ns"`
	Value json.RawMessage `json:"value"`
}

// values is the state of a graph, or what a node changed in it. Only these two keys are read. Messages is raw, because a graph may use the
// name for something else.
type values struct {
	Messages  json.RawMessage `json:"messages"`
	Interrupt []interrupt     `json:"__interrupt__"`
}
