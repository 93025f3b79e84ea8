package llm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/ollama"
	"github.com/leat-dev/leat/event"
)

// ollamaRequest is the body of POST /api/chat. Think is missing if the option is unset, because models that
// can't think refuse the value true.
type ollamaRequest struct {
	Model    string          `json:"model"`
	Messages []ollamaMessage `json:"messages"`
	Stream   bool            `json:"stream"`
	Think    any             `json:"think,omitempty"`
	Options  *ollamaOptions  `json:"options,omitempty"`
	Tools    []functionTool  `json:"tools,omitempty"`
}

// ollamaMessage is a message. Images are encoded as base64 by encoding/json. Thinking and ToolCalls belong to the assistant, the tool's
// name and the id of its call to a result.
type ollamaMessage struct {
	Role       event.Role   `json:"role"`
	Content    string       `json:"content"`
	Images     [][]byte     `json:"images,omitempty"`
	Thinking   string       `json:"thinking,omitempty"`
	ToolCalls  []ollamaCall `json:"tool_calls,omitempty"`
	ToolName   string       `json:"tool_name,omitempty"`
	ToolCallID string       `json:"tool_call_id,omitempty"`
}

// ollamaCall is a call. Its arguments are an object.
type ollamaCall struct {
	ID       string         `json:"id,omitempty"`
	Function ollamaFunction `json:"function"`
}

type ollamaFunction struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// ollamaOptions are the options of the model. NumPredict limits the answer in tokens.
type ollamaOptions struct {
	Temperature *float64 `json:"temperature,omitempty"`
	NumPredict  int      `json:"num_predict,omitempty"`
}

// thinks maps the option thinking to the field "think", which is a boolean or a level.
var thinks = map[string]any{"on": true, "off": false, "low": "low", "medium": "medium", "high": "high"}

// ollamaAPI is POST /api/chat.
var ollamaAPI = api{
	title: "Ollama", base: "http://127.0.0.1:11434", env: "OLLAMA_API_KEY",
	dialect: ollama.Dialect,
	path:    func(*config) string { return "/api/chat" },
	auth:    bearer,
	body:    ollamaBody,
	reply:   func() reply { return &ollamaReply{} },
	model: func(c *config) (string, string, any) {
		return http.MethodPost, "/api/show", map[string]string{"model": c.Model}
	},
	list: "/api/tags",
	check: func(c *config) error {
		if _, ok := thinks[c.Thinking]; !ok && c.Thinking != "" {
			return fmt.Errorf("invalid thinking %q: use on, off, low, medium or high", c.Thinking)
		}
		return nil
	},
}

// ollamaBody builds a chat request. The API accepts images but no other files; block texts are joined, since a
// message has one text. The limit of an answer and the temperature are options of the model, which the request
// leaves out if both are unset.
func ollamaBody(a *modelAgent, turns []turn, tools []agent.ClientTool) any {
	r := ollamaRequest{Model: a.cfg.Model, Stream: true, Think: thinks[a.cfg.Thinking], Tools: functionTools(tools)}
	if o := (ollamaOptions{Temperature: a.cfg.Temperature, NumPredict: a.cfg.MaxTokens}); o != (ollamaOptions{}) {
		r.Options = &o
	}
	if a.cfg.System != "" {
		r.Messages = append(r.Messages, ollamaMessage{Role: event.System, Content: a.cfg.System})
	}
	for i := range turns {
		m := ollamaMessage{Role: turns[i].role, Content: turns[i].text()}
		for _, b := range turns[i].blocks {
			if b.isImage() {
				m.Images = append(m.Images, b.data)
			}
		}
		r.Messages = append(r.Messages, m)
	}
	return r
}

// ollamaReply is the message of a response, whose calls are complete.
type ollamaReply struct {
	content, thought growingText
	list             []functionCall
}

func (r *ollamaReply) calls() []functionCall { return r.list }

// add implements [reply].
func (r *ollamaReply) add(f dialect.Frame) error {
	var in struct {
		Message struct {
			Content   json.RawMessage `json:"content"`
			Thinking  json.RawMessage `json:"thinking"`
			ToolCalls []ollamaCall    `json:"tool_calls"`
		} `json:"message"`
	}
	if err := json.Unmarshal(f.Data, &in); err != nil {
		return err
	}
	if err := r.thought.add(in.Message.Thinking); err != nil {
		return err
	}
	for _, c := range in.Message.ToolCalls {
		arguments := string(c.Function.Arguments)
		if arguments == "" || arguments == "null" {
			arguments = "{}"
		}
		r.list = append(r.list, functionCall{c.ID, c.Function.Name, arguments})
	}
	return r.content.add(in.Message.Content)
}

// next implements [reply].
func (r *ollamaReply) next(request any, results []callResult) any {
	q := request.(ollamaRequest)
	m := ollamaMessage{Role: event.Assistant, Content: r.content.String(), Thinking: r.thought.String()}
	messages := []ollamaMessage{{}}
	for _, result := range results {
		m.ToolCalls = append(m.ToolCalls, ollamaCall{result.ID, ollamaFunction{result.Name, result.input()}})
		messages = append(messages, ollamaMessage{Role: roleTool, Content: result.text, ToolName: result.Name, ToolCallID: result.ID})
	}
	messages[0] = m
	q.Messages = slices.Concat(q.Messages, messages)
	return q
}
