// Requests in the form of the Chat Completions API, which many providers and local servers have.

package llm

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
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
	MaxTokens           int            `json:"max_tokens,omitempty"`
	MaxCompletionTokens int            `json:"max_completion_tokens,omitempty"`
	ReasoningEffort     string         `json:"reasoning_effort,omitempty"`
	Tools               []functionTool `json:"tools,omitempty"`
}

// chatOptions requests a last frame with the token usage, which a stream has only on request.
type chatOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// chatMessage has a string as its content if it has only text, because some compatible servers don't accept lists. The content of a
// message with calls only is null. Servers that send the reasoning require it back after calls, under the key that they use.
type chatMessage struct {
	Role             event.Role `json:"role"`
	Content          any        `json:"content"`
	Reasoning        string     `json:"reasoning,omitempty"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	ToolCalls        []chatCall `json:"tool_calls,omitempty"`
	ToolCallID       string     `json:"tool_call_id,omitempty"` // of a message with the role tool: the result of a call
}

// chatCall is a call in a message of the assistant. Extra is what compatible servers add, such as the signatures of Gemini.
type chatCall struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Function chatFunction    `json:"function"`
	Extra    json.RawMessage `json:"extra_content,omitempty"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON
}

// roleTool is the role of results in Chat Completions and Ollama.
const roleTool event.Role = "tool"

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
var openAIAPI = openAI("/chat/completions", openaichat.Dialect, chatBody, func() reply { return &chatReply{} })

