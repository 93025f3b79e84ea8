package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// maxTail is how much of a body's end is kept to be looked through for an error that stands outside the stream's format.
const maxTail = 8 << 10

// attempt is the call of a turn, made once or, as long as nothing was seen, again.
type attempt struct {
	a       *modelAgent
	in      agent.Input
	body    []byte
	emitter *agent.Emitter

	request   any              // what body is made of; nil for a response that is taken up after a restart
	approvals []event.Request  // approvals that the last response has asked for; nothing while it goes on
	paused    []byte           // state of the decoder at its end
	answers   int              // how many responses were answered
	from      *backgroundState // the response that is followed; nil where there is none

	isVisible bool          // something is shown
	pending   []event.Event // beginnings of messages and parts that have nothing yet
	failed    *call.Failure
	tail      []byte
}

// call makes the call. An [*call.Failure] says that it failed, and whether it may be repeated.
func (t *attempt) call(ctx context.Context) error {
	t.pending, t.failed, t.tail, t.approvals = nil, nil, nil, nil
	// Once the stream has ended the turn its context ends too; the provider may still end its body in peace.
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	stream, d, err := t.stream()
	if err != nil {
		return err
	}
	from := t.from
	defer context.AfterFunc(ctx, func() {
		if !stream.Ended() {
			cancel(context.Cause(ctx))
		}
	})()
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
	_, err = stream.ReadFrom(io.TeeReader(res.Body, (*tail)(&t.tail)))
	if t.failed != nil {
		stream.Drop()
		if t.from != nil {
			// The response has failed, and following it would tell the same again. A new one can be asked for by who asked for it.
			t.from, t.failed.Retry, t.failed.Retryable = nil, t.body != nil, true
		}
		return t.failed
	}
	if err == nil {
		stop := time.AfterFunc(goodbye, func() { cancel(nil) })
		defer stop.Stop()
		_, _ = io.Copy(io.Discard, res.Body) // so that the connection can be used again
		return nil
	}
	if errors.Is(err, dialect.ErrCutShort) {
		if t.approvals = pendingApprovals(d); len(t.approvals) > 0 {
			t.paused, err = d.Decoder().State()
			return err
		}
	}
	if f := t.incompleteFailure(res, err); f != nil {
		if f.Retry {
			stream.Drop()
		}
		f.Fresh = t.from != from
		return f
	}
	return err
}

// stream makes the stream of a call, at its beginning or where the response that is followed stands.
func (t *attempt) stream() (*agent.Stream, *dialect.Stream, error) {
	d := dialect.NewStream(t.a.api.dialect())
	decoder := t.paused
	if t.from != nil && len(t.from.Decoder) > 0 {
		decoder = t.from.Decoder
	}
	if len(decoder) > 0 {
		if err := d.Restore(fmt.Appendf(nil, `{"offset":0,"decoder":%s}`, decoder)); err != nil {
			return nil, nil, err
		}
	}
	s := agent.TakeUp(t.emitter, d)
	s.Through = func(ops []event.Event) ([]event.Event, json.RawMessage, error) {
		ops, err := t.filter(ops)
		if err != nil || !t.a.cfg.Background {
			return ops, nil, err
		}
		return t.follow(ops, d)
	}
	return s, d, nil
}

// send makes the request.
func (t *attempt) send(ctx context.Context) (*http.Response, error) {
	if t.from != nil && t.from.ID != "" {
		return t.a.do(ctx, http.MethodGet, t.from.path(), t.in.Key, nil)
	}
	t.emitter.Sent(t.body)
	key := t.in.Key
	if t.answers > 0 {
		key = fmt.Sprintf("%s-%d", key, t.answers) // it is another request
	}
	return t.a.do(ctx, http.MethodPost, t.a.api.path(&t.a.cfg), key, t.body)
}

// pass looks through what the decoder gives. A message begins with what is seen of it, so that a call that is repeated leaves no
// empty one behind; a failure before that is the call's, not the turn's.
func (t *attempt) filter(ops []event.Event) ([]event.Event, error) {
	if t.failed != nil {
		return nil, t.failed
	}
	shown := make([]event.Event, 0, len(ops))
	for _, op := range ops {
		switch {
		case op.Type == event.TurnUpdate:
		case op.Type == event.TurnEnd && op.Get().Error != nil:
			f := t.a.inStreamFailure(op.Body.Error)
			if !t.isVisible && f.Retry {
				t.failed = f
				return shown, f
			}
			b := *op.Body
			t.emitter.Failed(f.Shown())
			b.Error = f.Shown().Shown()
			op.Body = &b
		case !t.isVisible && t.isBlank(&op):
			t.pending = append(t.pending, op)
			continue
		default:
			t.isVisible = t.isVisible || op.Type != event.TurnEnd
			shown = append(shown, t.pending...)
			t.pending = nil
		}
		shown = append(shown, op)
	}
	return shown, nil
}

// blank reports whether an operation shows nothing by itself. What goes on in the background can't be held back: where it stands
// is stored with what was said.
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

// refused describes an answer that is no success.
func (t *attempt) statusFailure(res *http.Response) *call.Failure {
	f := t.a.statusFailure(res)
	if t.from == nil || t.from.ID == "" {
		return f
	}
	if !f.Retry && f.Code != codeKeyRefused {
		f.Code = codeGone
		f.Message = t.a.name + " has the response no more that this turn followed"
	}
	f.Retryable = true
	return f
}

// broken describes a stream that did not come to its end; nil where that is not the provider's doing.
func (t *attempt) incompleteFailure(res *http.Response, err error) *call.Failure {
	repeatable := !t.isVisible || t.from != nil && t.from.ID != ""
	var bad *dialect.Error
	switch {
	case errors.Is(err, agent.ErrTurnOver):
		return nil
	case errors.Is(err, agent.ErrTooLarge):
		return &call.Failure{Code: codeTooLarge, Message: err.Error()}
	case errors.As(err, &bad):
		return &call.Failure{Code: codeAnswer, Message: "the answer of " + t.a.name + " can't be read: " + err.Error()}
	case errors.Is(err, agent.ErrBroken):
		return &call.Failure{Code: codeCutShort, Message: "the connection to " + t.a.name + " broke in the middle of its answer", Retry: repeatable, Retryable: true}
	case errors.Is(err, dialect.ErrCutShort):
		if p, ok := strayError(t.tail); ok {
			code, retry := judge(0, p)
			f := &call.Failure{Code: code, Message: t.a.message(code), Detail: t.a.detail(code, p.message), Retry: retry && repeatable, Retryable: retry}
			if code == "" {
				f.Code = codeProvider
			}
			return f
		}
		if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); !t.isVisible && (kind == "text/html" || kind == "application/json") {
			return &call.Failure{Code: codeAnswer, Message: fmt.Sprintf("%s answered with %s instead of a stream", t.a.name, kind), Detail: "is base_url right?"}
		}
		return &call.Failure{Code: codeCutShort, Message: "the answer of " + t.a.name + " ended before it was whole", Retry: repeatable, Retryable: true}
	}
	return nil
}

// stray finds an error that was written into a stream as it is, outside of its format.
func strayError(tail []byte) (problem, bool) {
	i := bytes.LastIndex(tail, []byte(`"error"`))
	if i < 0 {
		return problem{}, false
	}
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

// tail keeps the end of what is written to it.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	if n := len(*t) - maxTail; n > 0 {
		*t = append((*t)[:0], (*t)[n:]...)
	}
	return len(p), nil
}
