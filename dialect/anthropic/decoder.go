package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
)

const name = "anthropic"

// Dialect describes the stream of the Anthropic Messages API.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:     name,
		Summary:  "Anthropic Messages API, SSE",
		Framing:  dialect.SSE,
		Progress: dialect.ProgressTypes(func(kind string) bool { return strings.HasPrefix(kind, "content_block_") || kind == "message_delta" }),
		Decoder:  func() dialect.Decoder { return &decoder{} },
	}
}

// decoder is the dialect's decoder. Everything that must survive until the next frame is in state, which State encodes.
type decoder struct {
	state
	decoding.Base
	in frame // reused
}

var (
	_ dialect.Decoder = (*decoder)(nil)
	_ dialect.Counter = (*decoder)(nil)
)

type state struct {
	Frames int  `json:"frames"`
	IsOver bool `json:"ended,omitempty"`

	// The message at hand.
	ID          string `json:"id,omitempty"`
	Key         string `json:"key,omitempty"` // empty: none is open
	Messages    int    `json:"messages,omitempty"`
	Parts       int    `json:"parts,omitempty"` // ordinals of its blocks given away
	Before      string `json:"before,omitempty"`
	Stop        string `json:"stop,omitempty"`
	Explanation string `json:"why,omitempty"` // explanation of a refusal

	Open  []*open `json:"open,omitempty"`  // blocks, in order of their start
	Tools []*tool `json:"tools,omitempty"` // calls whose parts have not ended, in order

	Model string      `json:"model,omitempty"`
	Usage tokens      `json:"usage,omitzero"` // of the message at hand
	Total event.Usage `json:"total,omitzero"` // of the messages before

	Unknowns dialect.Unknown `json:"unknown,omitempty"`
}

// open is a block between its start and its stop.
type open struct {
	Index int          `json:"index"`
	Type  string       `json:"type"`
	Part  string       `json:"part,omitempty"` // key; empty if the block is not shown
	Text  dialect.Text `json:"text,omitzero"`
	// Given says that the block's start brought an input; Input that a delta has brought some.
	HasInput bool `json:"given,omitempty"`
	Input    bool `json:"input,omitempty"`
}

// tool is a call whose part is open.
type tool struct {
	Call    string `json:"call"`
	Message string `json:"message"`
	Part    string `json:"part"`
	Server  bool   `json:"server,omitempty"` // a result may follow
}