// openAI returns an API of OpenAI. The two differ only in the path, the format of requests and the dialect of
// streams.
func openAI(path string, d func() dialect.Dialect, body func(*modelAgent, []turn, []agent.ClientTool) any, newReply func() reply) api {
	return api{
		title: titleOpenAI, base: openAIBase, env: "OPENAI_API_KEY", needKey: true, dialect: d,
		path: func(*config) string { return path }, auth: bearer, body: body, reply: newReply, toolName: openAIToolName,
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
func chatBody(a *modelAgent, turns []turn, tools []agent.ClientTool) any {
	r := chatRequest{
		Model: a.cfg.Model, Stream: true, StreamOptions: chatOptions{true}, Temperature: a.cfg.Temperature, ReasoningEffort: a.cfg.Thinking,
		Tools: functionTools(tools),
	}
	if a.name == titleOpenAI {
		r.MaxCompletionTokens = a.cfg.MaxTokens
	} else {
		r.MaxTokens = a.cfg.MaxTokens
	}
	if a.cfg.System != "" {
		r.Messages = append(r.Messages, chatMessage{Role: event.System, Content: a.cfg.System})
	}
	for i := range turns {
		t := &turns[i]
		// Only messages with files need a list of parts.
		if !slices.ContainsFunc(t.blocks, func(b block) bool { return b.mime != "" }) {
			r.Messages = append(r.Messages, chatMessage{Role: t.role, Content: t.text()})
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
		r.Messages = append(r.Messages, chatMessage{Role: t.role, Content: content})
	}
	return r
}

// dataURL returns the file as a data URL.
func dataURL(b *block) string {
	return "data:" + b.mime + ";base64," + base64.StdEncoding.EncodeToString(b.data)
}

// chatReply is the first choice of a response; requests ask for one choice.
type chatReply struct {
	content   growingText
	thought   growingText
	isContent bool // the key of the reasoning is reasoning_content
	list      []*chatReplyCall
	hasEnded  bool
}

// chatReplyCall is a call whose arguments arrive in pieces.
type chatReplyCall struct {
	index     *int // nil if the server sends none
	id, name  string
	arguments growingText
	extra     json.RawMessage
}

// chatDelta is what a chunk adds to a choice.
type chatDelta struct {
	Content          json.RawMessage `json:"content"`
	Reasoning        json.RawMessage `json:"reasoning"`
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	ToolCalls        []chatPiece     `json:"tool_calls"`
}

// chatPiece is a piece of a call.
type chatPiece struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
	Extra json.RawMessage `json:"extra_content"`
}

// add implements [reply].
func (r *chatReply) add(f dialect.Frame) error {
	var in struct {
		Choices []struct {
			Index  int       `json:"index"`
			Delta  chatDelta `json:"delta"`
			Finish string    `json:"finish_reason"`
		} `json:"choices"`
	}
	data := bytes.TrimSpace(f.Data)
	if string(data) == "[DONE]" {
		return nil
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	for i := range in.Choices {
		c := &in.Choices[i]
		if c.Index != 0 || r.hasEnded {
			continue
		}
		if err := r.delta(&c.Delta); err != nil {
			return err
		}
		r.hasEnded = c.Finish != ""
	}
	return nil
}

// delta adds a delta. A server that sends both keys of the reasoning sends the same text in them.
func (r *chatReply) delta(d *chatDelta) error {
	thought := d.ReasoningContent
	if r.isContent = r.isContent || len(thought) > 0 && thought[0] == '"'; !r.isContent {
		thought = d.Reasoning
	}
	if err := r.thought.add(thought); err != nil {
		return err
	}
	if err := r.text(d.Content); err != nil {
		return err
	}
	for i := range d.ToolCalls {
		if err := r.call(&d.ToolCalls[i]); err != nil {
			return err
		}
	}
	return nil
}

// text adds a content: a string, or the list of blocks that Mistral's reasoning models send.
func (r *chatReply) text(content json.RawMessage) error {
	if len(content) == 0 || content[0] != '[' {
		return r.content.add(content)
	}
	var blocks []struct {
		Text json.RawMessage `json:"text"` // absent in a block of reasoning
	}
	if err := json.Unmarshal(content, &blocks); err != nil {
		return err
	}
	for _, b := range blocks {
		if err := r.content.add(b.Text); err != nil {
			return err
		}
	}
	return nil
}

// call adds a piece of a call. As in the decoder, the index decides to which call a piece belongs; without one it is the id, and a piece
// without either continues the last call. A new id with a name begins a new call even at a used index.
func (r *chatReply) call(p *chatPiece) error {
	var c *chatReplyCall
	for _, candidate := range slices.Backward(r.list) {
		sameIndex := p.Index != nil && candidate.index != nil && *p.Index == *candidate.index
		if sameIndex || p.Index == nil && (p.ID == "" && p.Function.Name == "" || p.ID != "" && p.ID == candidate.id) {
			c = candidate
			break
		}
	}
	if c == nil || p.ID != "" && c.id != "" && p.ID != c.id && p.Function.Name != "" {
		c = &chatReplyCall{index: p.Index, id: p.ID, name: p.Function.Name}
		r.list = append(r.list, c)
	}
	if len(p.Extra) > 0 {
		c.extra = p.Extra
	}
	if arguments := p.Function.Arguments; len(arguments) > 0 && arguments[0] == '{' { // some servers send the object itself
		c.arguments.text = append(c.arguments.text, arguments...)
		return nil
	}
	return c.arguments.add(p.Function.Arguments)
}

// calls implements [reply]. A call without an id gets one, because its result must name it.
func (r *chatReply) calls() []functionCall {
	var list []functionCall
	for i, c := range r.list {
		list = append(list, functionCall{cmp.Or(c.id, fmt.Sprintf("call_%d", i+1)), c.name, cmp.Or(c.arguments.String(), "{}")})
	}
	return list
}

// next implements [reply].
func (r *chatReply) next(request any, results []callResult) any {
	q := request.(chatRequest)
	m := chatMessage{Role: event.Assistant}
	if text := r.content.String(); text != "" {
		m.Content = text
	}
	if r.isContent {
		m.ReasoningContent = r.thought.String()
	} else {
		m.Reasoning = r.thought.String()
	}
	messages := []chatMessage{{}}
	for i, result := range results {
		m.ToolCalls = append(m.ToolCalls, chatCall{result.ID, "function", chatFunction{result.Name, string(result.input())}, r.list[i].extra})
		messages = append(messages, chatMessage{Role: roleTool, Content: result.text, ToolCallID: result.ID})
	}
	messages[0] = m
	q.Messages = slices.Concat(q.Messages, messages)
	return q
}
