package openairesponses

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

// name is that of the format, in configurations and requests.
const name = "openai-responses"

// The readers and writers of the types on the wire and of the state.
var (
	frames = jsonscan.NewReader[frame]()
	states = jsonscan.NewWriter[state]()
)

// Dialect describes the stream of the Responses API.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:     name,
		Summary:  "OpenAI Responses API, SSE",
		Framing:  dialect.SSE,
		Progress: dialect.ProgressTypes(progress),
		Decoder:  func() dialect.Decoder { return &decoder{} },
	}
}

// maxItems is the limit of items in a response, maxParts that of parts in an item; one more is an error. No model writes as many, and all
// are in the state, which is stored with commits.
const (
	maxItems = 4096
	maxParts = 1024
)

// decoder is the dialect's decoder. Everything that must survive until the next frame is in state, which State encodes.
type decoder struct {
	state
	decoding.Base
	in   frame
	last partKey // of the last delta
}

var _ dialect.Counter = (*decoder)(nil)

// state is everything that the next event needs to know of the events before. It has no text except incomplete characters, because it is
// stored with every commit.
type state struct {
	Frames int     `json:"frames"`
	IsOver bool    `json:"ended,omitempty"`
	Seq    int64   `json:"seq,omitempty"`   // the last sequence_number
	ID     string  `json:"id,omitempty"`    // of the response
	Key    string  `json:"key,omitempty"`   // of the message, or empty if it wasn't started
	Items  []*open `json:"items,omitempty"` // of the current response, in order of their first event
	// Questions has the open approvals. Paused is true if the response that asked for them has ended, so that the turn waits for the next
	// response.
	Questions  []*question     `json:"questions,omitempty"`
	Paused     bool            `json:"paused,omitempty"`
	PriorUsage event.Usage     `json:"used,omitzero"` // of the responses that have ended
	Model      string          `json:"model,omitempty"`
	Unknowns   dialect.Unknown `json:"unknown,omitempty"`
}

// The causes of invalid events and states. decodeFrame adds the type of the event.
var (
	errNoObject  = errors.New("a frame is an object with a type")
	errNoItem    = errors.New("the item is missing")
	errManyItems = fmt.Errorf("more than %d items", maxItems)
	errManyParts = fmt.Errorf("more than %d parts of an item", maxParts)
	errState     = errors.New("an item or part is missing")
	errNoID      = errors.New("the id of an approval is missing or invalid")

	errManyQuestions = fmt.Errorf("more than %d approvals", maxQuestions)
)

// Decode implements [dialect.Decoder].
func (d *decoder) Decode(f dialect.Frame) ([]event.Event, error) {
	return d.Base.Decode(name, &d.Frames, d.IsOver, f, d.decodeFrame)
}

// decodeFrame decodes an event, skips it if its sequence_number shows that it is a repetition, and applies it. The numbers start at 0 in each
// response, so the first event of the response after a question must reset them before they are compared.
func (d *decoder) decodeFrame(f dialect.Frame) error {
	data := bytes.TrimSpace(f.Data)
	if string(data) == "[DONE]" {
		return nil // some servers send it after every response; it doesn't say how the response ended
	}
	in, err := decoding.Read(frames, &d.in, data)
	if err != nil {
		return err
	}
	in.Type = cmp.Or(in.Type, f.Event)
	if in.Type == "" && len(in.Error) == 0 {
		return decoding.Fault("no type", errNoObject)
	}
	if d.Paused && in.Type == "response.created" && in.Response != nil && in.Response.ID != d.ID {
		d.resume()
	}
	if in.Seq != nil {
		if *in.Seq < d.Seq || *in.Seq == d.Seq && d.Seq > 0 {
			return nil
		}
		d.Seq = *in.Seq
	}
	if err := d.route(in); err != nil {
		return decoding.Fault(in.Type, err)
	}
	return nil
}

