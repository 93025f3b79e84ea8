package agui

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/canvas"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

// name is that of the format, in configurations and requests.
const name = "ag-ui"

// The readers and writers of the types on the wire and of the state.
var (
	frames = jsonscan.NewReader[frame]()
	states = jsonscan.NewWriter[reader]()
)

// Dialect describes the events of AG-UI.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:     name,
		Summary:  "AG-UI protocol, SSE",
		Framing:  dialect.SSE,
		Progress: dialect.ProgressTypes(progress),
		Decoder:  func() dialect.Decoder { return canvas.NewDecoder(name, &reader{}, states) },
	}
}

// reader stores the ids that later events may leave out: a chunk without an id continues the last text, reasoning or call.
type reader struct {
	Message string `json:"message,omitempty"`
	Thought string `json:"thought,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Muted   string `json:"muted,omitempty"` // the last message of another role than the assistant's; its text is not shown

	in frame // the memory of the current frame
}

// Read applies one frame.
func (r *reader) Read(c *canvas.Canvas, f dialect.Frame) error {
	in, err := decoding.Read(frames, &r.in, f.Data)
	if err != nil {
		return err
	}
	switch in.Type {
	case "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK":
		return r.text(c, in)
	case "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_CHUNK",
		"THINKING_CONTENT", "THINKING_TEXT_MESSAGE_CONTENT":
		return r.reasoning(c, in)
	case "THINKING_END", "THINKING_TEXT_MESSAGE_END":
		c.EndPart(c.Find(thoughtKey(c, r.thought(in)))) // it has no id, so a later event can't refer to it
	case "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_CHUNK", "TOOL_CALL_RESULT":
		return r.tool(c, in)
	case "MESSAGES_SNAPSHOT":
		return r.snapshot(c, in.Messages)
	case "RUN_STARTED":
		c.SetRun(in.RunID)
	case "STEP_STARTED":
		c.SetPhase(in.StepName)
	case "RUN_FINISHED":
		return r.finish(c, in)
	case "RUN_ERROR":
		c.Fail(event.Error{Code: in.Code, Message: in.Message})
	case "TEXT_MESSAGE_END", "TOOL_CALL_END", "STEP_FINISHED", "REASONING_START", "REASONING_END", "REASONING_MESSAGE_END",
		"REASONING_ENCRYPTED_VALUE", "THINKING_START", "THINKING_TEXT_MESSAGE_START", "STATE_SNAPSHOT", "STATE_DELTA", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "RAW", "CUSTOM":
	case "":
		return decoding.Fault("a frame is an object with a type", nil)
	default:
		c.Unknown(in.Type)
	}
	return nil
}

// textKey, thoughtKey and toolKey return the keys of parts. The ids of texts and calls are separate.
func textKey(c *canvas.Canvas, id string) string    { return c.Key("text ", id) }
func thoughtKey(c *canvas.Canvas, id string) string { return c.Key("thought ", id) }
func toolKey(c *canvas.Canvas, id string) string    { return c.Key("tool ", id) }

// text applies an event of a text message. Only the assistant's messages are shown: an agent may also stream the user's or the developer's
// messages. Only the first event of a message has the role, so the id of a message of another role is stored.
func (r *reader) text(c *canvas.Canvas, in *frame) error {
	if in.MessageID != "" {
		r.Message = in.MessageID
	}
	switch in.Role {
	case "", "assistant":
		if in.Role != "" && r.Muted == r.Message {
			r.Muted = ""
		}
	default:
		r.Muted = r.Message
	}
	if in.Type == "TEXT_MESSAGE_START" || r.Muted != "" && r.Muted == r.Message {
		return nil
	}
	return c.GrowProse(textKey(c, r.Message), event.KindText, in.Delta)
}

// thought returns the id of the reasoning that an event belongs to. The older THINKING events have no ids at all.
func (r *reader) thought(in *frame) string {
	if in.MessageID != "" {
		r.Thought = in.MessageID
	}
	return r.Thought
}

// reasoning handles the events of thoughts.
func (r *reader) reasoning(c *canvas.Canvas, in *frame) error {
	return c.GrowProse(thoughtKey(c, r.thought(in)), event.KindReasoning, in.Delta)
}

// tool applies an event of a tool call. The tool counts as running from its first event on, because the protocol doesn't say whether the
// agent or the client runs it.
func (r *reader) tool(c *canvas.Canvas, in *frame) error {
	if in.ToolCallID != "" {
		r.Tool = in.ToolCallID
	}
	p, err := c.Tool(toolKey(c, r.Tool), r.Tool, in.ToolCallName, event.PartRunning)
	if err != nil {
		return err
	}
	if in.Type != "TOOL_CALL_RESULT" {
		return c.Grow(p, event.Input, in.Delta)
	}
	result(c, p, in.Content, in.Error)
	return nil
}

// result applies the result of a call, from an event or a message of a snapshot. The part stays open, because a snapshot may repeat it.
func result(c *canvas.Canvas, p *canvas.Part, content, failure json.RawMessage) {
	c.Set(p, event.Output, plain(content))
	if message := decoding.String(failure); message != "" {
		c.Update(p, event.PartFailed, "", &event.Error{Message: message})
		return
	}
	c.Update(p, event.PartDone, "", nil)
}

// plain returns a content as text. A content is a string, or a list of parts, of which only the texts are used.
func plain(content json.RawMessage) string {
	var parts []struct {
		Type string          `json:"type"`
		Text json.RawMessage `json:"text"`
	}
	if len(content) == 0 || content[0] != '[' || json.Unmarshal(content, &parts) != nil {
		return decoding.Plain(content)
	}
	text := ""
	for _, p := range parts {
		text += decoding.String(p.Text)
	}
	return text
}

// snapshot applies a MESSAGES_SNAPSHOT, the whole conversation as the agent has it. The answer is what follows the last user message; what
// comes before belongs to earlier turns, which readers already have. A message replaces the part with its id, or adds one.
func (r *reader) snapshot(c *canvas.Canvas, messages []message) error {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == "user" {
			messages = messages[i+1:]
			break
		}
	}
	for _, m := range messages {
		switch m.Role {
		case "assistant":
			if err := c.SetProse(textKey(c, m.ID), event.KindText, plain(m.Content)); err != nil {
				return err
			}
			for _, call := range m.ToolCalls {
				p, err := c.Tool(toolKey(c, call.ID), call.ID, call.Function.Name, event.PartRunning)
				if err != nil {
					return err
				}
				c.Set(p, event.Input, decoding.Plain(call.Function.Arguments))
			}
		case "reasoning":
			if err := c.SetProse(thoughtKey(c, m.ID), event.KindReasoning, plain(m.Content)); err != nil {
				return err
			}
		case "tool":
			if p := c.Find(toolKey(c, m.ToolCallID)); p != nil {
				result(c, p, m.Content, m.Error)
			}
		}
	}
	return nil
}

// finish applies a RUN_FINISHED. A run that was interrupted asks its questions, and the turn waits for the next run with the answers. In a
// complete run a tool without a result is done, because the result of a tool that the client runs isn't in the stream.
func (r *reader) finish(c *canvas.Canvas, in *frame) error {
	var o outcome
	if len(in.Outcome) > 0 && in.Outcome[0] == '{' {
		if err := json.Unmarshal(in.Outcome, &o); err != nil {
			return decoding.Fault("outcome of the run", err)
		}
	}
	switch {
	case o.Type == "interrupt" && len(o.Interrupts) > 0:
		for i := range o.Interrupts {
			if err := ask(c, &o.Interrupts[i]); err != nil {
				return err
			}
		}
		return nil
	case o.Type == "cancelled":
		c.End(event.Body{Outcome: event.Cancelled, Reason: o.Type})
		return nil
	}
	for _, p := range c.Open {
		if p.Kind == event.KindTool && p.State == event.PartRunning {
			c.Update(p, event.PartDone, "", nil)
		}
	}
	c.Complete("")
	return nil
}

// ask turns an interrupt into a question: an approval if it names a known tool call, and a request for input otherwise.
func ask(c *canvas.Canvas, i *interrupt) error {
	q := event.Request{ID: i.ID, Kind: event.RequestInput, Prompt: cmp.Or(i.Message, i.Reason), Data: i.ResponseSchema}
	if p := c.Find(toolKey(c, i.ToolCallID)); p != nil {
		q.Kind, q.Part = event.RequestApproval, p.ID
	}
	return c.Ask(q)
}

// families are the prefixes of the types of the protocol's own events of a run.
var families = []string{"TEXT_MESSAGE_", "REASONING_", "THINKING_", "TOOL_CALL_", "STEP_", "STATE_", "ACTIVITY_"}

// progress recognizes the protocol's events of a run. RAW and CUSTOM belong to the application, which may send heartbeats with them.
func progress(kind string) bool {
	return slices.ContainsFunc(families, func(prefix string) bool { return strings.HasPrefix(kind, prefix) })
}
