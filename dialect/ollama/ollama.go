package ollama

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

// name is that of the format, in configurations and requests.
const name = "ollama"

// The readers and writers of the types on the wire and of the state.
var (
	frames = jsonscan.NewReader[line]()
	states = jsonscan.NewWriter[state]()
)

// Dialect describes the streams of Ollama's own API.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:     name,
		Summary:  "Ollama's own API, NDJSON",
		Framing:  dialect.Lines,
		Progress: progress,
		Decoder:  func() dialect.Decoder { return &decoder{} },
	}
}

const (
	// key is the key of the only message, textKey that of its only text.
	key     = "answer"
	textKey = "text"
	// maxTools is the limit of calls in an answer; one more is an error. maxThoughts is the limit of reasoning parts; later reasoning is
	// appended to the last one. Each part is a key in the mapper's state, which is stored with commits.
	maxTools    = 1024
	maxThoughts = 1024
)

// line is any line of the stream. Texts are raw, because a character may be split between two of them.
type line struct {
	Type       string          `json:"type"`
	Model      string          `json:"model"`
	Message    *message        `json:"message"`  // of /api/chat
	Response   json.RawMessage `json:"response"` // of /api/generate, with Thinking
	Thinking   json.RawMessage `json:"thinking"`
	Done       bool            `json:"done"`
	DoneReason string          `json:"done_reason"`
	Prompt     int64           `json:"prompt_eval_count"` // tokens; only in the last line
	Eval       int64           `json:"eval_count"`
	Error      json.RawMessage `json:"error"`
}