// route applies an event by its type. Deltas grow a part, and "done" events set its final text; an "added" event only starts the
// part, so that readers see the parts in the order in which the model began them. An unknown event of a call that the server runs
// is only progress.
func (d *decoder) route(in *frame) error {
	kind, ok := strings.CutPrefix(in.Type, "response.")
	if !ok {
		if in.Type == "error" || in.Type == "" {
			d.error(in)
		} else {
			d.Unknowns.Add(in.Type)
		}
		return nil
	}
	switch kind {
	case "created", "queued", "in_progress":
		d.begin(in.Response)
	case "completed", "incomplete", "failed", "cancelled":
		return d.finish(kind, in.Response)
	case "output_item.added":
		return d.added(in.Output, in.Item)
	case "output_item.done":
		return d.finishItem(in.Output, in.Item)
	case "content_part.added":
		if in.Part != nil && in.Part.Type == "reasoning_text" {
			return d.grow(in.Output, d.thoughtKey(in.Output, in.Content), event.KindReasoning, event.Text, nil)
		}
		return d.grow(in.Output, d.textKey(in.Output, in.Content), event.KindText, event.Text, nil)
	case "content_part.done":
		return d.content(in.Output, in.Content, in.Part)
	case "output_text.delta", "refusal.delta":
		return d.grow(in.Output, d.textKey(in.Output, in.Content), event.KindText, event.Text, in.Delta)
	case "output_text.done":
		return d.setText(in.Output, d.textKey(in.Output, in.Content), event.KindText, event.Text, in.Text)
	case "refusal.done":
		return d.setText(in.Output, d.textKey(in.Output, in.Content), event.KindText, event.Text, in.Refusal)
	case "reasoning_summary_part.added":
		return d.grow(in.Output, d.summaryKey(in.Output, in.Summary), event.KindReasoning, event.Text, nil)
	case "reasoning_summary_text.delta":
		return d.grow(in.Output, d.summaryKey(in.Output, in.Summary), event.KindReasoning, event.Text, in.Delta)
	case "reasoning_summary_text.done":
		return d.setText(in.Output, d.summaryKey(in.Output, in.Summary), event.KindReasoning, event.Text, in.Text)
	case "reasoning_text.delta":
		return d.grow(in.Output, d.thoughtKey(in.Output, in.Content), event.KindReasoning, event.Text, in.Delta)
	case "reasoning_text.done":
		return d.setText(in.Output, d.thoughtKey(in.Output, in.Content), event.KindReasoning, event.Text, in.Text)
	case "function_call_arguments.delta", "mcp_call_arguments.delta", "custom_tool_call_input.delta", "code_interpreter_call_code.delta":
		return d.grow(in.Output, toolKey(in.Output), event.KindTool, event.Input, in.Delta)
	case "function_call_arguments.done", "mcp_call_arguments.done":
		return d.setText(in.Output, toolKey(in.Output), event.KindTool, event.Input, in.Arguments)
	case "custom_tool_call_input.done":
		return d.setText(in.Output, toolKey(in.Output), event.KindTool, event.Input, in.Input)
	case "code_interpreter_call_code.done":
		return d.setText(in.Output, toolKey(in.Output), event.KindTool, event.Input, in.Code)
	case "reasoning_summary_part.done", "output_text.annotation.added", "image_generation_call.partial_image":
	default:
		if tool, _, ok := strings.Cut(kind, "."); !ok || !serverCalls[tool] {
			d.Unknowns.Add(in.Type)
		}
	}
	return nil
}

// partKey is a key of a part and what it is made of.
type partKey struct {
	item  int
	kind  string // "/t" for reasoning, "/s" for its summary, and "/" for any other text
	index int    // of the content or summary within the item
	key   string
}

// textKey and the functions after it return the keys of parts: the index of the item, and for all but tools the index of the content or
// summary within it. The ids of items are not used, because some servers change them with every event.
func (d *decoder) textKey(output, content int) string { return d.key(output, "/", content) }

func (d *decoder) thoughtKey(output, content int) string { return d.key(output, "/t", content) }

func (d *decoder) summaryKey(output, summary int) string { return d.key(output, "/s", summary) }

// key returns the key of a text. Most events are deltas of one text, so the last key is used again.
func (d *decoder) key(item int, kind string, index int) string {
	if k := &d.last; k.key == "" || k.item != item || k.kind != kind || k.index != index {
		*k = partKey{item, kind, index, strconv.Itoa(item) + kind + strconv.Itoa(index)}
	}
	return d.last.key
}

func toolKey(output int) string { return strconv.Itoa(output) }

// begin stores the response's ids and model, which the first events contain.
func (d *decoder) begin(r *response) {
	if r == nil {
		return
	}
	d.ID = cmp.Or(d.ID, r.ID)
	d.SetModel(&d.Model, r.Model)
}

// message returns the key of the response's message and starts the message if needed. Its key is the id of the response, because a turn with
// questions has a message for each of its responses.
func (d *decoder) message() string {
	if d.Key == "" {
		d.Key = cmp.Or(d.ID, "response")
		d.Emit(event.Event{Type: event.MessageStart, Message: d.Key, Body: &event.Body{Role: event.Assistant}})
	}
	return d.Key
}

