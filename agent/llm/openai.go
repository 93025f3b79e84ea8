// Requests in the form of the Chat Completions API, which many providers and local servers have.

package llm

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/openaichat"
	"github.com/leat-dev/leat/event"
)

const (
	titleOpenAI = "OpenAI"
	openAIBase  = "https://api.openai.com/v1"
)

// chatRequest is the body of POST /chat/completions.
type chatRequest struct {
	Model         string        `json:"model"`
	Messages      []chatMessage `json:"messages"`
	Stream        bool          `json:"stream"`
	StreamOptions chatOptions   `json:"stream_options"`
	Temperature   *float64      `json:"temperature,omitempty"`
	// OpenAI's limit is max_completion_tokens, which includes reasoning. Compatible servers often support only the older max_tokens.
	MaxTokens           int    `json:"max_tokens,omitempty"`
	MaxCompletionTokens int    `json:"max_completion_tokens,omitempty"`
	ReasoningEffort     string `json:"reasoning_effort,omitempty"`
}

// chatOptions requests a last frame with the token usage, which a stream has only on request.
type chatOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// chatMessage has a string as its content if it has only text, because some compatible servers don't accept lists.
type chatMessage struct {
	Role    event.Role `json:"role"`
	Content any        `json:"content"`
}

// chatBlock is a part of a message: "text", "image_url" or "file". Images and files are data URLs.
type chatBlock struct {
	Type  string     `json:"type"`
	Text  string     `json:"text,omitempty"`
	Image *chatImage `json:"image_url,omitempty"`
	File  *chatFile  `json:"file,omitempty"`
}

// chatImage is an image of a message; URL is a data URL.
type chatImage struct {
	URL string `json:"url"`
}

// chatFile is a PDF of a message; Data is a data URL.
type chatFile struct {
	Name string `json:"filename"`
	Data string `json:"file_data"`
}

// openAIAPI is POST /chat/completions, which many servers imitate.
var openAIAPI = openAI("/chat/completions", openaichat.Dialect, chatBody)

// openAI returns an API of OpenAI. The two differ only in the path, the format of requests and the dialect of
// streams.
func openAI(path string, d func() dialect.Dialect, body func(*modelAgent, []turn) any) api {
	return api{
		title: titleOpenAI, base: openAIBase, env: "OPENAI_API_KEY", needKey: true, dialect: d,
		path: func(*config) string { return path }, auth: bearer, body: body,
		model: listModels, isList: true, list: "/models",
		reads: pdf, check: checkEffort,
	}
}

// bearer sets the API key as most services expect it.
func bearer(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }

// listModels requests the whole list of models, because compatible servers often lack the endpoint for one model.
func listModels(*config) (string, string, any) { return http.MethodGet, "/models", nil }

// efforts are OpenAI's levels of reasoning effort.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh"}

// checkEffort refuses unknown levels early. A server would refuse them only in the first turn.
func checkEffort(c *config) error {
	if c.Thinking != "" && !slices.Contains(efforts, c.Thinking) {
		return fmt.Errorf("invalid thinking %q: use %s", c.Thinking, strings.Join(efforts, ", "))
	}
	return nil
}

// chatBody builds a Chat Completions request. The system prompt is the first message. The limit of an answer is
// sent under the name that the server knows: OpenAI's reasoning models reject max_tokens, and many compatible
// servers ignore max_completion_tokens.
func chatBody(a *modelAgent, turns []turn) any {
	r := chatRequest{Model: a.cfg.Model, Stream: true, StreamOptions: chatOptions{true}, Temperature: a.cfg.Temperature, ReasoningEffort: a.cfg.Thinking}
	if a.name == titleOpenAI {
		r.MaxCompletionTokens = a.cfg.MaxTokens
	} else {
		r.MaxTokens = a.cfg.MaxTokens
	}
	if a.cfg.System != "" {
		r.Messages = append(r.Messages, chatMessage{event.System, a.cfg.System})
	}
	for i := range turns {
		t := &turns[i]
		// Only messages with files need a list of parts.
		if !slices.ContainsFunc(t.blocks, func(b block) bool { return b.mime != "" }) {
			r.Messages = append(r.Messages, chatMessage{t.role, t.text()})
			continue
		}
		var content []chatBlock
		for _, b := range t.blocks {
			switch {
			case b.mime == "":
				content = append(content, chatBlock{Type: "text", Text: b.text})
			case b.isImage():
				content = append(content, chatBlock{Type: "image_url", Image: &chatImage{dataURL(&b)}})
			default:
				content = append(content, chatBlock{Type: "file", File: &chatFile{b.name, dataURL(&b)}})
			}
		}
		r.Messages = append(r.Messages, chatMessage{t.role, content})
	}
	return r
}

// dataURL returns the file as a data URL.
func dataURL(b *block) string {
	return "data:" + b.mime + ";base64," + base64.StdEncoding.EncodeToString(b.data)
}
