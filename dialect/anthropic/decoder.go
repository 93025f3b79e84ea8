package anthropic

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

// name is that of the format, in configurations and requests.
const name = "anthropic"

// The readers and writers of the types on the wire and of the state.
var (
	frames = jsonscan.NewReader[frame]()
	states = jsonscan.NewWriter[state]()
)

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
	in frame
}

var _ dialect.Counter = (*decoder)(nil)

// state is everything that the next frame needs to know of the frames before. It has no text except incomplete characters, because it is
// stored with every commit.
type state struct {
	Frames int  `json:"frames"`
	IsOver bool `json:"ended,omitempty"`

	// The current message.
	ID          string `json:"id,omitempty"`       // the upstream's
	Key         string `json:"key,omitempty"`      // empty if no message is open
	Messages    int    `json:"messages,omitempty"` // the number of messages of the turn
	Parts       int    `json:"parts,omitempty"`    // the number of its parts; the next one's key
	Before      string `json:"before,omitempty"`   // the type of its last block
	Stop        string `json:"stop,omitempty"`     // its stop reason
	Explanation string `json:"why,omitempty"`      // explanation of a refusal

	Open  []*open `json:"open,omitempty"`  // blocks, in order of their start
	Tools []*tool `json:"tools,omitempty"` // calls whose parts have not ended, in order, also of earlier messages

	Model string      `json:"model,omitempty"`
	Usage event.Usage `json:"usage,omitzero"` // of the current message
	Total event.Usage `json:"total,omitzero"` // of the messages that have ended

	Unknowns dialect.Unknown `json:"unknown,omitempty"`
}

// open is a block between its start and its stop.
type open struct {
	Index int          `json:"index"`
	Type  string       `json:"type"`
	Part  string       `json:"part,omitempty"` // key; empty if the block is not shown
	Text  dialect.Text `json:"text,omitzero"`
	// HasInput is true if the start of a tool's block had an input, Input if one of its deltas had.
	HasInput bool `json:"given,omitempty"`
	Input    bool `json:"input,omitempty"`
}

// tool is a call whose part is open.
type tool struct {
	Call    string `json:"call"`
	Message string `json:"message"` // key of the message with the call, which may have ended
	Part    string `json:"part"`
	Server  bool   `json:"server,omitempty"` // the server runs it, so a result may follow
}

// maxParts is the limit of parts in a message, maxOpen that of blocks that are open at once, maxMessages that of messages in a turn. One more
// is an error. No model comes near them, and the state has an entry for each.
const (
	maxParts    = 8192
	maxOpen     = 1024
	maxMessages = 1024
)

// The causes of invalid frames. decodeFrame adds the type of the event.
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

// decodeFrame first tries to read the frame as the delta of a text, without encoding/json: most frames of a stream are such deltas.
func (d *decoder) decodeFrame(f dialect.Frame) error {
	// A delta is the only frequent frame, so every other frame costs one failed scan, which stops at the first different byte.
	if index, f, token, ok := scan(f.Data); ok {
		if err := d.grow(index, f, token); err != nil {
			return decoding.Fault("content_block_delta", err)
		}
		return nil
	}
	in, err := frames.Read(&d.in, f.Data)
	if err != nil {
		return decoding.Fault("invalid JSON", err)
	}
	in.Type = cmp.Or(in.Type, f.Event)
	if err := d.route(in); err != nil {
		return decoding.Fault(in.Type, err)
	}
	return nil
}

