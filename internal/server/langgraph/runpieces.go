// The pieces of messages in a run stream.

package langgraph

import (
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/transcript"
)

// chunk is a piece of a message. Clients append the contents and the calls of pieces with the same id.
type chunk struct {
	Type       string      `json:"type"` // AIMessageChunk, ai, tool or remove
	ID         string      `json:"id"`
	Content    any         `json:"content"`
	ToolCalls  []toolChunk `json:"tool_call_chunks,omitempty"`
	ToolCallID string      `json:"tool_call_id,omitempty"`
	Name       string      `json:"name,omitempty"`
	Status     string      `json:"status,omitempty"`
	Kwargs     *kwargs     `json:"additional_kwargs,omitempty"`
}

// toolChunk is a piece of a call: its name and id come with the first one.
type toolChunk struct {
	ID    string `json:"id,omitempty"`
	Name  string `json:"name,omitempty"`
	Args  string `json:"args"`
	Index int    `json:"index"`
	Type  string `json:"type"` // tool_call_chunk
}

// contentChunk is a piece of a block. Clients append pieces of blocks with the same index.
type contentChunk struct {
	Type      string `json:"type"`
	Text      string `json:"text,omitempty"`
	Reasoning string `json:"reasoning,omitempty"`
	Index     int    `json:"index"`
}

// chunkMetadata says where a piece comes from.
type chunkMetadata struct {
	Run    string `json:"run_id"`
	Thread string `json:"thread_id"`
	Node   string `json:"langgraph_node"`
}

// piece sends a piece of a message.
func (w *runWriter) piece(c chunk) {
	if !slices.Contains(w.order, c.ID) {
		w.order = append(w.order, c.ID)
	}
	w.emit("messages-tuple", "messages", [2]any{c, chunkMetadata{w.ref.id(), w.thread, node}})
}

// sync sends what the client lacks of a part.
func (w *runWriter) sync(a *answer.Answer, k partKey) {
	p := partOf(a, k)
	if p == nil {
		return
	}
	part := w.part(k)
	g, index := groupWith(a, k)
	id := g.id
	if part.skipped > 0 {
		// What follows an answer is a separate message until the state at the end of the run. The client would append to the message that it has, or
		// to none after a reload.
		id += "~" + strconv.FormatInt(w.ref.number, 10)
	}
	switch p.Kind {
	case event.KindText, event.KindReasoning:
		w.syncText(g, part, p, id, index)
	case event.KindTool:
		w.syncTool(k, part, p, g.id, index)
	default:
		w.syncWhole(g, part, p, id)
	}
	switch {
	case !w.modes["messages"]:
		w.n++
	case g.isGrowing():
		w.emit("messages", "messages/partial", []message{g.message()})
	default:
		w.emit("messages", "messages/complete", []message{g.message()})
	}
}

// groupWith returns the group that a part belongs to, and the part's place in it.
func groupWith(a *answer.Answer, k partKey) (group, int) {
	for _, m := range a.Messages() {
		if m.ID != k.message {
			continue
		}
		for _, g := range groupsOf(m) {
			if i := slices.IndexFunc(g.parts, func(p *transcript.Part) bool { return p.ID == k.part }); i >= 0 {
				return g, i
			}
		}
	}
	return group{}, 0
}

// syncText sends the end of a text.
//
// A text that was taken back is removed and sent as a whole if it is the client's last message. Otherwise the client would put it into the place of
// another one, so it gets the text with the state at the end of the run.
func (w *runWriter) syncText(g group, part *sentPart, p *transcript.Part, id string, index int) {
	text := p.Text(event.Text)
	suffix, isAppended := strings.CutPrefix(text, part.text)
	if !isAppended && !part.isStale {
		isLast := len(w.order) > 0 && w.order[len(w.order)-1] == id && part.skipped == 0 && len(g.parts) == 1
		if suffix = text; isLast {
			w.piece(chunk{Type: "remove", ID: id, Content: ""})
		}
		part.isStale = !isLast
	}
	part.text = text
	if part.isStale || suffix == "" {
		return
	}
	c := chunk{Type: "AIMessageChunk", ID: id, Content: suffix}
	switch {
	case p.Kind == event.KindReasoning:
		c.Content = []contentChunk{{Type: "reasoning", Reasoning: suffix, Index: index}}
	case g.parts[0].Kind == event.KindReasoning:
		c.Content = []contentChunk{{Type: "text", Text: suffix, Index: index}}
	}
	w.piece(c)
}

// syncTool sends the end of a call's arguments, and its result as a message.
func (w *runWriter) syncTool(k partKey, part *sentPart, p *transcript.Part, id string, index int) {
	call := callID(k.message, p)
	input := p.Text(event.Input)
	if chats.HasAllInput(p) && input == "" {
		input = "{}"
	}
	suffix, isAppended := strings.CutPrefix(input, part.text)
	if isAppended && (suffix != "" || !part.isBegun) && !part.isStale {
		t := toolChunk{Args: suffix, Index: index, Type: "tool_call_chunk"}
		if !part.isBegun {
			t.ID, t.Name = call, chats.ToolName(p)
		}
		w.piece(chunk{Type: "AIMessageChunk", ID: id, Content: "", ToolCalls: []toolChunk{t}})
	}
	part.isBegun, part.isStale, part.text = true, part.isStale || !isAppended, input
	if chats.IsComplete(p) && !part.hasResult {
		part.hasResult = true
		m := resultMessage(k.message, p)
		w.piece(chunk{Type: m.Type, ID: m.ID, Content: m.Content, ToolCallID: m.ToolCallID, Name: m.Name, Status: m.Status})
	}
}

// syncWhole sends a status, a file or data as a whole message.
func (w *runWriter) syncWhole(g group, part *sentPart, p *transcript.Part, id string) {
	if g.isEmpty() {
		return
	}
	m := g.message()
	content := string(m.Content)
	hasEnded := p.Kind == event.KindStatus && p.Final && !part.isEnded
	if (p.Kind == event.KindData || p.Kind == event.KindStatus) && (hasEnded || part.text != content) {
		w.emit("custom", "custom", customOf(p))
	}
	part.isEnded = p.Final
	if part.text == content {
		return
	}
	isLast := len(w.order) > 0 && w.order[len(w.order)-1] == id
	if part.isBegun && isLast {
		w.piece(chunk{Type: "remove", ID: id, Content: ""})
	}
	if !part.isBegun || isLast {
		w.piece(chunk{Type: typeAI, ID: id, Content: m.Content, Kwargs: m.Kwargs})
	}
	part.isBegun, part.text = true, content
}

// skip notes what the client has from earlier runs of the turn.
func (w *runWriter) skip(a *answer.Answer, op *answer.Op) {
	k := partKey{op.Message, op.Part}
	if p := partOf(a, k); p != nil {
		part := w.part(k)
		part.text, part.isBegun, part.hasResult = p.Text(fieldOf(p)), true, p.Kind == event.KindTool && chats.IsComplete(p)
		part.skipped = len(part.text)
	}
}

// fieldOf returns the text of a part that grows.
func fieldOf(p *transcript.Part) event.Field {
	if p.Kind == event.KindTool {
		return event.Input
	}
	return event.Text
}

func (w *runWriter) part(k partKey) *sentPart {
	if w.texts[k] == nil {
		w.texts[k] = &sentPart{}
	}
	return w.texts[k]
}
