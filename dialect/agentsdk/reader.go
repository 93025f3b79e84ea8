package agentsdk

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/canvas"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

// name is that of the format, in configurations and requests.
const name = "agentsdk"

// The readers and writers of the types on the wire and of the state.
var (
	frames      = jsonscan.NewReader[frame]()
	states      = jsonscan.NewWriter[reader]()
	blockStates = jsonscan.NewWriter[block]()
)

// Dialect describes the stream of agentsdk-go runtimes.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:     name,
		Summary:  "agentsdk-go runtimes, the SSE of POST /v1/run/stream",
		Framing:  dialect.SSE,
		Progress: dialect.ProgressTypes(progress),
		Decoder:  func() dialect.Decoder { return canvas.NewDecoder(name, &reader{}, states) },
	}
}

// reader is the state of the current message and of the tools of the current iteration.
type reader struct {
	Messages int             `json:"messages,omitempty"` // the number of messages begun; part of the keys of texts
	Blocks   blocks          `json:"blocks,omitempty"`   // of the current message
	Tools    map[string]tool `json:"tools,omitempty"`    // by key of the part
	Stop     string          `json:"stop,omitempty"`     // the last stop reason, which agent_stop doesn't repeat

	in frame // the memory of the current frame
}

// blocks has the blocks of a message by their index.
type blocks map[int]*block

var _ jsonscan.Appender = (*blocks)(nil)

// AppendJSON writes what json.Marshal would write, which sorts the keys as strings. Most states have one block.
func (bs *blocks) AppendJSON(b []byte) ([]byte, error) {
	for index, value := range *bs {
		if len(*bs) > 1 || value == nil {
			break
		}
		b = append(strconv.AppendInt(append(b, `{"`...), int64(index), 10), `":`...)
		b, err := blockStates.Append(b, value)
		return append(b, '}'), err
	}
	encoded, err := json.Marshal(*bs)
	return append(b, encoded...), err
}

// block is a block of the current message that has a part.
type block struct {
	Key  string `json:"key"` // of the part
	Tool bool   `json:"tool,omitempty"`
	Args args   `json:"args,omitzero"`
}

// tool is a call that has output.
type tool struct {
	// Streamed is stdout and stderr together, in the order of arrival. The runtime's whole output has both, so it is compared with this.
	Streamed dialect.Snapshot `json:"said,omitzero"`
}

// errNoBlock means that the stream has lost a frame.
var errNoBlock = decoding.Fault("delta of a block that has not started", nil)

// Read applies one frame.
func (r *reader) Read(c *canvas.Canvas, f dialect.Frame) error {
	in, err := decoding.Read(frames, &r.in, f.Data)
	if err != nil {
		return err
	}
	switch in.Type {
	case "content_block_delta":
		return r.delta(c, in)
	case "content_block_start":
		return r.start(c, in)
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
		return r.execution(c, in)
	case "agent_stop":
		c.Complete(r.Stop)
	case "error":
		fail(c, decoding.Plain(in.Output))
	case "ping", "agent_start", "iteration_stop":
	case "":
		return decoding.Fault("a frame is an object with a type", nil)
	default:
		c.Unknown(in.Type)
	}
	return nil
}

// count adds the usage of a message. The runtimes known today leave it empty.
func (r *reader) count(c *canvas.Canvas, u *usage) {
	if u != nil {
		c.Usage.Input += u.Input
		c.Usage.Output += u.Output
	}
}

// start applies a content_block_start. An index that is already in use in the same message means that the runtime has repeated the model
// call, for example with a higher limit of tokens: the whole text follows again, so the first attempt is retracted. A repeated text has
// the same key and continues in the same part. A call has another id, so the part of the first one is ended, with empty input.
func (r *reader) start(c *canvas.Canvas, in *frame) error {
	b := in.Block
	if b == nil {
		return decoding.Fault("content_block is missing", nil)
	}
	key := fmt.Sprintf("%d/%d", r.Messages, in.Index)
	if b.Type == "tool_use" {
		key = toolKey(b.ID) // the events of its execution name only the id
	}
	if old := r.Blocks[in.Index]; old != nil {
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
	next := &block{Key: key, Tool: b.Type == "tool_use"}
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
		if _, err := c.Tool(key, b.ID, b.Name, ""); err != nil {
			return err
		}
	default:
		c.Unknown(b.Type)
		return nil
	}
	if r.Blocks == nil {
		r.Blocks = blocks{}
	}
	r.Blocks[in.Index] = next
	return nil
}

