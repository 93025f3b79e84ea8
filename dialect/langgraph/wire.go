package langgraph

import (
	"encoding/json"

	"github.com/leat-dev/leat/dialect/internal/canvas"
)

// message is a message of LangChain, whole or a chunk of one.
type message struct {
	Type       string          `json:"type"`
	ID         string          `json:"id"`
	Content    json.RawMessage `json:"content"`
	Name       string          `json:"name"`
	Status     string          `json:"status"`       // of a tool's result
	ToolCallID string          `json:"tool_call_id"` // of a tool's result
	Calls      []call          `json:"tool_calls"`
	Chunks     []chunk         `json:"tool_call_chunks"`
	Usage      *usage          `json:"usage_metadata"`
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

// stopReason returns why the model stopped, by whatever name its provider gives it; "" if the message doesn't say.
func (m *message) stopReason() string {
	for _, raw := range []json.RawMessage{m.Response.Finish, m.Response.Stop, m.Response.Done} {
		if s := canvas.String(raw); s != "" {
			return s
		}
	}
	return ""
}

type call struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type chunk struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Args  json.RawMessage `json:"args"`
	Index json.RawMessage `json:"index"`
}

type usage struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
}

// piece is a block of a content that is a list.
type piece struct {
	Type      string          `json:"type"`
	Text      json.RawMessage `json:"text"`
	Thinking  json.RawMessage `json:"thinking"`
	Reasoning json.RawMessage `json:"reasoning"`
}

// pieces is a content as a list.
func (m *message) pieces() ([]piece, error) {
	var list []piece
	switch {
	case len(m.Content) == 0, string(m.Content) == "null":
	case m.Content[0] == '[':
		// A list may hold plain strings among its blocks.
		var raw []json.RawMessage
		if err := json.Unmarshal(m.Content, &raw); err != nil {
			return nil, canvas.Fault("content of a message", err)
		}
		for _, r := range raw {
			if len(r) > 0 && r[0] == '"' {
				list = append(list, piece{Type: "text", Text: r})
				continue
			}
			var p piece
			if err := json.Unmarshal(r, &p); err != nil {
				return nil, canvas.Fault("content of a message", err)
			}
			list = append(list, p)
		}
	default:
		list = []piece{{Type: "text", Text: m.Content}}
	}
	if r := m.Extra.Reasoning; r != nil {
		list = append([]piece{{Type: "reasoning", Reasoning: r}}, list...)
	}
	return list, nil
}

// thought returns the reasoning in a piece, or nil.
func (p *piece) thought() json.RawMessage {
	if p.Thinking != nil {
		return p.Thinking
	}
	return p.Reasoning
}

// interrupt is what a graph waits for.
type interrupt struct {
	ID    string          `json:"id"`
	NS    []string        `json:"ns"`
	Value json.RawMessage `json:"value"`
}

// values are a graph's values, or what a node has changed of them.
type values struct {
	Messages  json.RawMessage `json:"messages"`
	Interrupt []interrupt     `json:"__interrupt__"`
}
