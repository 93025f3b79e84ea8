package openaichat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

// name is that of the format, in configurations and requests.
const name = "openai-chat"

// The readers and writers of the types on the wire and of the state.
var (
	frames = jsonscan.NewReader[chunk]()
	states = jsonscan.NewWriter[state]()
)

// Dialect describes the stream of the Chat Completions API.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:     name,
		Summary:  "OpenAI Chat Completions API, SSE",
		Framing:  dialect.SSE,
		EOF:      true,
		Progress: progress,
		Decoder:  func() dialect.Decoder { return &decoder{} },
	}
}

const (
	// maxChoices is the limit of choices in a stream, maxTools that of calls in a choice; one more is an error. Real answers have far fewer, and
	// the state of each is stored with every commit.
	maxChoices = 128
	maxTools   = 1024
	// maxThoughts is the limit of reasoning parts in a choice. Later reasoning is appended to the last one.
	maxThoughts = 1024
)

// decoder is the dialect's decoder. Everything that must survive until the next frame is in state, which State encodes.
type decoder struct {
	state
	decoding.Base
	in chunk
}

var _ dialect.Counter = (*decoder)(nil)

// state is everything that the next frame needs to know of the frames before. It has no text except incomplete characters, because it is
// stored with every commit.
type state struct {
	Frames   int             `json:"frames"`
	IsOver   bool            `json:"ended,omitempty"`
	Choices  []*choice       `json:"choices,omitempty"` // in order of their first chunk
	Model    string          `json:"model,omitempty"`
	Usage    event.Usage     `json:"usage,omitzero"`
	Unknowns dialect.Unknown `json:"unknown,omitempty"`
}

var (
	errManyChoices = fmt.Errorf("more than %d choices", maxChoices)
	errManyTools   = fmt.Errorf("more than %d tool calls", maxTools)
	errState       = errors.New("a choice or tool is missing")
)

// doneMarker is the data of the last frame, the only one that isn't JSON.
var doneMarker = []byte("[DONE]")

// Decode implements [dialect.Decoder].
func (d *decoder) Decode(f dialect.Frame) ([]event.Event, error) {
	return d.Base.Decode(name, &d.Frames, d.IsOver, f, d.decodeFrame)
}

// decodeFrame decodes one chunk, or the [DONE] that ends the stream.
func (d *decoder) decodeFrame(f dialect.Frame) error {
	data := bytes.TrimSpace(f.Data)
	if bytes.Equal(data, doneMarker) {
		d.finishTurn()
		return nil
	}
	in, err := decoding.Read(frames, &d.in, data)
	if err != nil {
		return err
	}
	if err := d.route(in, f.Event, data); err != nil {
		return decoding.Fault("chunk", err)
	}
	return nil
}

// route applies a chunk, or the error in its place. Servers put an error in one of four places: the key "error", an object of type error, an
// event named error, and in Groq's case x_groq. event is the SSE name and data the whole chunk, which is itself the error in two of the
// forms.
func (d *decoder) route(in *chunk, event string, data []byte) error {
	switch {
	case !null(in.Error):
		d.error(in.Error)
		return nil
	case in.Object == "error", event == "error" && len(in.Choices) == 0:
		d.error(data)
		return nil
	}
	total := in.Usage
	if in.Groq != nil && total == nil {
		total = in.Groq.Usage
	}
	if in.Choices == nil && total == nil {
		d.Unknowns.Add(cmp.Or(in.Type, in.Object))
		return nil
	}
	d.SetModel(&d.Model, in.Model)
	if total != nil {
		d.Usage = total.total()
	}
	for i := range in.Choices {
		if err := d.choice(&in.Choices[i]); err != nil {
			return err
		}
	}
	if in.Groq != nil && !null(in.Groq.Error) {
		d.error(in.Groq.Error)
	}
	return nil
}

