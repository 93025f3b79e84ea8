// Messages of LangChain, in the form in which LangGraph sends and gets them.

package langgraph

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/transcript"
)

// Types of messages.
const (
	typeHuman  = "human"
	typeAI     = "ai"
	typeTool   = "tool"
	typeSystem = "system"
)

// message is a message of LangChain. Type determines which fields are used.
type message struct {
	Type       string          `json:"type"`
	ID         string          `json:"id"`
	Content    json.RawMessage `json:"content"` // a text, or a list of blocks
	Name       string          `json:"name,omitempty"`
	ToolCalls  []toolCall      `json:"tool_calls,omitempty"`
	ToolCallID string          `json:"tool_call_id,omitempty"`
	Status     string          `json:"status,omitempty"` // of a tool's result: success or error
	Usage      *usage          `json:"usage_metadata,omitempty"`
	Kwargs     *kwargs         `json:"additional_kwargs,omitempty"`
}

// toolCall is a call in a message of type ai.
type toolCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"` // an object
	Type string          `json:"type"` // tool_call
}

// usage is how many tokens a turn has used.
type usage struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
	Total  int64 `json:"total_tokens"`
}

// kwargs marks messages that LangChain has no type for. Kind is status, and State running or done.
type kwargs struct {
	Kind  string `json:"leat_kind,omitempty"`
	State string `json:"leat_state,omitempty"`
}

// block is a block of a message's content. Type determines which fields are used.
type block struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Reasoning *string         `json:"reasoning,omitempty"`
	ID        string          `json:"id,omitempty"` // of a call
	Name      string          `json:"name,omitempty"`
	Args      json.RawMessage `json:"args,omitempty"` // an object of a call, or a text of an unfinished one
	URL       string          `json:"url,omitempty"`
	MIME      string          `json:"mime_type,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"` // of the type non_standard
}

// group is what becomes one message of type ai: the parts of a message of Leat that a model would have written at once.
type group struct {
	id    string
	parts []*transcript.Part
}

// groupsOf returns the groups of an agent's message in their order.
//
// A group has any number of reasonings, then at most one text, then calls. Every other part is a separate group. The rule depends only on the
// kinds of parts before, so a part never changes its group. The first group has the id of the message, and each other one also has that of its first
// part.
func groupsOf(m *transcript.Message) (groups []group) {
	for i, p := range m.Parts {
		if i == 0 || !continues(m.Parts[i-1].Kind, p.Kind) {
			groups = append(groups, group{id: groupID(m.ID, p.ID, i == 0)})
		}
		last := &groups[len(groups)-1]
		last.parts = append(last.parts, p)
	}
	return groups
}

// groupID returns the id of the message for a group that begins with a part.
func groupID(message, part string, isFirst bool) string {
	if isFirst {
		return message
	}
	return message + "." + part
}

// continues reports whether a part of a kind belongs to the group of the part before it.
func continues(before, kind event.PartKind) bool {
	rank := map[event.PartKind]int{event.KindReasoning: 1, event.KindText: 2, event.KindTool: 3}
	return rank[before] != 0 && rank[kind] >= rank[before] && !(kind == event.KindText && before == event.KindText)
}

// messageOf returns a group as a message.
func (g *group) message() message {
	m := message{Type: typeAI, ID: g.id}
	var blocks []block
	for _, p := range g.parts {
		switch p.Kind {
		case event.KindTool:
			m.ToolCalls = append(m.ToolCalls, toolCall{ID: callID(g.messageID(), p), Name: chats.ToolName(p), Args: argsOf(p), Type: "tool_call"})
		case event.KindStatus:
			m.Kwargs = &kwargs{"status", statusState(p)}
			blocks = append(blocks, textBlock(p))
		default:
			if b, ok := blockOf(p); ok {
				blocks = append(blocks, b)
			}
		}
	}
	switch {
	case len(blocks) == 0:
		m.Content = jsonOf("")
	case len(blocks) == 1 && blocks[0].Text != nil:
		m.Content = jsonOf(*blocks[0].Text) // the form that every client reads
	default:
		m.Content = jsonOf(blocks)
	}
	return m
}

