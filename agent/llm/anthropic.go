// Requests in the form of Anthropic's Messages API.

package llm

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
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
	Tools       []anthropicTool    `json:"tools,omitempty"`
}

// anthropicTool is a tool of the client.
type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// anthropicThinking is "enabled" with a budget, "adaptive" or "disabled".
type anthropicThinking struct {
	Type   string `json:"type"`
	Budget int    `json:"budget_tokens,omitempty"`
}

// anthropicMessage is a message of the user or the assistant. The system prompt is a field of the request instead.
// Its content has an anthropicBlock, an anthropicResult or a block of the model as it was.
type anthropicMessage struct {
	Role    event.Role `json:"role"`
	Content []any      `json:"content"`
}

// anthropicResult is a block with the result of a call.
type anthropicResult struct {
	Type      string `json:"type"`
	ToolUseID string `json:"tool_use_id"`
	Content   string `json:"content"`
	IsError   bool   `json:"is_error,omitempty"`
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
	body:    anthropicBody, reply: func() reply { return &anthropicReply{} }, toolName: anthropicToolName,
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
func anthropicBody(a *modelAgent, turns []turn, tools []agent.ClientTool) any {
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
	for i := range tools {
		r.Tools = append(r.Tools, anthropicTool{tools[i].Name, tools[i].Description, parametersOf(&tools[i])})
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

// anthropicReply is the message of a response. The API requires its blocks back as they were, with the signatures of the thinking.
type anthropicReply struct {
	id     string
	blocks []*anthropicPart
}

// anthropicPart is a block of the model: its start, and the texts that grow by deltas, by their keys in the block.
type anthropicPart struct {
	index    int
	fields   map[string]json.RawMessage
	texts    map[string]*growingText
	kind, id string
	name     string
}

// anthropicDeltas maps the types of deltas to their text and its key in the block. Citations aren't sent back.
var anthropicDeltas = map[string]struct{ from, to string }{
	"text_delta": {"text", "text"}, "thinking_delta": {"thinking", "thinking"}, "signature_delta": {"signature", "signature"},
	"input_json_delta": {"partial_json", "input"},
}

// add implements [reply].
func (r *anthropicReply) add(f dialect.Frame) error {
	var in struct {
		Type    string `json:"type"`
		Index   int    `json:"index"`
		Message struct {
			ID string `json:"id"`
		} `json:"message"`
		Block map[string]json.RawMessage `json:"content_block"`
		Delta map[string]json.RawMessage `json:"delta"`
	}
	if err := json.Unmarshal(f.Data, &in); err != nil {
		return err
	}
	switch cmp.Or(in.Type, f.Event) {
	case "message_start":
		if in.Message.ID != r.id { // an upstream that was restarted in the middle of a message sends another one
			r.id, r.blocks = in.Message.ID, nil
		}
	case "content_block_start":
		b := &anthropicPart{index: in.Index, fields: in.Block, texts: map[string]*growingText{}}
		for key, to := range map[string]*string{"type": &b.kind, "id": &b.id, "name": &b.name} {
			if raw := in.Block[key]; raw != nil {
				if err := json.Unmarshal(raw, to); err != nil {
					return err
				}
			}
		}
		delete(b.fields, "citations")
		r.blocks = append(r.blocks, b)
	case "content_block_delta":
		var kind string
		if err := json.Unmarshal(in.Delta["type"], &kind); err != nil {
			return err
		}
		if d, ok := anthropicDeltas[kind]; ok {
			return r.grow(in.Index, d.to, in.Delta[d.from])
		}
	}
	return nil
}

// grow appends to a text of the newest block with an index. The first delta of a text continues what the start of its block has, except
// for the input of a tool, which deltas repeat from the beginning.
func (r *anthropicReply) grow(index int, key string, token json.RawMessage) error {
	for _, b := range slices.Backward(r.blocks) {
		if b.index != index {
			continue
		}
		text := b.texts[key]
		if text == nil {
			text = &growingText{}
			b.texts[key] = text
			if key != "input" {
				if err := text.add(b.fields[key]); err != nil {
					return err
				}
			}
		}
		return text.add(token)
	}
	return nil
}

// input returns the input of a tool as the model wrote it.
func (b *anthropicPart) input() string {
	if text := b.texts["input"]; text != nil && len(text.text) > 0 {
		return text.String()
	}
	if input := string(b.fields["input"]); input != "null" {
		return cmp.Or(input, "{}")
	}
	return "{}"
}

// calls implements [reply].
func (r *anthropicReply) calls() []functionCall {
	var list []functionCall
	for _, b := range r.blocks {
		if b.kind == "tool_use" {
			list = append(list, functionCall{b.id, b.name, b.input()})
		}
	}
	return list
}

// block returns a block for a request, or nil for an empty text, which the API refuses.
func (b *anthropicPart) block() any {
	fields := maps.Clone(b.fields)
	for key, text := range b.texts {
		if key != "input" {
			fields[key] = jsonString(text.String())
		}
	}
	if strings.HasSuffix(b.kind, "tool_use") {
		c := functionCall{Arguments: b.input()}
		fields["input"] = c.input()
	}
	var text string
	if b.kind == "text" && json.Unmarshal(fields["text"], &text) == nil && strings.TrimSpace(text) == "" {
		return nil
	}
	return fields
}

// next implements [reply].
func (r *anthropicReply) next(request any, results []callResult) any {
	q := request.(anthropicRequest)
	response, answer := anthropicMessage{Role: event.Assistant}, anthropicMessage{Role: event.User}
	for _, b := range r.blocks {
		if block := b.block(); block != nil {
			response.Content = append(response.Content, block)
		}
	}
	for _, result := range results {
		answer.Content = append(answer.Content, anthropicResult{"tool_result", result.ID, result.text, result.hasError})
	}
	q.Messages = slices.Concat(q.Messages, []anthropicMessage{response, answer})
	return q
}
