package llm

import (
	"fmt"
	"net/http"

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
}

// ollamaMessage is a message. Images are encoded as base64 by encoding/json.
type ollamaMessage struct {
	Role    event.Role `json:"role"`
	Content string     `json:"content"`
	Images  [][]byte   `json:"images,omitempty"`
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
func ollamaBody(a *modelAgent, turns []turn) any {
	r := ollamaRequest{Model: a.cfg.Model, Stream: true, Think: thinks[a.cfg.Thinking]}
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
