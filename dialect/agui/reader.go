package agui

import (
	"encoding/json"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/canvas"
	"github.com/leat-dev/leat/event"
)

const name = "ag-ui"

// Dialect describes the events of AG-UI.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:     name,
		Summary:  "AG-UI protocol, SSE",
		Framing:  dialect.SSE,
		Progress: dialect.ProgressTypes(progress),
		Decoder:  func() dialect.Decoder { return canvas.NewDecoder(name, &reader{}) },
	}
}

// reader is what chunks leave out: of what the one before was.
type reader struct {
	Message string `json:"message,omitempty"`
	Thought string `json:"thought,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Muted   string `json:"muted,omitempty"` // a message that is not the agent's
}

// Read implements [canvas.Reader].
func (r *reader) Read(c *canvas.Canvas, f dialect.Frame) error {
	var in frame
	if err := canvas.Unmarshal(f.Data, &in); err != nil {
		return err
	}
	switch in.Type {
	case "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK":
		return r.text(c, &in)
	case "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_CHUNK",
		"THINKING_CONTENT", "THINKING_TEXT_MESSAGE_CONTENT":
		return r.reasoning(c, &in)
	case "THINKING_END", "THINKING_TEXT_MESSAGE_END":
		c.EndPart(c.Find(thoughtKey(r.thought(&in)))) // it has no id, so a later event can't refer to it
	case "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_CHUNK", "TOOL_CALL_RESULT":
		return r.tool(c, &in)
	case "MESSAGES_SNAPSHOT":
		return r.snapshot(c, in.Messages)
	case "RUN_STARTED":
		c.SetRun(in.RunID)
	case "STEP_STARTED":
		c.SetPhase(in.StepName)
	case "RUN_FINISHED":
		return r.finish(c, &in)
	case "RUN_ERROR":
		c.Fail(event.Error{Code: in.Code, Message: in.Message})
	case "TEXT_MESSAGE_END", "TOOL_CALL_END", "STEP_FINISHED", "REASONING_START", "REASONING_END", "REASONING_MESSAGE_END",
		"REASONING_ENCRYPTED_VALUE", "THINKING_START", "THINKING_TEXT_MESSAGE_START", "STATE_SNAPSHOT", "STATE_DELTA", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "RAW", "CUSTOM":
	case "":
		return canvas.Fault("a frame is an object with a type", nil)
	default:
		c.Unknown(in.Type)
	}
	return nil
}

func textKey(id string) string    { return "text " + id }
func thoughtKey(id string) string { return "thought " + id }
func toolKey(id string) string    { return "tool " + id }

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
	if in.Type == "TEXT_MESSAGE_START" || r.Muted != "" && r.Muted == r.Message || in.Delta == nil || string(in.Delta) == `""` {
		return nil
	}
	p, err := c.Prose(textKey(r.Message), event.KindText)
	if err != nil {
		return err
	}
	return c.Grow(p, event.Text, in.Delta)
}

func (r *reader) thought(in *frame) string {
	if in.MessageID != "" {
		r.Thought = in.MessageID
	}
	return r.Thought
}

func (r *reader) reasoning(c *canvas.Canvas, in *frame) error {
	key := thoughtKey(r.thought(in))
	if in.Delta == nil || string(in.Delta) == `""` {
		return nil
	}
	p, err := c.Prose(key, event.KindReasoning)
	if err != nil {
		return err
	}
	return c.Grow(p, event.Text, in.Delta)
}

func (r *reader) tool(c *canvas.Canvas, in *frame) error {
	if in.ToolCallID != "" {
		r.Tool = in.ToolCallID
	}
	p, err := c.Tool(toolKey(r.Tool), r.Tool, in.ToolCallName, event.PartRunning)
	if err != nil {
		return err
	}
	if in.Type != "TOOL_CALL_RESULT" {
		return c.Grow(p, event.Input, in.Delta)
	}
	result(c, p, in.Content, in.Error)
	return nil
}

func result(c *canvas.Canvas, p *canvas.Part, content, failure json.RawMessage) {
	c.Set(p, event.Output, plain(content))
	if message := canvas.String(failure); message != "" {
		c.Update(p, event.PartFailed, "", &event.Error{Message: message})
		return
	}
	c.Update(p, event.PartDone, "", nil)
}

// plain is a content: a text, or a list of parts of which the texts count.
func plain(content json.RawMessage) string {
	var parts []struct {
		Type string          `json:"type"`
		Text json.RawMessage `json:"text"`
	}
	if len(content) == 0 || content[0] != '[' || json.Unmarshal(content, &parts) != nil {
		return canvas.Plain(content)
	}
	text := ""
	for _, p := range parts {
		text += canvas.String(p.Text)
	}
	return text
}

// snapshot takes the conversation as the agent has it.
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
			if text := plain(m.Content); text != "" {
				p, err := c.Prose(textKey(m.ID), event.KindText)
				if err != nil {
					return err
				}
				c.Set(p, event.Text, text)
			}
			for _, call := range m.ToolCalls {
				p, err := c.Tool(toolKey(call.ID), call.ID, call.Function.Name, event.PartRunning)
				if err != nil {
					return err
				}
				c.Set(p, event.Input, canvas.Plain(call.Function.Arguments))
			}
		case "reasoning":
			if text := plain(m.Content); text != "" {
				p, err := c.Prose(thoughtKey(m.ID), event.KindReasoning)
				if err != nil {
					return err
				}
				c.Set(p, event.Text, text)
			}
		case "tool":
			if p := c.Find(toolKey(m.ToolCallID)); p != nil {
				result(c, p, m.Content, m.Error)
			}
		}
	}
	return nil
}

func (r *reader) finish(c *canvas.Canvas, in *frame) error {
	var o outcome
	if len(in.Outcome) > 0 && in.Outcome[0] == '{' {
		if err := json.Unmarshal(in.Outcome, &o); err != nil {
			return canvas.Fault("outcome of the run", err)
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
		if p.Kind == event.KindTool {
			c.Update(p, doneUnless(p.State), "", nil)
		}
	}
	c.Complete("")
	return nil
}

// doneUnless is the state of a tool after a run that has finished: what was not told to have failed is done.
func doneUnless(state event.PartState) event.PartState {
	if state == event.PartRunning {
		return event.PartDone
	}
	return ""
}

func ask(c *canvas.Canvas, i *interrupt) error {
	q := event.Request{ID: i.ID, Kind: event.RequestInput, Prompt: i.Message, Data: i.ResponseSchema}
	if q.Prompt == "" {
		q.Prompt = i.Reason
	}
	if p := c.Find(toolKey(i.ToolCallID)); p != nil {
		q.Kind, q.Part = event.RequestApproval, p.ID
	}
	return c.Ask(q)
}
