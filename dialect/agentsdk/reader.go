package agentsdk

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/canvas"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
)

const name = "agentsdk"

// Dialect describes the stream of agentsdk-go runtimes.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:     name,
		Summary:  "agentsdk-go runtimes, the SSE of POST /v1/run/stream",
		Framing:  dialect.SSE,
		Progress: dialect.ProgressTypes(progress),
		Decoder:  func() dialect.Decoder { return canvas.NewDecoder(name, &reader{}) },
	}
}

// reader is what is known of the message at hand.
type reader struct {
	Messages int             `json:"messages,omitempty"`
	Blocks   map[int]*block  `json:"blocks,omitempty"`
	Tools    map[string]tool `json:"tools,omitempty"`
	Stop     string          `json:"stop,omitempty"`
}

// block is one of the message's blocks that has a part.
type block struct {
	Key  string `json:"key"`
	Tool bool   `json:"tool,omitempty"`
	Args args   `json:"args,omitzero"`
}

// tool is a call that runs.
type tool struct {
	Streamed dialect.Snapshot `json:"said,omitzero"` // its output and its errors as they came
}

var errNoBlock = canvas.Fault("delta of a block that has not started", nil)

// Read implements [canvas.Reader].
func (r *reader) Read(c *canvas.Canvas, f dialect.Frame) error {
	var in frame
	if err := canvas.Unmarshal(f.Data, &in); err != nil {
		return err
	}
	switch in.Type {
	case "content_block_delta":
		return r.delta(c, &in)
	case "content_block_start":
		return r.start(c, &in)
	case "content_block_stop":
		r.stop(c, in.Index)
	case "message_start":
		r.endMessage(c)
		r.Messages++
		if in.Message != nil {
			c.SetModel(in.Message.Model)
			r.count(c, in.Message.Usage)
		}
	case "message_delta":
		if in.Delta != nil {
			r.Stop = decoding.StopReason(in.Delta.StopReason)
		}
		r.count(c, in.Usage)
	case "message_stop":
		r.endMessage(c)
	case "iteration_start":
		r.endMessage(c)
		c.EndTools()
		r.Tools = nil
		if in.Iteration != nil && *in.Iteration >= 0 {
			c.Draw(event.Event{Type: event.TurnUpdate, Body: &event.Body{Step: *in.Iteration + 1}})
		}
	case "tool_execution_start", "tool_execution_output", "tool_execution_result":
		return r.execution(c, &in)
	case "agent_stop":
		c.Complete(r.Stop)
	case "error":
		fail(c, canvas.Plain(in.Output))
	case "ping", "agent_start", "iteration_stop":
	case "":
		return canvas.Fault("a frame is an object with a type", nil)
	default:
		c.Unknown(in.Type)
	}
	return nil
}

func (r *reader) count(c *canvas.Canvas, u *usage) {
	if u != nil {
		c.Usage.Input += u.Input
		c.Usage.Output += u.Output
	}
}

// start takes a content_block_start.
func (r *reader) start(c *canvas.Canvas, in *frame) error {
	b := in.Block
	if b == nil {
		return canvas.Fault("content_block is missing", nil)
	}
	key := fmt.Sprintf("%d/%d", r.Messages, in.Index)
	if b.Type == "tool_use" {
		key = toolKey(b.ID)
	}
	if old := r.Blocks[in.Index]; old != nil {
		// The model was called again, so a block with this index replaces the one of the failed attempt.
		if p := c.Find(old.Key); p != nil {
			field := event.Text
			if old.Tool {
				field = event.Input
			}
			c.Set(p, field, "")
			if old.Key != key {
				c.EndPart(p)
			}
		}
		delete(r.Blocks, in.Index)
	}
	started := &block{Key: key}
	switch b.Type {
	case "text":
		p, err := c.Prose(key, event.KindText)
		if err != nil {
			return err
		}
		if err := c.Grow(p, event.Text, b.Text); err != nil {
			return err
		}
	case "tool_use":
		started.Tool = true
		if _, err := c.Tool(key, b.ID, b.Name, ""); err != nil {
			return err
		}
	default:
		c.Unknown(b.Type)
		return nil
	}
	if r.Blocks == nil {
		r.Blocks = map[int]*block{}
	}
	r.Blocks[in.Index] = started
	return nil
}

