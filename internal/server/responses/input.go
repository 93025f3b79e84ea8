// The items of an input, and of a conversation that a client creates.
//
// Only messages become messages of Leat. The other items of earlier outputs, which clients send back, are in the conversation already, or belong
// to a history that only the client has.

package responses

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/internal/server/internal/models"
)

// inputItem is an item of an input. Its type decides which fields are used.
type inputItem struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Role     string          `json:"role"`
	Content  json.RawMessage `json:"content"`
	CallID   string          `json:"call_id"`
	Output   json.RawMessage `json:"output"`
	Approval string          `json:"approval_request_id"`
	Approve  bool            `json:"approve"`
	Reason   string          `json:"reason"`
}

// inputPart is a piece of a message, or of an output.
type inputPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Refusal  string `json:"refusal"`
	ImageURL string `json:"image_url"`
}

// reply is an answer to a request of a turn.
type reply struct {
	turn, request string
	output        string // of a tool
	decision      event.Decision
}

// command returns the answer as a command, without its turn and request.
func (y *reply) command(r *event.Request) gateway.Command {
	if y.decision != "" {
		return gateway.Command{Decision: y.decision, Text: y.output}
	}
	return chats.OutputAnswer(r, y.output)
}

// parseItems returns the items of an input, which may be a text.
func parseItems(v json.RawMessage) (items []inputItem, err error) {
	if isNull(v) {
		return nil, server.Invalid("input: missing")
	}
	var text string
	if json.Unmarshal(v, &text) == nil {
		return []inputItem{{Type: "message", Role: "user", Content: v}}, nil
	}
	if err := server.Unmarshal(v, &items, false); err != nil {
		return nil, server.Invalid("input: must be a text or a list of items")
	}
	return items, nil
}

// setInput takes the items of an input: the last message, those before it, and answers to requests.
func (rq *request) setInput(items []inputItem) error {
	var pictures models.Pictures
	for i := range items {
		entry := &items[i]
		isReply, err := rq.readReply(entry)
		if err != nil {
			return err
		}
		if isReply {
			rq.last = nil
			continue
		}
		message, isMessage, err := entry.message(&pictures)
		if err != nil {
			return err
		}
		if !isMessage {
			continue
		}
		rq.before = append(rq.before, *message)
		rq.last = nil
		if message.Role == event.User {
			rq.last = message
		}
	}
	// The last message is sent, and those before it are the history of a new conversation. A conversation that exists has its own history, so
	// they don't count there.
	switch {
	case rq.last != nil:
		rq.before = rq.before[:len(rq.before)-1]
		last := *rq.last
		last.Role = "" // the role of a sent message is implied
		rq.last = &last
	case len(rq.replies) == 0:
		return server.Invalid("input: the last item must be a user message with content, or the output of a tool")
	}
	return nil
}

// readReply takes an item that answers a request, and reports whether it is one.
func (rq *request) readReply(entry *inputItem) (bool, error) {
	var y reply
	var err error
	switch entry.Type {
	case "function_call_output":
		if y.turn, y.request, err = parseRequest(prefixCall, entry.CallID); err == nil {
			y.output, err = outputOf(entry.Output)
		}
	case "mcp_approval_response":
		y.turn, y.request, err = parseRequest(prefixApproval, entry.Approval)
		y.decision, y.output = event.Deny, entry.Reason
		if entry.Approve {
			y.decision = event.Approve
		}
	default:
		return false, nil
	}
	rq.replies = append(rq.replies, y)
	return true, err
}

// outputOf returns the output of a tool, which may be a text or a list of texts.
func outputOf(v json.RawMessage) (string, error) {
	parts, err := partsOf(v)
	if err != nil {
		return "", server.Invalid("input: the output of a tool must be a text or a list of texts")
	}
	var texts []string
	for _, p := range parts {
		if p.Type != "input_text" && p.Type != "output_text" && p.Type != "text" {
			return "", unsupported("input: the output of a tool can't contain %q", p.Type)
		}
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, event.JoinBlank), nil
}

// partsOf returns the pieces of a content, which may be a text.
func partsOf(v json.RawMessage) (parts []inputPart, err error) {
	if isNull(v) {
		return nil, nil
	}
	var text string
	if json.Unmarshal(v, &text) == nil {
		return []inputPart{{Type: "input_text", Text: text}}, nil
	}
	return parts, json.Unmarshal(v, &parts)
}

// roles maps the roles of messages. A developer is what newer clients call the system.
var roles = map[string]event.Role{"user": event.User, "assistant": event.Assistant, "system": event.System, "developer": event.System}

// message returns an item as a message. It returns false for items of earlier outputs that aren't messages, which clients send back when they
// keep the history themselves, and for messages without content.
func (entry *inputItem) message(pictures *models.Pictures) (m *gateway.CommandMessage, isMessage bool, err error) {
	switch entry.Type {
	case "", "message":
	case "reasoning", "function_call", "mcp_call", "mcp_list_tools", "mcp_approval_request":
		return nil, false, nil
	default:
		return nil, false, unsupported("input: an item of type %q can't be read here", entry.Type)
	}
	role, isKnown := roles[entry.Role]
	if !isKnown {
		return nil, false, server.Invalid("input: unknown role %q", entry.Role)
	}
	m = &gateway.CommandMessage{ID: strings.TrimPrefix(entry.ID, prefixMessage), Role: role, Source: source}
	// Users' messages keep the ids that the client gave them. Those of an agent are ids of items, of which a message may have several.
	if role == event.Assistant {
		m.ID = "" // the id of an item, and of no message
	}
	parts, err := partsOf(entry.Content)
	if err != nil {
		return nil, false, server.Invalid("input: the content of a message must be a text or a list of parts")
	}
	var texts []string
	for _, p := range parts {
		switch p.Type {
		case "input_text", "output_text", "text":
			texts = append(texts, p.Text)
		case "refusal":
			texts = append(texts, p.Refusal)
		case "input_image":
			if p.ImageURL == "" {
				return nil, false, unsupported("input: pictures have to be in the request, as a data URL in image_url")
			}
			if err := pictures.AddURL(m, p.ImageURL); err != nil {
				return nil, false, err
			}
		default:
			return nil, false, server.Errorf(http.StatusBadRequest, reasonUnsupported, "input: a part of type %q can't be read here", p.Type)
		}
	}
	m.Text = strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), event.JoinBlank)
	return m, m.Text != "" || len(m.Parts) > 0, nil
}