// delta applies a content_block_delta. A delta of a block that was never started, or of another kind than its block, is an error, because
// the text would have no place.
func (r *reader) delta(c *canvas.Canvas, in *frame) error {
	d := in.Delta
	if d == nil {
		return decoding.Fault("delta is missing", nil)
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
	text := decoding.Plain(d.PartialJSON)
	b.Args.add(text)
	c.Append(p, event.Input, text)
	return nil
}

// stop applies a content_block_stop. The part stays open: a text may start again, and a tool has yet to run. If the runtime has
// damaged the arguments of a tool, the tool gets a title that marks them as inexact.
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

// endMessage ends the texts of the current message. The order of its blocks must not be that of the map, because it would make the
// operations differ from run to run.
func (r *reader) endMessage(c *canvas.Canvas) {
	for _, i := range slices.Sorted(maps.Keys(r.Blocks)) {
		r.stop(c, i)
	}
	for _, p := range c.Texts() {
		c.EndPart(p)
	}
	r.Blocks = nil
}

// toolKey returns the key of the part of a tool call.
func toolKey(call string) string { return "tool " + call }

// execution applies an event of a running tool. The tool may be unknown, if the runtime sent no block for its call.
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

// output appends a piece of a tool's output. An output without is_stderr is not a piece but the whole output, which every tool sends at
// its end.
func (r *reader) output(c *canvas.Canvas, p *canvas.Part, in *frame) error {
	text := decoding.Plain(in.Output)
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

// setTool stores what is known of a tool call.
func (r *reader) setTool(key string, t tool) {
	if r.Tools == nil {
		r.Tools = map[string]tool{}
	}
	r.Tools[key] = t
}

// snapshot applies a tool's complete output, or its result. Pieces of stderr remain visible even if the result differs from the
// output, because the result is made for the model: tools shorten it or leave out stderr. An empty text retracts nothing.
func (r *reader) snapshot(c *canvas.Canvas, p *canvas.Part, text string) {
	if text == "" {
		return
	}
	t := r.Tools[p.Key]
	op, added := t.Streamed.Next(text)
	r.setTool(p.Key, t)
	switch op {
	case event.PartAppend:
		c.Append(p, event.Output, added) // the earlier pieces are already in stdout or stderr
	case event.PartReplace:
		c.Set(p, event.Output, text)
	}
}

// result applies a tool_execution_result and ends the tool. The output of a result is an object with the tool's output and metadata; a
// result in any other form is itself the output. Versions mark a failure in different places: is_error of the event or of the metadata, or
// an error text in the metadata.
func (r *reader) result(c *canvas.Canvas, p *canvas.Part, in *frame) {
	var res result
	failed, reason := in.IsError, ""
	if json.Unmarshal(in.Output, &res) == nil && len(in.Output) > 0 && in.Output[0] == '{' {
		if res.Output != nil {
			r.snapshot(c, p, decoding.Plain(*res.Output))
		}
		reason = decoding.String(res.Metadata.Error)
		failed = failed || reason != "" || string(res.Metadata.IsError) == "true"
	} else {
		r.snapshot(c, p, decoding.Plain(in.Output))
	}
	if failed {
		c.Update(p, event.PartFailed, "", &event.Error{Message: cmp.Or(reason, "the tool failed")})
	} else {
		c.Update(p, event.PartDone, "", nil)
	}
	delete(r.Tools, p.Key)
	c.EndPart(p)
}

// fail ends the turn with the text of an error event, after which the runtime sends nothing. The runtime has no codes, so a cancellation and
// the limit of iterations are recognized by their texts.
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

// families are the prefixes of the types of all events of an iteration.
var families = []string{"content_block_", "message_", "iteration_", "tool_execution_"}

// progress recognizes the events of an iteration. ping only keeps the connection open, so it must not keep a silent turn alive.
func progress(kind string) bool {
	return slices.ContainsFunc(families, func(prefix string) bool { return strings.HasPrefix(kind, prefix) })
}