// choice applies a choice of a chunk. After its finish_reason it is complete, and later deltas for it are ignored.
func (d *decoder) choice(in *wireChoice) error {
	c, err := d.find(in.Index)
	if err != nil {
		return err
	}
	if c.Finished {
		return nil
	}
	if err := d.delta(c, &in.Delta); err != nil {
		return err
	}
	if in.Finish != "" {
		d.finish(c, decoding.StopReason(in.Finish))
	}
	return nil
}

// find returns the choice with an index. The first chunk of a choice starts its message.
func (d *decoder) find(index int) (*choice, error) {
	if i := slices.IndexFunc(d.Choices, func(c *choice) bool { return c.Index == index }); i >= 0 {
		return d.Choices[i], nil
	}
	if len(d.Choices) == maxChoices {
		return nil, errManyChoices
	}
	c := &choice{Index: index}
	d.Choices = append(d.Choices, c)
	d.Emit(event.Event{Type: event.MessageStart, Message: c.key(), Body: &event.Body{Role: event.Assistant}})
	return c, nil
}

// finishTurn ends the turn after [DONE], or at the end of a body in which every choice has finished. The turn has the reason of choice 0, or
// that of the first choice if the stream has no choice 0.
func (d *decoder) finishTurn() {
	for _, c := range d.Choices {
		if !c.Finished {
			d.finish(c, "")
		}
	}
	b := &event.Body{Outcome: event.Completed}
	if len(d.Choices) > 0 {
		i := slices.IndexFunc(d.Choices, func(c *choice) bool { return c.Index == 0 })
		b.Reason = d.Choices[max(i, 0)].Reason
	}
	if b.Reason == "content_filter" {
		b.Outcome = event.Failed
		b.Error = &event.Error{Code: b.Reason, Message: "the provider's filter stopped the answer"}
	}
	d.end(b)
}

// error ends the turn as failed. Choices that have finished before keep their own reason.
func (d *decoder) error(raw json.RawMessage) {
	for _, c := range d.Choices {
		if !c.Finished {
			d.finish(c, "error")
		}
	}
	d.end(&event.Body{Outcome: event.Failed, Reason: "error", Error: readError(raw)})
}

// end ends the turn and reports its usage. The model is reported even if the server sent no usage, because prices depend on it.
func (d *decoder) end(b *event.Body) {
	d.IsOver = true
	if total := d.Usage; total != (event.Usage{}) || d.Model != "" {
		total.Model = d.Model
		b.Usage = &total
	}
	d.Choices = nil
	d.Emit(event.Event{Type: event.TurnEnd, Body: b})
}

// Close implements [dialect.Decoder].
func (d *decoder) Close() ([]event.Event, error) { return d.Base.Close(&d.IsOver, d.flushOpen) }

// flushOpen ends the turn if every choice has finished, because servers may omit [DONE]. Otherwise it emits the buffered text.
func (d *decoder) flushOpen() {
	open := slices.ContainsFunc(d.Choices, func(c *choice) bool { return !c.Finished })
	if !d.Failed() && len(d.Choices) > 0 && !open {
		d.finishTurn()
		return
	}
	for _, c := range d.Choices {
		if !c.Finished {
			d.flush(c)
		}
	}
}

// Unknown implements [dialect.Counter].
func (d *decoder) Unknown() dialect.Unknown { return d.Unknowns }

// State implements [dialect.Decoder].
func (d *decoder) State() ([]byte, error) { return decoding.State(&d.Base, states, &d.state) }

// Restore implements [dialect.Decoder].
func (d *decoder) Restore(b []byte) error { return decoding.Restore(b, &d.state, (*state).check) }

// check rejects null entries in a stored state, because the decoder dereferences every entry.
func (s *state) check() error {
	for _, c := range s.Choices {
		if c == nil || slices.Contains(c.Tools, nil) {
			return errState
		}
	}
	return nil
}

// progress recognizes the model's tokens, also empty ones: servers send an empty delta for each token of a tool call that they buffer, or of
// reasoning that they hide. A chunk without choices has no part of the answer.
func progress(f dialect.Frame) bool {
	var in struct {
		Choices []json.RawMessage `json:"choices"`
	}
	return json.Unmarshal(f.Data, &in) == nil && len(in.Choices) > 0
}