// messageID returns the id of Leat's message. Ids of messages are UUIDs, so they have no dot.
func (g *group) messageID() string {
	id, _, _ := strings.Cut(g.id, ".")
	return id
}

// isEmpty reports whether a group has nothing to show yet.
func (g *group) isEmpty() bool {
	for _, p := range g.parts {
		if p.Kind == event.KindTool {
			return false
		}
		if b, ok := blockOf(p); ok && (b.Text == nil || *b.Text != "") && (b.Reasoning == nil || *b.Reasoning != "") {
			return false
		}
	}
	return true
}

// isGrowing reports whether a group may still change.
func (g *group) isGrowing() bool {
	for _, p := range g.parts {
		if !p.Final && (p.Kind != event.KindTool || !chats.IsComplete(p)) {
			return true
		}
	}
	return false
}

// blockOf returns a part that is not a call as a block of content, or false if it has nothing yet.
func blockOf(p *transcript.Part) (block, bool) {
	switch p.Kind {
	case event.KindText, event.KindStatus:
		return textBlock(p), true
	case event.KindReasoning:
		text := p.Text(event.Text)
		return block{Type: "reasoning", Reasoning: &text}, true
	case event.KindMedia:
		return mediaBlock(p)
	case event.KindData:
		if !json.Valid(p.Data) {
			return block{}, false
		}
		return block{Type: "non_standard", Value: p.Data}, true
	}
	return block{}, false
}

func textBlock(p *transcript.Part) block {
	text := p.Text(event.Text)
	return block{Type: "text", Text: &text}
}

// mediaBlock returns a file as a block. A file that could not be stored is a text that says why.
func mediaBlock(p *transcript.Part) (block, bool) {
	if p.Error != nil {
		text := "The file is missing: " + p.Error.Message
		return block{Type: "text", Text: &text}, true
	}
	if p.Media == nil || p.Media.URL == "" {
		return block{}, false
	}
	kind, _, _ := strings.Cut(p.Media.MIME, "/")
	switch kind {
	case "image", "audio", "video":
	default:
		kind = "file"
	}
	return block{Type: kind, URL: p.Media.URL, MIME: cmp.Or(p.Media.MIME, "application/octet-stream"), Name: p.Media.Name}, true
}

// statusState says whether a status may still be replaced.
func statusState(p *transcript.Part) string {
	if p.Final {
		return "done"
	}
	return "running"
}

// resultMessage returns the result of a call as a message.
func resultMessage(messageID string, p *transcript.Part) message {
	id := callID(messageID, p)
	m := message{Type: typeTool, ID: id + ".result", ToolCallID: id, Name: chats.ToolName(p), Content: jsonOf(chats.ToolResult(p)), Status: "success"}
	if p.State != event.PartDone {
		m.Status = "error"
	}
	return m
}

// appendMessages appends a message of Leat. Without growing messages, those that may still change are left out.
func appendMessages(list []message, m *transcript.Message, withGrowing bool) []message {
	switch m.Role {
	case event.User:
		return append(list, message{Type: typeHuman, ID: m.ID, Content: contentOf(m)})
	case event.System:
		return append(list, message{Type: typeSystem, ID: m.ID, Content: contentOf(m)})
	}
	for _, g := range groupsOf(m) {
		if g.isEmpty() || !withGrowing && g.isGrowing() {
			continue
		}
		list = append(list, g.message())
		for _, p := range g.parts {
			if p.Kind == event.KindTool && chats.IsComplete(p) {
				list = append(list, resultMessage(m.ID, p))
			}
		}
	}
	return list
}

// contentOf returns the content of a message that the agent has not written: its text, or blocks if it has files.
func contentOf(m *transcript.Message) json.RawMessage {
	var blocks []block
	isText := true
	var texts []string
	for _, p := range m.Parts {
		b, ok := blockOf(p)
		if !ok {
			continue
		}
		blocks = append(blocks, b)
		if b.Text == nil {
			isText = false
			continue
		}
		texts = append(texts, *b.Text)
	}
	if isText {
		return jsonOf(strings.Join(texts, event.JoinBlank))
	}
	return jsonOf(blocks)
}

// jsonOf returns a value as JSON. The values here can always be marshalled: data of agents was checked before.
func jsonOf(v any) json.RawMessage {
	b, err := server.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