// delta takes a content_block_delta.
func (r *reader) delta(c *canvas.Canvas, in *frame) error {
	d := in.Delta
	if d == nil {
		return canvas.Fault("delta is missing", nil)
	}
	switch d.Type {
	case "text_delta", "input_json_delta":
	default:
		c.Unknown(d.Type)
		return nil
	}
	b := r.Blocks[in.Index]
	if b == nil {
		return errNoBlock
	}
	p := c.Find(b.Key)
	switch {
	case p == nil, b.Tool != (d.Type == "input_json_delta"):
		return errNoBlock
	case !b.Tool:
		return c.Grow(p, event.Text, d.Text)
	}
	text := canvas.Plain(d.PartialJSON)
	b.Args.add(text)
	c.Append(p, event.Input, text)
	return nil
}

// stop takes a content_block_stop. The part of a text stays open: the block may start again.
func (r *reader) stop(c *canvas.Canvas, index int) {
	b := r.Blocks[index]
	if b == nil || !b.Tool {
		return
	}
	if p := c.Find(b.Key); p != nil && !b.Args.exact() {
		c.Update(p, "", "arguments not exact", nil)
	}
	b.Args = args{}
}

// endMessage ends the texts of the message at hand.
func (r *reader) endMessage(c *canvas.Canvas) {
	for _, i := range slices.Sorted(maps.Keys(r.Blocks)) {
		r.stop(c, i)
	}
	for _, p := range c.Texts() {
		c.EndPart(p)
	}
	r.Blocks = nil
}

func toolKey(call string) string { return "tool " + call }

// execution handles an event of a running tool.
func (r *reader) execution(c *canvas.Canvas, in *frame) error {
	key := toolKey(in.ToolUseID)
	p, err := c.Tool(key, in.ToolUseID, in.Name, event.PartRunning)
	if err != nil {
		return err
	}
	c.Update(p, event.PartRunning, "", nil)
	switch in.Type {
	case "tool_execution_output":
		return r.output(c, p, in)
	case "tool_execution_result":
		r.result(c, p, in)
	}
	return nil
}

func (r *reader) output(c *canvas.Canvas, p *canvas.Part, in *frame) error {
	text := canvas.Plain(in.Output)
	if in.IsStderr == nil {
		r.snapshot(c, p, text)
		return nil
	}
	field := event.Output
	if *in.IsStderr {
		field = event.Stderr
	}
	c.Append(p, field, text)
	t := r.Tools[p.Key]
	t.Streamed.Append(text)
	r.setTool(p.Key, t)
	return nil
}

func (r *reader) setTool(key string, t tool) {
	if r.Tools == nil {
		r.Tools = map[string]tool{}
	}
	r.Tools[key] = t
}

// snapshot handles a tool's complete output, or its result. Pieces of stderr remain visible even if the result differs from the
// output, because the result is made for the model: tools shorten it or leave out stderr.
func (r *reader) snapshot(c *canvas.Canvas, p *canvas.Part, text string) {
	t := r.Tools[p.Key]
	if text == "" {
		return // a result without text takes back nothing
	}
	op, added := t.Streamed.Next(text)
	r.setTool(p.Key, t)
	switch op {
	case event.PartAppend:
		c.Append(p, event.Output, added) // the pieces before it are shown, each where it belongs
	case event.PartReplace:
		c.Set(p, event.Output, text)
	}
}

func (r *reader) result(c *canvas.Canvas, p *canvas.Part, in *frame) {
	var res result
	failed, reason := in.IsError, ""
	if json.Unmarshal(in.Output, &res) == nil && len(in.Output) > 0 && in.Output[0] == '{' {
		if res.Output != nil {
			r.snapshot(c, p, canvas.Plain(*res.Output))
		}
		reason = canvas.String(res.Metadata.Error)
		failed = failed || reason != "" || string(res.Metadata.IsError) == "true"
	} else if text := canvas.Plain(in.Output); text != "" {
		r.snapshot(c, p, text)
	}
	if failed {
		if reason == "" {
			reason = "the tool failed"
		}
		c.Update(p, event.PartFailed, "", &event.Error{Message: reason})
	} else {
		c.Update(p, event.PartDone, "", nil)
	}
	delete(r.Tools, p.Key)
	c.EndPart(p)
}

// fail takes the runtime's last word.
func fail(c *canvas.Canvas, message string) {
	switch message {
	case "context canceled":
		c.End(event.Body{Outcome: event.Cancelled, Reason: message})
	case "max iterations reached":
		c.Fail(event.Error{Code: "max_iterations", Message: "the agent reached its limit of iterations before it was done"})
	default:
		c.Fail(event.Error{Message: message})
	}
}
