// The parameters of a request.
//
// Three kinds are told apart. Those that say what to answer and where are read here. Those with which the client would misread the answer, such as
// a JSON schema, are refused. All others tune a model. They are ignored, because agents choose and tune their models themselves.

package responses

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/models"
)

// request is a request for a response.
type request struct {
	settings
	model        string
	previous     string // id of a response
	conversation string // Leat's id
	stream       bool
	before       []gateway.CommandMessage
	last         *gateway.CommandMessage // the new message, unless the request only answers
	replies      []reply
	functions    []agent.ClientTool // that the agent may call
}

// body is the JSON of a request. Parameters that aren't here are ignored: they tune a model, and the agent decides about that.
type body struct {
	Model        string            `json:"model"`
	Input        json.RawMessage   `json:"input"`
	Instructions *string           `json:"instructions"`
	Previous     string            `json:"previous_response_id"`
	Conversation json.RawMessage   `json:"conversation"`
	Stream       bool              `json:"stream"`
	Background   bool              `json:"background"`
	Store        *bool             `json:"store"`
	Metadata     map[string]string `json:"metadata"`
	Tools        []json.RawMessage `json:"tools"`
	ToolChoice   json.RawMessage   `json:"tool_choice"`
	Prompt       json.RawMessage   `json:"prompt"`
	TopLogprobs  int               `json:"top_logprobs"`
	Include      []string          `json:"include"`
	Text         struct {
		Format struct {
			Type string `json:"type"`
		} `json:"format"`
	} `json:"text"`
}

// parse parses and checks a request.
func parse(r *http.Request) (*request, error) {
	var b body
	if err := server.Decode(r, &b); err != nil {
		return nil, err
	}
	if err := b.check(); err != nil {
		return nil, err
	}
	rq := &request{
		settings: settings{Background: b.Background, Instructions: b.Instructions, Metadata: b.Metadata, Tools: b.Tools, IsTemporary: b.Store != nil && !*b.Store},
		model:    b.Model, previous: b.Previous, stream: b.Stream,
	}
	if b.Previous != "" {
		rq.Previous = &b.Previous
	}
	// The header names a conversation only if the body doesn't: a client that sets it once for all requests may still continue a response.
	var err error
	if rq.conversation, err = conversationOf(b.Conversation); err != nil {
		return nil, err
	}
	if id := r.Header.Get(headerConversation); rq.conversation == "" && b.Previous == "" {
		rq.conversation = id
	}
	switch {
	case rq.conversation != "" && b.Previous != "":
		return nil, server.Invalid("previous_response_id: can't be used together with conversation")
	case rq.IsTemporary && rq.Background:
		return nil, server.Invalid("background: needs store to be true, because the response is read later")
	}
	if rq.functions, err = b.functions(); err != nil {
		return nil, err
	}
	items, err := parseItems(b.Input)
	if err != nil {
		return nil, err
	}
	return rq, rq.setInput(items)
}

// check refuses parameters with which the client would misread the answer.
func (b *body) check() error {
	switch f := b.Text.Format.Type; {
	case f != "" && f != "text":
		return unsupported("text.format: unsupported %q; use text", f)
	case !isNull(b.Prompt):
		return unsupported("prompt: agents have no stored prompts; send the input itself")
	case b.TopLogprobs > 0:
		return unsupported("top_logprobs: not supported")
	}
	for _, name := range b.Include {
		if name == "message.output_text.logprobs" {
			return unsupported("include: unsupported %q", name)
		}
	}
	if c := string(b.ToolChoice); !isNull(b.ToolChoice) && c != `"auto"` && c != `"none"` {
		return unsupported("tool_choice: unsupported %s; the agent decides which tools it uses", c)
	}
	return nil
}

// functions returns the functions that the client offers to the agent. With the choice none it offers them for calls of the history alone.
func (b *body) functions() (tools []agent.ClientTool, err error) {
	for _, raw := range b.Tools {
		var tool struct {
			Type string `json:"type"`
			agent.ClientTool
		}
		if err := server.Unmarshal(raw, &tool, false); err != nil {
			return nil, err
		}
		if tool.Type != "function" {
			return nil, server.Errorf(http.StatusBadRequest, models.ReasonTools, "tools: unsupported type %q; agents have their own tools, and know only functions of the client", tool.Type)
		}
		tools = append(tools, tool.ClientTool)
	}
	if string(b.ToolChoice) == `"none"` {
		return nil, nil
	}
	return tools, nil
}

// isNull reports whether a value is absent.
func isNull(v json.RawMessage) bool { return len(v) == 0 || bytes.Equal(v, []byte("null")) }

// conversationOf returns Leat's id of a conversation, which clients send as a string or an object.
func conversationOf(v json.RawMessage) (string, error) {
	if isNull(v) {
		return "", nil
	}
	var id string
	if err := json.Unmarshal(v, &id); err != nil {
		var o conversationRef
		if err := server.Unmarshal(v, &o, false); err != nil {
			return "", server.Invalid("conversation: must be an id, or an object with an id")
		}
		id = o.ID
	}
	if id = conversationID(id); id == "" {
		return "", server.Invalid("conversation: the id is empty")
	}
	return id, nil
}
