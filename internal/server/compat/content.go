// The messages of both APIs as one message of Leat with its files.

package compat

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/models"
)

// apiMessage is a message of either API.
type apiMessage struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
	// Only in OpenAI's: a refusal, and tool calls.
	Refusal   string            `json:"refusal"`
	ToolCalls []json.RawMessage `json:"tool_calls"`
}

// content is a text or a list of blocks.
type content []block

// block is a content block of either API. Type determines which fields are used.
type block struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
	Source  struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`
	ImageURL struct {
		URL string `json:"url"`
	} `json:"image_url"`
}

// UnmarshalJSON implements [json.Unmarshaler].
//
// A string becomes one text block, so the rest of the package sees only blocks. A null is no content.
func (c *content) UnmarshalJSON(b []byte) error {
	var s *string
	if err := json.Unmarshal(b, &s); err == nil {
		if s != nil {
			*c = content{{Type: "text", Text: *s}}
		}
		return nil
	}
	var blocks []block
	if err := json.Unmarshal(b, &blocks); err != nil {
		return err
	}
	*c = blocks
	return nil
}

// reader converts the messages of a request.
type reader struct {
	source   string
	pictures models.Pictures
}

var roles = map[string]event.Role{
	"user": event.User, "assistant": event.Assistant, "system": event.System, "developer": event.System,
}

// conversation converts a system prompt and the messages after it. The last message must be the user's, and becomes the new
// message. Empty messages are omitted.
//
// The earlier messages are stored only if the conversation is new; the gateway then has the history that
// the client has. An existing conversation has its own history, which is authoritative.
func (rd *reader) conversation(rq *request, system content, messages []apiMessage) error {
	if len(system) > 0 {
		messages = append([]apiMessage{{Role: "system", Content: system}}, messages...)
	}
	for i, m := range messages {
		message, err := rd.message(m)
		if err != nil {
			return err
		}
		if i == len(messages)-1 && message.Role == event.User && !empty(message) {
			message.Role = "" // the role of a sent message is implied
			rq.last = message
			return nil
		}
		if !empty(message) {
			rq.before = append(rq.before, message)
		}
	}
	return server.Invalid("messages: the last message must be a user message with content")
}

func empty(m gateway.CommandMessage) bool { return m.Text == "" && len(m.Parts) == 0 }

// Blocks of both APIs are accepted in either, because some clients mix them. Texts are joined by blank
// lines. Earlier thinking is dropped, and unknown blocks are refused rather than dropped, so that the
// agent never answers a message of which a part is missing.
func (rd *reader) message(m apiMessage) (gateway.CommandMessage, error) {
	message := gateway.CommandMessage{Source: rd.source}
	role, ok := roles[m.Role]
	switch {
	case m.Role == "tool", m.Role == "function", len(m.ToolCalls) > 0:
		return message, noTools("messages: calls and results of client tools")
	case !ok:
		return message, server.Invalid("messages: unknown role %q", m.Role)
	}
	message.Role = role
	var texts []string
	for _, b := range m.Content {
		switch b.Type {
		case "text", "input_text", "output_text":
			texts = append(texts, b.Text)
		case "refusal":
			texts = append(texts, b.Refusal)
		case "thinking", "redacted_thinking":
			// part of an earlier answer, and not for the agent
		case "image":
			if b.Source.Type != "base64" {
				return message, server.Invalid("messages: pictures have to be in the request, as base64")
			}
			if err := rd.pictures.Add(&message, b.Source.MediaType, b.Source.Data); err != nil {
				return message, err
			}
		case "image_url":
			if err := rd.pictures.AddURL(&message, b.ImageURL.URL); err != nil {
				return message, err
			}
		case "tool_use", "tool_result", "server_tool_use":
			return message, noTools("messages: a block of type " + b.Type)
		default:
			return message, server.Invalid("messages: a block of type %q can't be read here", b.Type)
		}
	}
	if m.Refusal != "" {
		texts = append(texts, m.Refusal)
	}
	message.Text = strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), event.JoinBlank)
	return message, nil
}

// noTools refuses a field that offers or uses tools of the client.
func noTools(field string) error {
	return server.Errorf(http.StatusBadRequest, models.ReasonTools, "%s: the agents here run their own tools and take none from the client", field)
}

// keyOf is the explicit key of a request: the first of those that is given.
func keyOf(user string, metadata map[string]json.RawMessage) (string, error) {
	keys := []string{user}
	for _, name := range []string{"conversation_id", "conversationId", "user_id"} {
		var v string
		if raw, ok := metadata[name]; ok && json.Unmarshal(raw, &v) == nil {
			keys = append(keys, v)
		}
	}
	for _, k := range keys {
		switch {
		case len(k) > maxKey:
			return "", server.Invalid("a key of %d bytes, at most %d", len(k), maxKey)
		case k != "":
			return k, nil
		}
	}
	return "", nil
}
