// Requests in the form of OpenAI's Responses API.

package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/openairesponses"
	"github.com/leat-dev/leat/event"
)

// responsesRequest is the body of POST /responses. Input has messages and, after approvals and calls, items of other types. Previous
// references a stored response, so that Input only has what is new.
type responsesRequest struct {
	Model           string              `json:"model"`
	Instructions    string              `json:"instructions,omitempty"`
	Input           []any               `json:"input"`
	Previous        string              `json:"previous_response_id,omitempty"`
	Stream          bool                `json:"stream"`
	Background      bool                `json:"background,omitempty"`
	Store           bool                `json:"store"`
	Temperature     *float64            `json:"temperature,omitempty"`
	MaxOutputTokens int                 `json:"max_output_tokens,omitempty"`
	Reasoning       *responsesReasoning `json:"reasoning,omitempty"`
	Tools           []responsesTool     `json:"tools,omitempty"`
	Include         []string            `json:"include,omitempty"`
}

// responsesTool is a function. Strict is false, since the API otherwise refuses schemas with optional arguments.
type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// responsesCall is an input item that repeats a call. It has no id, because the API would require the reasoning before it then.
type responsesCall struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON
}

// responsesOutput is an input item with the result of a call.
type responsesOutput struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output any    `json:"output"`
}

// responsesThought is an input item that repeats an encrypted reasoning.
type responsesThought struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
}

// responsesReasoning sets the effort, and with Summary requests a summary of the reasoning for readers. The reasoning itself is never sent.
type responsesReasoning struct {
	Effort  string `json:"effort"`
	Summary string `json:"summary,omitempty"`
}

// responsesMessage is an input item with a message. Items of other types, such as approvals, have a field type.
type responsesMessage struct {
	Role    event.Role       `json:"role"`
	Content []responsesBlock `json:"content"`
	Phase   string           `json:"phase,omitempty"` // of the model's text before or after calls, which it wants back
}

// responsesBlock is a part of a message. Type is "input_text", "output_text", "input_image" or "input_file".
type responsesBlock struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
	FileName string `json:"filename,omitempty"`
	FileData string `json:"file_data,omitempty"`
}

// responsesAPI is POST /responses.
var responsesAPI = openAI("/responses", openairesponses.Dialect, responsesBody, func() reply { return &responsesReply{} })

// responsesBody builds a Responses request. The API distinguishes the texts of the user (input_text) from those
// of the model (output_text). The system prompt is the field instructions. The provider stores a background
// response, so that it can be followed later; other responses aren't stored.
func responsesBody(a *modelAgent, turns []turn, tools []agent.ClientTool) any {
	// The provider must store a background response, so that it can be followed later. Other responses aren't stored.
	r := responsesRequest{
		Model: a.cfg.Model, Instructions: a.cfg.System, Stream: true, Background: a.cfg.Background, Store: a.cfg.Background,
		Temperature: a.cfg.Temperature, MaxOutputTokens: a.cfg.MaxTokens,
	}
	if a.cfg.Thinking != "" {
		r.Reasoning = &responsesReasoning{Effort: a.cfg.Thinking}
		if a.cfg.Thinking != "none" {
			r.Reasoning.Summary = "auto"
			// After a call, a response that isn't stored continues its reasoning only if the request repeats it.
			if len(tools) > 0 && !r.Store {
				r.Include = []string{"reasoning.encrypted_content"}
			}
		}
	}
	for i := range tools {
		r.Tools = append(r.Tools, responsesTool{Type: "function", Name: tools[i].Name, Description: tools[i].Description, Parameters: parametersOf(&tools[i])})
	}
	for _, t := range turns {
		m := responsesMessage{Role: t.role}
		for _, b := range t.blocks {
			switch {
			case b.mime == "" && t.role == event.Assistant:
				m.Content = append(m.Content, responsesBlock{Type: "output_text", Text: b.text})
			case b.mime == "":
				m.Content = append(m.Content, responsesBlock{Type: "input_text", Text: b.text})
			case b.isImage():
				m.Content = append(m.Content, responsesBlock{Type: "input_image", ImageURL: dataURL(&b)})
			default:
				m.Content = append(m.Content, responsesBlock{Type: "input_file", FileName: b.name, FileData: dataURL(&b)})
			}
		}
		r.Input = append(r.Input, m)
	}
	return r
}