// finish applies the response's last event. kind is its type: completed, incomplete, failed or cancelled. A complete response with open
// questions doesn't end the turn. If no item was streamed, the items are taken from the event's own list, as some servers send only that.
func (d *decoder) finish(kind string, r *response) error {
	d.begin(r)
	if r == nil {
		r = &response{}
	}
	// With streamed items the list must not be read: items missing from it shift the indexes of the others.
	if len(d.Items) == 0 {
		for i := range r.Output {
			if err := d.finishItem(i, &r.Output[i]); err != nil {
				return err
			}
		}
	}
	b := &event.Body{Outcome: event.Completed, Reason: kind}
	switch kind {
	// The turn of a response with open questions continues in the next response.
	case "completed":
		if d.asks() {
			d.pause(r.Usage)
			return nil
		}
	case "incomplete":
		if r.Incomplete != nil && r.Incomplete.Reason != "" {
			b.Reason = decoding.StopReason(r.Incomplete.Reason)
		}
		if b.Reason == "content_filter" {
			b.Outcome = event.Failed
			b.Error = &event.Error{Code: b.Reason, Message: "the provider's filter stopped the answer"}
		}
	// A failed response should have an error; without one the turn gets a general message.
	case "failed":
		b.Outcome = event.Failed
		if r.Error == nil {
			r.Error = &failure{}
		}
		b.Error = r.Error.error()
	case "cancelled":
		b.Outcome = event.Cancelled
	}
	d.end(b, r.Usage)
	return nil
}

// error ends the turn with an error event. The current form has an object or a text under the key error; the older one has the code and the
// message in the event itself. An error of any other shape still ends the turn, with a general message.
func (d *decoder) error(in *frame) {
	f := failure{Message: in.Message}
	if in.Code != nil {
		f.Code = *in.Code
	}
	if len(in.Error) > 0 && json.Unmarshal(in.Error, &f) != nil {
		_ = json.Unmarshal(in.Error, &f.Message)
	}
	d.end(&event.Body{Outcome: event.Failed, Reason: "error", Error: f.error()}, nil)
}

// end ends the open items and questions, the message and the turn. u is the usage of the last response; it may be nil.
func (d *decoder) end(b *event.Body, u *usage) {
	for _, o := range d.Items {
		d.close(o)
	}
	d.endQuestions(b.Outcome)
	if d.Key != "" {
		d.Emit(event.Event{Type: event.MessageEnd, Message: d.Key, Body: &event.Body{Reason: b.Reason}})
	}
	d.use(u)
	total := d.PriorUsage
	if total.Model = d.Model; total != (event.Usage{}) {
		b.Usage = &total
	}
	d.IsOver = true
	d.Items = nil
	d.Emit(event.Event{Type: event.TurnEnd, Body: b})
}

// use adds the usage of a response that has ended; u may be nil.
func (d *decoder) use(u *usage) {
	if u == nil {
		return
	}
	t := u.total()
	d.PriorUsage.Input += t.Input
	d.PriorUsage.Output += t.Output
	d.PriorUsage.CacheRead += t.CacheRead
	d.PriorUsage.CacheWrite += t.CacheWrite
	d.PriorUsage.Reasoning += t.Reasoning
}

// pause ends a response that has asked for approvals. The turn doesn't end: the next response continues it with the answers.
func (d *decoder) pause(u *usage) {
	for _, o := range d.Items {
		d.close(o)
	}
	// The message stays open until the next response begins, because its questions may still be answered.
	d.use(u)
	d.Paused = true
}

// Close implements [dialect.Decoder].
func (d *decoder) Close() ([]event.Event, error) { return d.Base.Close(&d.IsOver, d.flushOpen) }

// flushOpen emits the buffered text of the open parts when the stream is cut short.
func (d *decoder) flushOpen() {
	for _, o := range d.Items {
		for _, p := range o.Parts {
			d.say(p, p.Text.Close())
		}
	}
}

// Unknown implements [dialect.Counter].
func (d *decoder) Unknown() dialect.Unknown { return d.Unknowns }

// Position returns the id of the response and the sequence_number of the last decoded event. A caller passes them to the API to resume a
// background response after a broken connection. The cursor is exclusive: the next event is the one after seq.
func (d *decoder) Position() (id string, seq int64) { return d.ID, d.Seq }

// State implements [dialect.Decoder].
func (d *decoder) State() ([]byte, error) { return decoding.State(&d.Base, states, &d.state) }

// Restore implements [dialect.Decoder].
func (d *decoder) Restore(b []byte) error { return decoding.Restore(b, &d.state, (*state).check) }

// check rejects null entries in a stored state, because the decoder dereferences every entry.
func (s *state) check() error {
	for _, o := range s.Items {
		if o == nil || slices.Contains(o.Parts, nil) {
			return errState
		}
	}
	if slices.Contains(s.Questions, nil) {
		return errState
	}
	return nil
}

// progress recognizes the events of a response's items. The states of the response itself are repeated while nothing happens, for example
// while the response is queued, and keepalive, whose type has no "response." prefix, only keeps the connection open.
func progress(kind string) bool {
	kind, ok := strings.CutPrefix(kind, "response.")
	switch kind {
	case "created", "queued", "in_progress":
		return false
	}
	return ok
}
