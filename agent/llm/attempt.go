// One request to a model API and its stream. A failed attempt is repeated only while nothing of its answer was shown.

package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// maxTail is the number of bytes at the end of a body that are searched for an error outside of the stream's format.
const maxTail = 8 << 10

// attempt is the work of one turn: the call with the message, repeated while readers have seen nothing of its
// answer, and the calls that follow it with answers to approvals and with results of the client's tools. It is
// used by one goroutine; the filter runs in it as well, with the emitter locked.
type attempt struct {
	a       *modelAgent
	in      agent.Input
	body    []byte
	emitter *agent.Emitter

	request   any              // the value that body encodes; nil for a response that is resumed after a restart
	approvals []event.Request  // approvals that the last response waits for; empty while it streams
	paused    []byte           // state of the decoder at the end of a response that waits for approvals
	answers   int              // number of responses whose approvals or calls were answered
	from      *backgroundState // position in the followed response, or nil

	tools   toolState
	reply   reply        // of the current response; nil if the client offers no tools
	results []callResult // calls of the last response, once it has ended

	isVisible bool          // readers have seen content, or answers may have arrived: the call must not be repeated
	pending   []event.Event // buffered starts of messages and parts without content
	failed    *call.Failure // an error in the stream that fails the call rather than the turn
	tail      []byte        // the last maxTail bytes of the body
}