// message is a piece of an answer. The arguments of a call are an object, unlike in OpenAI's API, and so always complete.
type message struct {
	Content   json.RawMessage `json:"content"`
	Thinking  json.RawMessage `json:"thinking"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// decoder is the dialect's decoder. Everything that must survive until the next frame is in state, which State encodes.
type decoder struct {
	state
	decoding.Base
	in line
}

var _ dialect.Counter = (*decoder)(nil)

// state is everything that the next line needs to know of the lines before.
type state struct {
	Lines      int             `json:"lines"`
	IsOver     bool            `json:"ended,omitempty"`
	HasMessage bool            `json:"begun,omitempty"`
	Texting    bool            `json:"texting,omitempty"` // the text has begun
	Text       dialect.Text    `json:"text,omitzero"`
	Thinking   bool            `json:"thinking,omitempty"` // a reasoning part is open
	Thoughts   int             `json:"thoughts,omitempty"` // the number of reasoning parts
	Thought    dialect.Text    `json:"thought,omitzero"`
	Tools      int             `json:"tools,omitempty"` // the number of calls
	Model      string          `json:"model,omitempty"`
	Unknowns   dialect.Unknown `json:"unknown,omitempty"`
}

// errManyTools keeps a faulty server from filling the memory with calls.
var errManyTools = fmt.Errorf("more than %d calls", maxTools)

// Decode implements [dialect.Decoder].
func (d *decoder) Decode(f dialect.Frame) ([]event.Event, error) {
	return d.Base.Decode(name, &d.Lines, d.IsOver, f, d.decodeFrame)
}

// decodeFrame decodes one line of the stream.
func (d *decoder) decodeFrame(f dialect.Frame) error {
	in, err := decoding.Read(frames, &d.in, f.Data)
	if err != nil {
		return err
	}
	if err := d.line(in); err != nil {
		return decoding.Fault("line", err)
	}
	return nil
}

// line applies a line of the stream. The last line of an answer has done and may also have a piece of text.
func (d *decoder) line(in *line) error {
	if in.Error != nil {
		d.error(in.Error)
		return nil
	}
	if in.Message == nil && in.Response == nil && !in.Done {
		d.Unknowns.Add(in.Type)
		return nil
	}
	d.SetModel(&d.Model, in.Model)
	m := in.Message
	if m == nil {
		m = &message{Content: in.Response, Thinking: in.Thinking}
	}
	if err := d.message(m); err != nil {
		return err
	}
	if in.Done {
		d.end(&event.Body{Outcome: event.Completed, Reason: decoding.StopReason(in.DoneReason)}, event.Usage{Input: in.Prompt, Output: in.Eval})
	}
	return nil
}

// message applies a piece of the answer: reasoning before text before calls, which is the order in which a model writes them. The result of a
// call isn't in the stream, so the part of a call ends at once.
func (d *decoder) message(m *message) error {
	thought, err := token(&d.Thought, m.Thinking)
	if err != nil {
		return err
	}
	d.think(thought)
	text, err := token(&d.Text, m.Content)
	if err != nil {
		return err
	}
	d.say(text)
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		if d.Tools == maxTools {
			return errManyTools
		}
		d.thought()
		d.Tools++
		part := "tool" + strconv.Itoa(d.Tools)
		input := decoding.Compact(c.Function.Arguments)
		if input == "" || input == "null" {
			input = "{}"
		}
		d.start(part, &event.Body{Kind: event.KindTool, Name: c.Function.Name, Call: c.ID})
		d.Emit(event.Event{Type: event.PartAppend, Message: key, Part: part, Field: event.Input, Text: input})
		d.Emit(event.Event{Type: event.PartEnd, Message: key, Part: part})
	}
	return nil
}

// token decodes a delta; an absent one is empty.
func token(t *dialect.Text, raw json.RawMessage) (string, error) {
	if raw == nil {
		return "", nil
	}
	return t.JSON(raw)
}

func (d *decoder) thoughtKey() string { return "reasoning" + strconv.Itoa(d.Thoughts) }

// think appends to the open reasoning part, and starts one if none is open.
func (d *decoder) think(text string) {
	if text == "" {
		return
	}
	if !d.Thinking {
		d.Thinking = true
		d.Thoughts++
		d.start(d.thoughtKey(), &event.Body{Kind: event.KindReasoning})
	}
	d.Emit(event.Event{Type: event.PartAppend, Message: key, Part: d.thoughtKey(), Text: text})
}

// thought ends the open reasoning part. The last part within the limit stays open until the turn ends, so that later reasoning can be
// appended to it.
func (d *decoder) thought() {
	if !d.Thinking || d.Thoughts == maxThoughts && !d.IsOver {
		return
	}
	d.think(d.Thought.Close())
	d.Emit(event.Event{Type: event.PartEnd, Message: key, Part: d.thoughtKey()})
	d.Thinking = false
}

// say appends to the answer's only text, which starts with its first character and ends the reasoning before it.
func (d *decoder) say(text string) {
	if text == "" {
		return
	}
	d.thought()
	if !d.Texting {
		d.Texting = true
		d.start(textKey, &event.Body{Kind: event.KindText, Join: event.JoinBlank})
	}
	d.Emit(event.Event{Type: event.PartAppend, Message: key, Part: textKey, Text: text})
}

// start emits the start of a part, after that of the message if needed.
func (d *decoder) start(part string, b *event.Body) {
	if !d.HasMessage {
		d.HasMessage = true
		d.Emit(event.Event{Type: event.MessageStart, Message: key, Body: &event.Body{Role: event.Assistant}})
	}
	d.Emit(event.Event{Type: event.PartStart, Message: key, Part: part, Body: b})
}

// error ends the turn with an error line. Ollama's errors are a text without a code, so none of them is known to be worth retrying.
func (d *decoder) error(raw json.RawMessage) {
	e := &event.Error{}
	if json.Unmarshal(raw, &e.Message) != nil || e.Message == "" {
		e.Message = "the upstream failed"
	}
	d.end(&event.Body{Outcome: event.Failed, Reason: "error", Error: e}, event.Usage{})
}

// end emits the buffered text and ends the open parts, the message and the turn. Nothing is buffered that could still be completed, because
// no line follows.
func (d *decoder) end(b *event.Body, total event.Usage) {
	d.IsOver = true
	d.thought()
	d.say(d.Text.Close())
	if d.Texting {
		d.Emit(event.Event{Type: event.PartEnd, Message: key, Part: textKey})
	}
	if d.HasMessage {
		d.EndMessage(key, b.Reason)
	}
	if total.Model = d.Model; total != (event.Usage{}) {
		b.Usage = &total
	}
	d.Emit(event.Event{Type: event.TurnEnd, Body: b})
}

// Close implements [dialect.Decoder].
func (d *decoder) Close() ([]event.Event, error) { return d.Base.Close(&d.IsOver, d.flushOpen) }

// flushOpen emits the buffered text of the open parts when the stream is cut short.
func (d *decoder) flushOpen() {
	if d.Thinking {
		d.think(d.Thought.Close())
	}
	d.say(d.Text.Close())
}

// Unknown implements [dialect.Counter].
func (d *decoder) Unknown() dialect.Unknown { return d.Unknowns }

// State implements [dialect.Decoder].
func (d *decoder) State() ([]byte, error) { return decoding.State(&d.Base, states, &d.state) }

// Restore implements [dialect.Decoder].
func (d *decoder) Restore(b []byte) error { return decoding.Restore(b, &d.state, nil) }

// progress recognizes the model's tokens, also empty ones: Ollama sends an empty text for each token while it buffers a tool call.
func progress(f dialect.Frame) bool {
	var in struct {
		Message  *json.RawMessage `json:"message"`
		Response *json.RawMessage `json:"response"`
	}
	return json.Unmarshal(f.Data, &in) == nil && (in.Message != nil || in.Response != nil)
}