// route applies an event by its type. The usage in message_delta replaces that of message_start: both are totals of the message.
func (d *decoder) route(in *frame) error {
	switch in.Type {
	case "content_block_delta":
		return d.delta(in)
	case "content_block_start":
		return d.start(in)
	// A stop without its start changes nothing.
	case "content_block_stop":
		if b := d.block(in.Index); b != nil {
			d.stop(b)
		}
	case "message_start":
		return d.begin(in)
	// The stop reason takes effect at message_stop.
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

// begin applies a message_start. An upstream that was restarted in the middle of a message sends another one, with a new id; the
// current message then ends as aborted. The key of every message but the first has its number, because an upstream may use an id
// again.
func (d *decoder) begin(in *frame) error {
	if in.Message == nil {
		return fmt.Errorf("message: %w", errMissing)
	}
	if d.Key != "" {
		if in.Message.ID == d.ID {
			return nil
		}
		d.endMessage("aborted") // readers keep the text so far
	}
	if d.Messages == maxMessages {
		return errMany
	}
	d.Messages++
	// The key of the first message is the bare id: a turn nearly always has one message.
	d.ID, d.Key = in.Message.ID, in.Message.ID
	if d.Messages > 1 || d.Key == "" {
		d.Key = fmt.Sprintf("%s/%d", d.ID, d.Messages)
	}
	d.count(in.Message.Usage)
	d.SetModel(&d.Model, in.Message.Model)
	d.Emit(event.Event{Type: event.MessageStart, Message: d.Key, Body: &event.Body{Role: event.Assistant}})
	return nil
}

// count applies a usage of the current message. A number that it leaves out is unchanged.
func (d *decoder) count(u *usage) {
	if u == nil {
		return
	}
	setTotal(&d.Usage.Input, u.Input)
	setTotal(&d.Usage.Output, u.Output)
	setTotal(&d.Usage.CacheRead, u.CacheRead)
	setTotal(&d.Usage.CacheWrite, u.CacheWrite)
}

// setTotal sets *to to a number that a frame has. Numbers are totals, so they replace each other.
func setTotal(to, v *int64) {
	if v != nil {
		*to = *v
	}
}

// finish applies a message_stop: it ends the message and, unless the model only paused, the turn. A refusal is a failure, because its answer
// is not what was asked for and may be empty.
func (d *decoder) finish() {
	stop, explanation := d.Stop, d.Explanation
	d.endMessage(stop)
	switch stop {
	case "pause_turn":
	case "refusal":
		explanation = cmp.Or(explanation, "the model refused to answer")
		d.end(&event.Body{Outcome: event.Failed, Reason: stop, Error: &event.Error{Code: stop, Message: explanation}})
	default:
		d.end(&event.Body{Outcome: event.Completed, Reason: stop})
	}
}

// error ends the turn with an error event. An error of an unknown shape still ends the turn, with a general message.
func (d *decoder) error(in *frame) {
	var f failure
	if json.Unmarshal(in.Error, &f) != nil || f.Message == "" {
		f.Message = cmp.Or(f.Type, "the upstream failed")
	}
	if d.Key != "" {
		d.endMessage("error")
	}
	d.end(&event.Body{Outcome: event.Failed, Reason: "error", Error: &event.Error{Code: f.Type, Message: f.Message, Retryable: retryable[f.Type]}})
}

// endMessage ends the open blocks of the current message, its tools and the message itself. The part of a tool that the server runs
// stays open, because after pause_turn its result is in the next message.
func (d *decoder) endMessage(reason string) {
	for len(d.Open) > 0 {
		d.stop(d.Open[0])
	}
	openTools := d.Tools[:0] // filters in place
	for _, t := range d.Tools {
		if t.Server {
			openTools = append(openTools, t)
		} else {
			d.Emit(event.Event{Type: event.PartEnd, Message: t.Message, Part: t.Part})
		}
	}
	d.Tools = openTools
	d.EndMessage(d.Key, reason)
	d.Total.Input += d.Usage.Input
	d.Total.Output += d.Usage.Output
	d.Total.CacheRead += d.Usage.CacheRead
	d.Total.CacheWrite += d.Usage.CacheWrite
	d.Usage = event.Usage{}
	d.ID, d.Key, d.Parts, d.Before, d.Stop, d.Explanation = "", "", 0, "", "", ""
}

// end ends the turn and reports the usage of all its messages. Tools that are still open end with the turn.
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
func (d *decoder) State() ([]byte, error) { return decoding.State(&d.Base, states, &d.state) }

// Restore implements [dialect.Decoder].
func (d *decoder) Restore(b []byte) error { return decoding.Restore(b, &d.state, (*state).check) }

// check rejects null entries in a stored state, because the decoder dereferences every entry.
func (s *state) check() error {
	if slices.Contains(s.Open, nil) || slices.Contains(s.Tools, nil) {
		return errNoBlock
	}
	return nil
}
