// Requests in the form of Anthropic's Messages API.

package llm

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/dialect/anthropic"
	"github.com/leat-dev/leat/event"
)

const (
	// anthropicVersion is the version of the API that compatible servers support too.
	anthropicVersion = "2023-06-01"
	// anthropicTokens limits an answer if the options set no limit. This API requires one.
	anthropicTokens = 8192
	// minThinking is the smallest budget that the API accepts.
	minThinking = 1024
)

// anthropicRequest is the body of POST /v1/messages. MaxTokens is required and includes the thinking.
// Temperature and Thinking exclude each other, which the kind checks when it is configured.
type anthropicRequest struct {
	Model       string             `json:"model"`
	MaxTokens   int                `json:"max_tokens"`
	Stream      bool               `json:"stream"`
	System      string             `json:"system,omitempty"`
	Messages    []anthropicMessage `json:"messages"`
	Temperature *float64           `json:"temperature,omitempty"`
	Thinking    *anthropicThinking `json:"thinking,omitempty"`
}

// anthropicThinking is "enabled" with a budget, "adaptive" or "disabled".
type anthropicThinking struct {
	Type   string `json:"type"`
	Budget int    `json:"budget_tokens,omitempty"`
}

// anthropicMessage is a message of the user or the assistant. The system prompt is a field of the request instead.
type anthropicMessage struct {
	Role    event.Role       `json:"role"`
	Content []anthropicBlock `json:"content"`
}

// anthropicBlock is a content block. Type is "text", "image" or "document"; the last two have a Source.
type anthropicBlock struct {
	Type   string           `json:"type"`
	Text   string           `json:"text,omitempty"`
	Source *anthropicSource `json:"source,omitempty"`
	Title  string           `json:"title,omitempty"`
}

// anthropicSource is the data of a file, in base64.
type anthropicSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// anthropicAPI is POST /v1/messages.
var anthropicAPI = api{
	title: "Anthropic", base: "https://api.anthropic.com", env: "ANTHROPIC_API_KEY", needKey: true,
	dialect: anthropic.Dialect,
	path:    func(*config) string { return "/v1/messages" },
	auth:    func(h http.Header, key string) { h.Set("X-Api-Key", key) },
	headers: map[string]string{"Anthropic-Version": anthropicVersion},
	body:    anthropicBody,
	model: func(c *config) (string, string, any) {
		return http.MethodGet, "/v1/models/" + url.PathEscape(c.Model), nil
	},
	list:  "/v1/models?limit=200",
	reads: pdf,
	check: func(c *config) error {
		// The path of a call contains the version. Addresses are often written with it too, like OpenAI's.
		c.BaseURL = strings.TrimSuffix(strings.TrimRight(c.BaseURL, "/"), "/v1")
		budget, err := anthropicBudget(c)
		switch {
		case err != nil:
			return err
		case budget > 0 && c.MaxTokens > 0 && c.MaxTokens <= budget:
			return fmt.Errorf("max_tokens is %d, but must exceed the %d tokens of thinking, which it includes", c.MaxTokens, budget)
		case c.Thinking != "" && c.Thinking != "off" && c.Temperature != nil:
			return fmt.Errorf("temperature and thinking can't be combined")
		}
		return nil
	},
}

// anthropicBudget returns the number of tokens that the model may think, or 0 if the option doesn't set a number.
func anthropicBudget(c *config) (int, error) {
	switch c.Thinking {
	case "", "off", "adaptive":
		return 0, nil
	}
	n, err := strconv.Atoi(c.Thinking)
	if err != nil || n < minThinking {
		return 0, fmt.Errorf("invalid thinking %q: use a number of tokens (at least %d), adaptive or off", c.Thinking, minThinking)
	}
	return n, nil
}

// anthropicBody builds a Messages request. max_tokens includes the thinking, so the default answer length is
// added to the budget.
//
// Every block that isn't a text is sent as base64, because the API can't fetch the gateway's files: images as
// "image", PDFs as "document" with their name as the title.
func anthropicBody(a *modelAgent, turns []turn) any {
	r := anthropicRequest{Model: a.cfg.Model, MaxTokens: a.cfg.MaxTokens, Stream: true, System: a.cfg.System, Temperature: a.cfg.Temperature}
	budget, _ := anthropicBudget(&a.cfg) // check has accepted it
	r.MaxTokens = cmp.Or(r.MaxTokens, budget+anthropicTokens)
	switch {
	case budget > 0:
		r.Thinking = &anthropicThinking{Type: "enabled", Budget: budget}
	case a.cfg.Thinking == "adaptive":
		r.Thinking = &anthropicThinking{Type: "adaptive"}
	case a.cfg.Thinking == "off":
		r.Thinking = &anthropicThinking{Type: "disabled"}
	}
	for _, t := range turns {
		m := anthropicMessage{Role: t.role}
		for _, b := range t.blocks {
			switch {
			case b.mime == "":
				m.Content = append(m.Content, anthropicBlock{Type: "text", Text: b.text})
			default:
				c := anthropicBlock{Type: "image", Source: &anthropicSource{Type: "base64", MediaType: b.mime, Data: base64.StdEncoding.EncodeToString(b.data)}}
				if !b.isImage() {
					c.Type, c.Title = "document", b.name
				}
				m.Content = append(m.Content, c)
			}
		}
		r.Messages = append(r.Messages, m)
	}
	return r
}