type tokens struct {
	Input      int64 `json:"input,omitempty"`
	Output     int64 `json:"output,omitempty"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
}

// maxParts bounds the parts of a message, maxOpen the blocks that are open at once, maxMessages the messages of a turn; no model
// comes near.
const (
	maxParts    = 8192
	maxOpen     = 1024
	maxMessages = 1024
)

var (
	errNoType    = errors.New("a frame is an object with a type")
	errNoMessage = errors.New("a block before message_start")
	errNoBlock   = errors.New("no such block is open")
	errMissing   = errors.New("it is missing")
	errMany      = errors.New("there are too many blocks or messages")
)

// Decode implements [dialect.Decoder].
func (d *decoder) Decode(f dialect.Frame) ([]event.Event, error) {
	return d.Base.Decode(name, &d.Frames, d.IsOver, f, d.decodeFrame)
}

func (d *decoder) decodeFrame(f dialect.Frame) error {
	if index, f, token, ok := scan(f.Data); ok {
		if err := d.grow(index, f, token); err != nil {
			return decoding.Fault("content_block_delta", err)
		}
		return nil
	}
	d.in = frame{}
	in := &d.in
	if err := json.Unmarshal(f.Data, in); err != nil {
		return decoding.Fault("invalid JSON", err)
	}
	if in.Type == "" {
		in.Type = f.Event
	}
	if err := d.route(in); err != nil {
		return decoding.Fault(in.Type, err)
	}
	return nil
}

func (d *decoder) route(in *frame) error {
	switch in.Type {
	case "content_block_delta":
		return d.delta(in)
	case "content_block_start":
		return d.start(in)
	case "content_block_stop":
		if b := d.block(in.Index); b != nil {
			d.stop(b)
		}
	case "message_start":
		return d.begin(in)
	case "message_delta":
		d.count(in.Usage)
		if in.Delta != nil && in.Delta.StopReason != "" {
			d.Stop = decoding.StopReason(in.Delta.StopReason)
			if s := in.Delta.StopDetails; s != nil {
				d.Explanation = s.Explanation
			}
		}
	case "message_stop":
		if d.Key == "" {
			return errNoMessage
		}
		d.finish()
	case "error":
		d.error(in)
	case "ping":
	case "":
		return errNoType
	default:
		d.Unknowns.Add(in.Type)
	}
	return nil
}

// begin takes a message_start.
func (d *decoder) begin(in *frame) error {
	if in.Message == nil {
		return fmt.Errorf("message: %w", errMissing)
	}
	if d.Key != "" {
		if in.Message.ID == d.ID {
			return nil // sent twice
		}
		d.endMessage("aborted")
	}
	if d.Messages == maxMessages {
		return errMany
	}
	d.Messages++
	d.ID, d.Key = in.Message.ID, in.Message.ID
	if d.Messages > 1 || d.Key == "" {
		d.Key = fmt.Sprintf("%s/%d", d.ID, d.Messages) // an upstream may come back to an id
	}
	d.count(in.Message.Usage)
	d.model(in.Message.Model)
	d.Emit(event.Event{Type: event.MessageStart, Message: d.Key, Body: &event.Body{Role: event.Assistant}})
	return nil
}

func (d *decoder) model(name string) {
	if name != "" && name != d.Model {
		d.Model = name
		d.Emit(event.Event{Type: event.TurnUpdate, Body: &event.Body{Model: name}})
	}
}

func (d *decoder) count(u *usage) {
	if u == nil {
		return
	}
	setTotal(&d.Usage.Input, u.Input)
	setTotal(&d.Usage.Output, u.Output)
	setTotal(&d.Usage.CacheRead, u.CacheRead)
	setTotal(&d.Usage.CacheWrite, u.CacheWrite)
}

func setTotal(to, v *int64) {
	if v != nil {
		*to = *v
	}
}

// finish takes a message_stop.
func (d *decoder) finish() {
	stop, explanation := d.Stop, d.Explanation
	d.endMessage(stop)
	switch stop {
	case "pause_turn":
	case "refusal":
		if explanation == "" {
			explanation = "the model refused to answer"
		}
		d.end(&event.Body{Outcome: event.Failed, Reason: stop, Error: &event.Error{Code: stop, Message: explanation}})
	default:
		d.end(&event.Body{Outcome: event.Completed, Reason: stop})
	}
}

func (d *decoder) error(in *frame) {
	var f failure
	if json.Unmarshal(in.Error, &f) != nil || f.Message == "" {
		f.Message = "the upstream failed"
		if f.Type != "" {
			f.Message = f.Type
		}
	}
	if d.Key != "" {
		d.endMessage("error")
	}
	d.end(&event.Body{Outcome: event.Failed, Reason: "error", Error: &event.Error{Code: f.Type, Message: f.Message, Retryable: retryable[f.Type]}})
}

// endMessage ends the message at hand and what it left open. A server's tool may yet give its result in the next one.
func (d *decoder) endMessage(reason string) {
	for len(d.Open) > 0 {
		d.stop(d.Open[0])
	}
	openTools := d.Tools[:0]
	for _, t := range d.Tools {
		if t.Server {
			openTools = append(openTools, t)
		} else {
			d.Emit(event.Event{Type: event.PartEnd, Message: t.Message, Part: t.Part})
		}
	}
	d.Tools = openTools
	e := event.Event{Type: event.MessageEnd, Message: d.Key}
	if reason != "" {
		e.Body = &event.Body{Reason: reason}
	}
	d.Emit(e)
	d.Total.Input += d.Usage.Input
	d.Total.Output += d.Usage.Output
	d.Total.CacheRead += d.Usage.CacheRead
	d.Total.CacheWrite += d.Usage.CacheWrite
	d.Usage = tokens{}
	d.ID, d.Key, d.Parts, d.Before, d.Stop, d.Explanation = "", "", 0, "", "", ""
}

// end ends the turn.
func (d *decoder) end(b *event.Body) {
	d.IsOver = true
	total := d.Total
	total.Model = d.Model
	if total != (event.Usage{}) {
		b.Usage = &total
	}
	d.Open, d.Tools = nil, nil
	d.Emit(event.Event{Type: event.TurnEnd, Body: b})
}

// Close implements [dialect.Decoder].
func (d *decoder) Close() ([]event.Event, error) { return d.Base.Close(&d.IsOver, d.flushOpen) }

// flushOpen emits the buffered text of the open parts when the stream is cut short.
func (d *decoder) flushOpen() {
	for _, b := range d.Open {
		d.flush(b)
	}
}

// Unknown implements [dialect.Counter].
func (d *decoder) Unknown() dialect.Unknown { return d.Unknowns }

// State implements [dialect.Decoder].
func (d *decoder) State() ([]byte, error) { return json.Marshal(&d.state) }

// Restore implements [dialect.Decoder].
func (d *decoder) Restore(b []byte) error { return decoding.Restore(b, &d.state, (*state).check) }

// check rejects null entries in a stored state, because the decoder dereferences every entry.
func (s *state) check() error {
	if slices.Contains(s.Open, nil) || slices.Contains(s.Tools, nil) {
		return errNoBlock
	}
	return nil
}
