package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
)

const name = "gemini"

// Dialect describes the stream of Gemini's streamGenerateContent.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:     name,
		Summary:  "Gemini streamGenerateContent, SSE",
		Framing:  dialect.SSE,
		EOF:      true,
		Progress: progress,
		Decoder:  func() dialect.Decoder { return &decoder{} },
	}
}

// maxCandidates bounds the answers of a stream, maxParts the parts of an answer.
const (
	maxCandidates = 128
	maxParts      = 8192
)

// decoder is the dialect's decoder. Everything that must survive until the next frame is in state, which State encodes.
type decoder struct {
	state
	decoding.Base
}

var (
	_ dialect.Decoder = (*decoder)(nil)
	_ dialect.Counter = (*decoder)(nil)
)

type state struct {
	Frames   int             `json:"frames"`
	IsOver   bool            `json:"ended,omitempty"`
	Answers  []*answer       `json:"answers,omitempty"` // in order of their first chunk
	Model    string          `json:"model,omitempty"`
	Usage    usage           `json:"usage,omitzero"`
	Unknowns dialect.Unknown `json:"unknown,omitempty"`
}

var (
	errNoObject    = errors.New("a frame is an object")
	errManyAnswers = fmt.Errorf("more than %d candidates", maxCandidates)
	errManyParts   = fmt.Errorf("more than %d parts of a candidate", maxParts)
	errState       = errors.New("a candidate is incomplete")
)

// Decode implements [dialect.Decoder].
func (d *decoder) Decode(f dialect.Frame) ([]event.Event, error) {
	return d.Base.Decode(name, &d.Frames, d.IsOver, f, d.decodeFrame)
}

func (d *decoder) decodeFrame(f dialect.Frame) error {
	if !bytes.HasPrefix(bytes.TrimSpace(f.Data), []byte("{")) {
		return decoding.Fault("invalid JSON", errNoObject)
	}
	var in chunk
	if err := json.Unmarshal(f.Data, &in); err != nil {
		return decoding.Fault("invalid JSON", err)
	}
	if err := d.chunk(&in); err != nil {
		return decoding.Fault("chunk", err)
	}
	return nil
}

func (d *decoder) chunk(in *chunk) error {
	if in.Usage != nil {
		d.Usage.add(in.Usage)
	}
	if in.Model != "" && in.Model != d.Model {
		d.Model = in.Model
		d.Emit(event.Event{Type: event.TurnUpdate, Body: &event.Body{Model: in.Model}})
	}
	switch {
	case in.Error != nil:
		d.abort("error", in.Error.error())
		return nil
	case in.Feedback != nil && in.Feedback.Reason != "" && len(in.Candidates) == 0:
		e := &event.Error{Code: strings.ToLower(in.Feedback.Reason), Message: in.Feedback.Message}
		if e.Message == "" {
			e.Message = "the prompt was blocked: " + e.Code
		}
		d.abort("blocked", e)
		return nil
	case in.Candidates == nil && in.Usage == nil && in.Model == "":
		d.Unknowns.Add(in.Type)
	}
	for i := range in.Candidates {
		if err := d.candidate(&in.Candidates[i]); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) candidate(in *candidate) error {
	a, err := d.answer(in.Index)
	if err != nil || a.Finished {
		return err
	}
	if in.Content != nil {
		for i := range in.Content.Parts {
			if err := d.piece(a, &in.Content.Parts[i]); err != nil {
				return err
			}
		}
	}
	if in.Finish != "" {
		d.finish(a, in.Finish, in.Message)
	}
	return nil
}

// answer returns the candidate of an index. A new one begins its message.
func (d *decoder) answer(index int) (*answer, error) {
	i := slices.IndexFunc(d.Answers, func(a *answer) bool { return a.Index == index })
	if i >= 0 {
		return d.Answers[i], nil
	}
	if len(d.Answers) == maxCandidates {
		return nil, errManyAnswers
	}
	a := &answer{Index: index}
	d.Answers = append(d.Answers, a)
	d.Emit(event.Event{Type: event.MessageStart, Message: a.key(), Body: &event.Body{Role: event.Assistant}})
	return a, nil
}

// finish ends a candidate.
func (d *decoder) finish(a *answer, reason, message string) {
	d.endPart(a)
	d.endServed(a)
	*a = answer{Index: a.Index, Finished: true, Reason: reason, Message: message}
	e := event.Event{Type: event.MessageEnd, Message: a.key()}
	if reason != "" {
		e.Body = &event.Body{Reason: stopReason(reason)}
	}
	d.Emit(e)
}

// stopReason returns the reason that readers get for a finishReason.
func stopReason(finish string) string { return decoding.StopReason(strings.ToLower(finish)) }

// abort ends the turn with an error.
func (d *decoder) abort(reason string, err *event.Error) {
	for _, a := range d.Answers {
		if !a.Finished {
			d.finish(a, reason, "")
		}
	}
	d.end(&event.Body{Outcome: event.Failed, Reason: reason, Error: err})
}

// endTurn ends the turn if every candidate has finished.
func (d *decoder) endTurn() {
	answer := d.Answers[0]
	for _, a := range d.Answers {
		if a.Index == 0 {
			answer = a
		}
	}
	b := &event.Body{Outcome: event.Completed, Reason: stopReason(answer.Reason)}
	if !completed[answer.Reason] {
		b.Outcome = event.Failed
		b.Error = &event.Error{Code: b.Reason, Message: answer.Message}
		if b.Error.Message == "" {
			b.Error.Message = "the provider stopped the answer: " + b.Reason
		}
	}
	d.end(b)
}

// end ends the turn.
func (d *decoder) end(b *event.Body) {
	total := d.Usage.total()
	if total.Model = d.Model; total != (event.Usage{}) {
		b.Usage = &total
	}
	d.IsOver = true
	d.Answers = nil
	d.Emit(event.Event{Type: event.TurnEnd, Body: b})
}

// Close implements [dialect.Decoder].
func (d *decoder) Close() ([]event.Event, error) { return d.Base.Close(&d.IsOver, d.flushOpen) }

// flushOpen ends the turn if every candidate has finished, because the format has no end frame. Otherwise it emits the buffered text.
func (d *decoder) flushOpen() {
	open := slices.ContainsFunc(d.Answers, func(a *answer) bool { return !a.Finished })
	if !d.Failed() && len(d.Answers) > 0 && !open {
		d.endTurn()
		return
	}
	for _, a := range d.Answers {
		if a.Open == kindText || a.Open == kindThought {
			d.say(a, a.Text.Close())
		}
	}
}

// Unknown implements [dialect.Counter].
func (d *decoder) Unknown() dialect.Unknown { return d.Unknowns }

// State implements [dialect.Decoder].
func (d *decoder) State() ([]byte, error) { return json.Marshal(&d.state) }

// Restore implements [dialect.Decoder].
func (d *decoder) Restore(b []byte) error { return decoding.Restore(b, &d.state, (*state).check) }

// check rejects null candidates in a stored state, and candidates with an open call but no argument parser.
func (s *state) check() error {
	for _, a := range s.Answers {
		if a == nil || a.Open == kindCall && a.Args == nil {
			return errState
		}
	}
	return nil
}