// add adds the items that follow the response with an id. A stored response is referenced, so that only the items after it are sent.
func (r *responsesRequest) add(id string, items []any) {
	if r.Store && r.Previous != id {
		r.Previous, r.Input = id, nil
	}
	// The full slice expression makes append copy: the previous request shares the array.
	r.Input = append(r.Input[:len(r.Input):len(r.Input)], items...)
}

// responsesReply is the output of a response.
type responsesReply struct {
	id       string
	seq      int64 // the last sequence_number; servers repeat events when a response is followed
	list     []functionCall
	items    []any // what a request repeats of a response that isn't stored
	hasItems bool  // the stream has the items one by one
}

// responsesItem is an item of the output.
type responsesItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Content   json.RawMessage `json:"content"`
	Phase     string          `json:"phase"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
}

func (r *responsesReply) calls() []functionCall { return r.list }

// add implements [reply]. Complete items have everything. Some servers send them only in the last event.
func (r *responsesReply) add(f dialect.Frame) error {
	var in struct {
		Type     string         `json:"type"`
		Seq      *int64         `json:"sequence_number"`
		Item     *responsesItem `json:"item"`
		Response *struct {
			ID     string          `json:"id"`
			Output []responsesItem `json:"output"`
		} `json:"response"`
	}
	data := bytes.TrimSpace(f.Data)
	if string(data) == "[DONE]" {
		return nil
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	if in.Seq != nil {
		if *in.Seq < r.seq || *in.Seq == r.seq && r.seq > 0 {
			return nil
		}
		r.seq = *in.Seq
	}
	if in.Response != nil {
		r.id = cmp.Or(r.id, in.Response.ID)
	}
	switch cmp.Or(in.Type, f.Event) {
	case "response.output_item.added":
		r.hasItems = true
	case "response.output_item.done":
		r.hasItems = true
		if in.Item != nil {
			r.item(in.Item)
		}
	case "response.completed", "response.incomplete":
		for i := 0; in.Response != nil && !r.hasItems && i < len(in.Response.Output); i++ {
			r.item(&in.Response.Output[i])
		}
	}
	return nil
}

// item adds a complete item. A reasoning without its encrypted content can't be repeated.
func (r *responsesReply) item(in *responsesItem) {
	switch in.Type {
	case "function_call":
		c := functionCall{ID: in.CallID, Name: in.Name}
		if json.Unmarshal(in.Arguments, &c.Arguments) != nil {
			c.Arguments = string(in.Arguments) // some servers send the object itself
		}
		c.Arguments = cmp.Or(c.Arguments, "{}")
		if slices.ContainsFunc(r.list, func(call functionCall) bool { return call.ID == c.ID && c.ID != "" }) {
			return // of a stream that was resumed
		}
		r.list = append(r.list, c)
		r.items = append(r.items, responsesCall{"function_call", c.ID, c.Name, string(c.input())})
	case "function_call_output": // of a function that the server itself has run
		r.list = slices.DeleteFunc(r.list, func(c functionCall) bool { return c.ID == in.CallID })
		r.items = append(r.items, responsesOutput{in.Type, in.CallID, in.Output})
	case "reasoning":
		if in.Encrypted == "" {
			return
		}
		if len(in.Summary) == 0 || string(in.Summary) == "null" {
			in.Summary = json.RawMessage("[]")
		}
		r.items = append(r.items, responsesThought{"reasoning", in.ID, in.Summary, in.Encrypted})
	case "message":
		m := responsesMessage{Role: event.Assistant, Phase: in.Phase}
		var content []responsesBlock
		if json.Unmarshal(in.Content, &content) != nil {
			return
		}
		for _, b := range content {
			if b.Type == "output_text" && b.Text != "" {
				m.Content = append(m.Content, responsesBlock{Type: b.Type, Text: b.Text})
			}
		}
		if len(m.Content) > 0 {
			r.items = append(r.items, m)
		}
	}
}

// next implements [reply].
func (r *responsesReply) next(request any, results []callResult) any {
	q := request.(responsesRequest)
	var items []any
	if !q.Store {
		items = slices.Clone(r.items)
	}
	for _, result := range results {
		items = append(items, responsesOutput{"function_call_output", result.ID, result.text})
	}
	q.add(r.id, items)
	return q
}