// call makes one call and emits its stream. A failed call returns a [*call.Failure], which also says whether it
// may be repeated.
//
// The stream of a call that is repeated is dropped, since its buffered operations would otherwise be emitted at
// the end of the turn. If the stream contained an error before any content, the call fails with that error, as
// if the provider had returned it as a status.
func (t *attempt) call(ctx context.Context) error {
	t.pending, t.failed, t.tail, t.approvals, t.results = nil, nil, nil, nil, nil
	if t.from == nil || t.from.ID == "" { // else the response is followed
		t.reply = nil
		if len(t.in.Tools) > 0 {
			t.reply = t.a.api.reply()
		}
	}
	stream, d, err := t.stream()
	if err != nil {
		return err
	}
	from := t.from
	life, stop := call.Life(ctx, stream.HasEnded)
	defer stop()
	res, err := t.send(life)
	if err != nil {
		stream.Drop()
		return t.a.unreachable(err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		stream.Drop()
		return t.statusFailure(res)
	}
	t.emitter.Trouble(nil)
	// The tail is kept aside because the decoder ignores bytes outside of its format, such as an error that follows the stream.
	_, err = stream.ReadFrom(io.TeeReader(res.Body, (*tail)(&t.tail)))
	if t.failed != nil {
		stream.Drop()
		if t.from != nil {
			// The background response has failed, so following it would fail again. A new one can only be requested with the
			// body, which is missing after a restart.
			t.from, t.failed.Retry, t.failed.Retryable = nil, t.body != nil, true
		}
		return t.failed
	}
	if errors.Is(err, errCalls) {
		stream.Drop()
		err = nil
	}
	if err == nil {
		call.Drain(res.Body)
		return nil
	}
	// A response that waits for approvals ends without completing the turn, which looks like an interrupted stream.
	if errors.Is(err, dialect.ErrCutShort) {
		if t.approvals = pendingApprovals(d); len(t.approvals) > 0 {
			t.expect() // it may call tools of the client too
			t.paused, err = d.Decoder().State()
			return err
		}
	}
	if f := t.incompleteFailure(res, err); f != nil {
		if f.Retry {
			stream.Drop()
		}
		f.ResetRetries = t.from != from
		return f
	}
	return err
}

// stream returns the stream of a call. Its decoder starts in the state of the followed response, or of the one that waited for
// approvals.
func (t *attempt) stream() (*agent.Stream, *dialect.Stream, error) {
	decoder := t.paused
	if t.from != nil && len(t.from.Decoder) > 0 {
		decoder = t.from.Decoder
	}
	d, err := t.decoderAt(decoder)
	if err != nil {
		return nil, nil, err
	}
	s := agent.ResumeStream(t.emitter, d)
	s.Filter = func(ops []event.Event) ([]event.Event, json.RawMessage, error) {
		ops, err := t.filter(ops)
		if err != nil && !errors.Is(err, errCalls) || !t.a.cfg.Background {
			return ops, nil, err
		}
		ops, state, ferr := t.follow(ops, d)
		return ops, state, errors.Join(err, ferr)
	}
	return s, d, nil
}

// decoderAt returns a decoder in a stored state, or a new one if the state is empty. The input of each call begins at offset 0, whatever
// the offset was when the state was stored.
func (t *attempt) decoderAt(state []byte) (*dialect.Stream, error) {
	format := t.a.api.dialect()
	if decoder, r := format.Decoder, t.reply; r != nil {
		format.Decoder = func() dialect.Decoder { return &recorder{Decoder: decoder(), name: format.Name, reply: r} }
	}
	d := dialect.NewStream(format)
	if len(state) == 0 {
		return d, nil
	}
	return d, d.Restore(fmt.Appendf(nil, `{"offset":0,"decoder":%s}`, state))
}

// send sends the request: a GET that follows a background response if one is known, else a POST with the body.
func (t *attempt) send(ctx context.Context) (*http.Response, error) {
	if t.from != nil && t.from.ID != "" {
		return t.a.do(ctx, http.MethodGet, t.from.path(), t.in.Key, nil)
	}
	t.emitter.CaptureSent(t.body)
	key := t.in.Key
	if t.answers > 0 {
		key = fmt.Sprintf("%s-%d", key, t.answers) // a different request, which must not be taken for a repetition
	}
	return t.a.do(ctx, http.MethodPost, t.a.api.path(&t.a.cfg), key, t.body)
}

// filter processes the events of the decoder before they are emitted. It buffers starts of messages and parts
// until the first content, so that a repeated call leaves no empty message behind, and it turns an error in the
// stream before that into a failure of the call. An error after the first content ends the turn, with a text of
// Leat for readers and the provider's text for operators. Calls of the client's tools become requests; the end
// of their response then isn't that of the turn.
func (t *attempt) filter(ops []event.Event) ([]event.Event, error) {
	if t.failed != nil {
		return nil, t.failed
	}
	visible := make([]event.Event, 0, len(ops))
	for _, op := range ops {
		if op.Message != "" && t.tools.Decoders > 0 {
			op.Message = fmt.Sprintf("%s/%d", op.Message, t.tools.Decoders)
		}
		if t.hides(&op) {
			continue
		}
		switch {
		case op.Type == event.TurnUpdate:
			// It has no content, so it is emitted at once and leaves the buffered starts alone.
		case op.Type == event.TurnEnd && op.Get().Error != nil:
			f := t.a.inStreamFailure(op.Body.Error)
			if !t.isVisible && f.Retry {
				t.failed = f
				return visible, f
			}
			// The provider's text may contain account data: readers get a text of Leat, operators the original.
			b := *op.Body
			t.emitter.Failed(f.AgentError())
			b.Error = f.AgentError().ViewerError()
			op.Body = &b
		case op.Type == event.TurnEnd && op.Get().Outcome == event.Completed && t.expect():
			if t.answers < maxRounds {
				t.count(op.Body.Usage)
				return append(visible, t.requests()...), errCalls
			}
			t.results = nil
			e := t.tooManyRounds()
			t.emitter.Failed(e)
			op.Body = &event.Body{Outcome: event.Failed, Error: e.ViewerError(), Usage: op.Body.Usage}
		case !t.isVisible && t.isBlank(&op):
			t.pending = append(t.pending, op)
			continue
		default:
			t.isVisible = t.isVisible || op.Type != event.TurnEnd
			visible = append(visible, t.pending...)
			t.pending = nil
		}
		if op.Type == event.TurnEnd {
			b := *op.Get()
			b.Usage = t.count(b.Usage)
			op.Body = &b
		}
		visible = append(visible, op)
	}
	return visible, nil
}

// isBlank reports whether an event shows no content by itself: starts of messages and of text or reasoning
// parts, and ends. A tool call isn't blank, since readers see its name. Events of a background response are
// never blank: they must be committed together with the position in the stream.
func (t *attempt) isBlank(op *event.Event) bool {
	switch op.Type {
	case event.MessageStart, event.MessageEnd, event.PartEnd:
		return !t.a.cfg.Background
	case event.PartStart:
		kind := op.Get().Kind
		return !t.a.cfg.Background && (kind == event.KindText || kind == event.KindReasoning)
	}
	return false
}

// statusFailure returns the failure for a response with an error status. If a background response was to be
// followed, an error that isn't temporary means that the provider has deleted it, except for a refused key,
// which the operator can replace. The user may send the message again in both cases.
func (t *attempt) statusFailure(res *http.Response) *call.Failure {
	f := t.a.statusFailure(res)
	if t.from == nil || t.from.ID == "" {
		return f
	}
	if !f.Retry && f.Code != codeKeyRefused {
		f.Code = codeGone
		f.Message = t.a.name + " no longer has the response of this turn"
	}
	f.Retryable = true
	return f
}

// incompleteFailure returns the failure for a stream that ended early, or nil if the cause is not the provider.
// A call may be repeated if readers have seen nothing, or if it follows a background response: that call
// resumes after the last committed event, so nothing is shown twice.
func (t *attempt) incompleteFailure(res *http.Response, err error) *call.Failure {
	repeatable := !t.isVisible || t.from != nil && t.from.ID != ""
	_, isInvalid := errors.AsType[*dialect.Error](err)
	switch {
	case errors.Is(err, agent.ErrTurnOver):
		return nil
	case errors.Is(err, agent.ErrTooLarge):
		return &call.Failure{Code: codeTooLarge, Message: err.Error()}
	case isInvalid:
		return &call.Failure{Code: codeAnswer, Message: "the response of " + t.a.name + " is invalid: " + err.Error()}
	case errors.Is(err, agent.ErrBroken):
		return &call.Failure{Code: codeCutShort, Message: "the connection to " + t.a.name + " broke before the answer was complete", Retry: repeatable, Retryable: true}
	case errors.Is(err, dialect.ErrCutShort):
		if p, ok := strayError(t.tail); ok {
			code, retry := classify(0, p)
			return &call.Failure{Code: cmp.Or(code, codeProvider), Message: t.a.message(code), Detail: t.a.detail(code, p.message), Retry: retry && repeatable, Retryable: retry}
		}
		// A wrong base_url often leads to a web page, which would otherwise be reported as an interrupted stream.
		if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); !t.isVisible && (kind == "text/html" || kind == "application/json") {
			return &call.Failure{Code: codeAnswer, Message: fmt.Sprintf("%s responded with %s instead of a stream", t.a.name, kind), Detail: "check base_url"}
		}
		return &call.Failure{Code: codeCutShort, Message: "the answer of " + t.a.name + " ended before it was complete", Retry: repeatable, Retryable: true}
	}
	return nil
}

// strayError finds an error object that was written into a stream without its framing, as Gemini does when a
// request fails after the response has begun. tail is the end of the body. An object that is cut off at its
// start can't be found, so maxTail is far larger than any error.
func strayError(tail []byte) (problem, bool) {
	i := bytes.LastIndex(tail, []byte(`"error"`))
	if i < 0 {
		return problem{}, false
	}
	// The object must start a line or an element of a list. Otherwise the word is part of the answer's text.
	i = bytes.LastIndexByte(tail[:i], '{')
	if i < 0 || i > 0 && tail[i-1] != '\n' && tail[i-1] != '[' && tail[i-1] != ' ' {
		return problem{}, false
	}
	var raw json.RawMessage
	if json.NewDecoder(bytes.NewReader(tail[i:])).Decode(&raw) != nil {
		return problem{}, false
	}
	p := parse(raw)
	return p, p.message != ""
}

// tail is an [io.Writer] that keeps the last maxTail bytes.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	if n := len(*t) - maxTail; n > 0 {
		*t = append((*t)[:0], (*t)[n:]...)
	}
	return len(p), nil
}
