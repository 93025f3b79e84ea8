package gemini

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
const name = "gemini"

// The readers and writers of the types on the wire and of the state.
var (
	frames = jsonscan.NewReader[chunk]()
	states = jsonscan.NewWriter[state]()
)

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

// maxCandidates is the limit of candidates in a stream, maxParts that of parts in a candidate; one more is an error. Each is a key in the
// mapper's state, which is stored with commits.
const (
	maxCandidates = 128
	maxParts      = 8192
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
	Answers  []*answer       `json:"answers,omitempty"` // in order of their first chunk
	Model    string          `json:"model,omitempty"`
	Usage    usage           `json:"usage,omitzero"`
	Unknowns dialect.Unknown `json:"unknown,omitempty"`
}

// The causes of invalid frames and states.
var (
	errManyAnswers = fmt.Errorf("more than %d candidates", maxCandidates)
	errManyParts   = fmt.Errorf("more than %d parts of a candidate", maxParts)
	errState       = errors.New("a candidate is incomplete")
)

// Decode implements [dialect.Decoder].
func (d *decoder) Decode(f dialect.Frame) ([]event.Event, error) {
	return d.Base.Decode(name, &d.Frames, d.IsOver, f, d.decodeFrame)
}

// decodeFrame decodes one response of the stream.
func (d *decoder) decodeFrame(f dialect.Frame) error {
	in, err := decoding.Read(frames, &d.in, f.Data)
	if err != nil {
		return err
	}
	if err := d.chunk(in); err != nil {
		return decoding.Fault("chunk", err)
	}
	return nil
}

// chunk applies a frame. A rejected prompt has feedback and no candidates; feedback next to candidates is only a rating. A frame with none of
// the known fields is counted as unknown.
func (d *decoder) chunk(in *chunk) error {
	if in.Usage != nil {
		d.Usage.add(in.Usage)
	}
	d.SetModel(&d.Model, in.Model)
	switch {
	case in.Error != nil:
		d.abort("error", in.Error.error())
		return nil
	case in.Feedback != nil && in.Feedback.Reason != "" && len(in.Candidates) == 0:
		code := strings.ToLower(in.Feedback.Reason)
		d.abort("blocked", &event.Error{Code: code, Message: cmp.Or(in.Feedback.Message, "the prompt was blocked: "+code)})
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

// candidate applies what a frame has for one candidate. After its finishReason it is complete, and further parts are ignored.
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

// answer returns the candidate with an index. The first frame of a candidate starts its message.
func (d *decoder) answer(index int) (*answer, error) {
	if i := slices.IndexFunc(d.Answers, func(a *answer) bool { return a.Index == index }); i >= 0 {
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

// finish ends a candidate with its open parts and its message. Only what the end of the turn needs remains of its state.
func (d *decoder) finish(a *answer, reason, message string) {
	d.endPart(a)
	d.endServed(a)
	// Later frames only need to know that the candidate has finished, and the end of the turn why.
	*a = answer{Index: a.Index, Finished: true, Reason: reason, Message: message}
	d.EndMessage(a.key(), stopReason(reason))
}

// stopReason returns the reason that readers get for a finishReason.
func stopReason(finish string) string { return decoding.StopReason(strings.ToLower(finish)) }

// abort ends the turn with an error. Candidates that have finished before keep their own reason.
func (d *decoder) abort(reason string, err *event.Error) {
	for _, a := range d.Answers {
		if !a.Finished {
			d.finish(a, reason, "")
		}
	}
	d.end(&event.Body{Outcome: event.Failed, Reason: reason, Error: err})
}

// endTurn ends the turn after every candidate has finished. Its outcome is that of candidate 0, or of the first one if the stream
// has no candidate 0. Any other reason than the model's own end or the length limit is a failure, such as SAFETY: the answer is not
// what the model wanted to write.
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
		b.Error = &event.Error{Code: b.Reason, Message: cmp.Or(answer.Message, "the provider stopped the answer: "+b.Reason)}
	}
	d.end(b)
}

// end ends the turn and reports its usage.
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
func (d *decoder) State() ([]byte, error) { return decoding.State(&d.Base, states, &d.state) }

// Restore implements [dialect.Decoder].
func (d *decoder) Restore(b []byte) error { return decoding.Restore(b, &d.state, (*state).check) }

// check rejects null candidates in a stored state, and candidates with an open call but no argument parser: the decoder dereferences both.
func (s *state) check() error {
	for _, a := range s.Answers {
		if a == nil || a.Open == kindCall && a.Args == nil {
			return errState
		}
	}
	return nil
}

// progress recognizes chunks of a candidate, also those without parts: the model has worked, even if the API shows nothing of it. A
// chunk with the usage alone doesn't count.
func progress(f dialect.Frame) bool {
	var in struct {
		Candidates []json.RawMessage `json:"candidates"`
	}
	return json.Unmarshal(f.Data, &in) == nil && len(in.Candidates) > 0
}
