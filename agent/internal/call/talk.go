package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/sse"
)

const (
	// goodbye is how long an upstream whose stream has ended the turn may take to end its body too.
	drainLimit = 2 * time.Second
	// readSize is how many bytes of a stream are taken at once.
	readSize = 32 << 10
	// maxRejoins bounds how often in a row a stream is gone on with that brings nothing new.
	maxRejoins = 5
)

// ErrGone says that what a turn was to go to is not there any more.
var ErrGone = errors.New("agent: the conversation is not there any more")

// Talk is one turn with an upstream that answers requests by server-sent events of one dialect: one request, and one more
// each time that the agent has asked a person and was answered. It is used once.
type Talk struct {
	Client  *http.Client
	Dialect dialect.Dialect
	Emitter *agent.Emitter
	// Request makes the turn's request; with answers, the one that goes on from them. It is called anew for each try.
	Request func(ctx context.Context, answers []event.Answer) (*http.Request, error)
	// Rejoin makes the request that goes on with a stream that broke off, behind the event of that id; a nil request says that
	// it can't be gone on with. Without Rejoin none can.
	Rejoin func(ctx context.Context, lastID string) (*http.Request, error)
	// Closed says what became of a turn whose stream was closed without its dialect's end: nil, it is done. Without Closed it
	// was cut.
	Closed func(ctx context.Context) error
	// State, where set, gives the turn's state after each frame and, with nil, before a request that brings answers: whether
	// that one arrived can't be told after a restart. It is called under the emitter's lock.
	State func(p *Point) (json.RawMessage, error)
	// From, where set, is the point that the turn goes on from after a restart, by Rejoin.
	Start *Point
	// Gone says that a first answer of 404 is [ErrGone], for the caller to try another address.
	ReportGone bool
	// Busy, where set, says of a refusal that it is for what runs there now, so that another call may go well.
	Busy func(*Failure) bool
	// Response and Frame, where set, see each answer's head and each frame before it is decoded.
	Response func(*http.Response)
	Frame    func(dialect.Frame)
	// Complete, where set, returns the frame to decode in place of one that came. What was received is recorded as it came.
	Complete func(context.Context, dialect.Frame) dialect.Frame

	// The decoder and what belongs to it are guarded by the emitter's lock.
	dec    dialect.Decoder
	closed bool

	hasEnded  atomic.Bool
	turnKey   string // upstream key of the turn
	hasFrames bool   // anything, by the stream at hand
	requests  []event.Request
	last      string // id of the last event
	total     int64
	frames    int
}

// Point is where a turn stands behind a frame.
type Point struct {
	Last     string          `json:"last,omitempty"` // id of the event
	TurnKey  string          `json:"own,omitempty"`  // upstream key of the turn
	Requests []event.Request `json:"asked,omitempty"`
	Decoder  json.RawMessage `json:"decoder,omitempty"`
}

// Run talks until the turn is over.
func (t *Talk) Run(ctx context.Context) error {
	t.dec = t.Dialect.Decoder()
	if p := t.Start; p != nil {
		if err := t.dec.Restore(p.Decoder); err != nil {
			return fmt.Errorf("restore decoder: %w", err)
		}
		t.last, t.turnKey, t.requests = p.Last, p.TurnKey, p.Requests
	}
	t.Emitter.OnEnd(t.flush)
	var answers []event.Answer
	for {
		if t.hasFrames = t.Start != nil; !t.hasFrames {
			t.last = ""
		}
		if err := Repeat(ctx, t.Emitter, func() error { return t.attempt(ctx, answers) }); err != nil {
			return err
		}
		if len(t.requests) == 0 {
			return nil
		}
		answers = nil
		for _, q := range t.requests {
			a, err := t.Emitter.Ask(ctx, q)
			if err != nil {
				return err
			}
			answers = append(answers, a)
		}
		t.requests, t.Start = nil, nil
		if t.State != nil {
			if err := t.storeUncertain(); err != nil {
				return err
			}
		}
	}
}

// unsure makes durable that answers are about to be sent.
func (t *Talk) storeUncertain() error {
	state, err := t.State(nil)
	if err == nil {
		err = t.Emitter.Emit(nil, state)
	}
	if err == nil {
		err = t.Emitter.Flush()
	}
	return err
}

// point is the state after the frame at hand; nil leaves it as it was. The emitter's lock is held.
func (t *Talk) point() (json.RawMessage, error) {
	if t.State == nil {
		return nil, nil
	}
	decoder, err := t.dec.State()
	if err != nil {
		return nil, fmt.Errorf("state of decoder: %w", err)
	}
	return t.State(&Point{Last: t.last, TurnKey: t.turnKey, Requests: t.requests, Decoder: decoder})
}

// attempt makes one call, and those that go on with its stream.
func (t *Talk) attempt(ctx context.Context, answers []event.Answer) error {
	// Once the stream has ended the turn its context ends too; the upstream may still end its body in peace.
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		if !t.hasEnded.Load() {
			cancel(context.Cause(ctx))
		}
	})()
	next := func() (*http.Request, error) { return t.Request(life, answers) }
	idle := 0
	if t.Start != nil {
		idle = 1
		req, err := t.rejoin(life, idle)
		if err != nil {
			return err
		}
		next = func() (*http.Request, error) { return req, nil }
	}
	for {
		before := t.frames
		err := t.exchange(life, next)
		if t.hasEnded.Load() {
			return nil
		}
		// Once a stream is gone on with, a server that is away for a moment is no end either.
		isBroken := errors.Is(err, agent.ErrBroken) || idle > 0 && errors.As(err, new(*Failure))
		if !isBroken || ctx.Err() != nil {
			return err
		}
		if idle++; t.frames != before {
			idle = 1
		}
		req, err := t.rejoin(life, idle)
		if err != nil {
			return err
		}
		next = func() (*http.Request, error) { return req, nil }
	}
}

// rejoin makes the request that goes on with a broken stream, after a pause where the last one brought nothing.
func (t *Talk) rejoin(ctx context.Context, idle int) (*http.Request, error) {
	if t.Rejoin == nil || !t.hasFrames || idle > maxRejoins {
		return nil, BrokenStream(t.hasFrames)
	}
	if idle > 1 {
		if err := retry.Sleep(ctx, repeat.Wait(idle-1)); err != nil {
			return nil, err
		}
	}
	req, err := t.Rejoin(ctx, t.last)
	if err == nil && req == nil {
		err = BrokenStream(t.hasFrames)
	}
	return req, err
}

// exchange makes one request and reads its stream.
func (t *Talk) exchange(ctx context.Context, next func() (*http.Request, error)) error {
	req, err := next()
	if err != nil {
		return err
	}
	t.captureRequest(req)
	res, err := t.Client.Do(req)
	if err != nil {
		return Unreachable(err)
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotFound && t.ReportGone && !t.hasFrames:
		return ErrGone
	case res.StatusCode == http.StatusAccepted:
		return &Failure{Code: CodeStatus, Message: "the agent is not ready yet", Retry: true, Hint: retry.After(res.Header.Get("Retry-After"), time.Now())}
	case res.StatusCode/100 != 2:
		f := StatusFailure(res)
		f.Retry = f.Retry || t.Busy != nil && t.Busy(f)
		return f
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "text/event-stream" {
		return &Failure{Code: CodeAnswer, Message: fmt.Sprintf("the agent answered %d with %q in place of a stream of events", res.StatusCode, res.Header.Get("Content-Type"))}
	}
	t.Emitter.Trouble(nil)
	if t.Response != nil {
		t.Response(res)
	}
	if err := t.readStream(ctx, res.Body); err != nil {
		return err
	}
	stop := time.AfterFunc(drainLimit, func() { _ = res.Body.Close() })
	defer stop.Stop()
	_, _ = io.Copy(io.Discard, res.Body) // so that the connection can be used again
	return nil
}

// sent notes what a request says.
func (t *Talk) captureRequest(req *http.Request) {
	if req.GetBody == nil {
		return
	}
	if r, err := req.GetBody(); err == nil {
		if b, err := io.ReadAll(r); err == nil {
			t.Emitter.CaptureSent(b)
		}
	}
}

// read reads one stream to the turn's end, or to its own.
func (t *Talk) readStream(ctx context.Context, body io.Reader) error {
	var r sse.Reader
	t.Emitter.Body(t.Dialect.Name)
	buf := make([]byte, readSize)
	var hold agent.Reservation
	defer hold.Release()
	for {
		n, rerr := body.Read(buf)
		if n > 0 {
			t.Emitter.CaptureReceived(buf[:n])
			err := r.Feed(buf[:n], func(e sse.Event) error { return t.frame(ctx, dialect.Frame{Event: e.Name, ID: e.ID, Data: e.Data}) })
			switch {
			case t.hasEnded.Load():
				return nil
			case errors.Is(err, sse.ErrTooLong):
				return &dialect.Error{Dialect: t.Dialect.Name, Reason: fmt.Sprintf("after byte %d", t.total), Err: err}
			case err != nil:
				return err
			}
		}
		if err := hold.Resize(r.Buffered()); err != nil {
			return err
		}
		t.total += int64(n)
		switch {
		case errors.Is(rerr, io.EOF) && t.Rejoin != nil && t.hasFrames && errors.Is(r.Close(), sse.ErrInsideEvent):
			// What the rest of the event says is still to be had, whatever has become of the run.
			return fmt.Errorf("%w: %w", agent.ErrBroken, sse.ErrInsideEvent)
		case errors.Is(rerr, io.EOF):
			return t.end(ctx)
		case rerr != nil:
			return fmt.Errorf("%w: %w", agent.ErrBroken, rerr)
		case t.total > agent.MaxStream:
			return &Failure{Code: CodeTooLarge, Message: agent.ErrTooLarge.Error()}
		}
	}
}

// end is the end of a stream that has not ended the turn.
func (t *Talk) end(ctx context.Context) error {
	if len(t.requests) > 0 {
		return nil
	}
	if t.Closed != nil {
		err := t.Closed(ctx)
		if f := (*Failure)(nil); !errors.Is(err, agent.ErrBroken) && errors.As(err, &f) {
			return f.AgentError() // it is known, so that there is nothing to go on with
		}
		return err
	}
	return &Failure{Code: CodeCutShort, Message: fmt.Sprintf("the agent's answer ended without the end that %s has", t.Dialect.Name), Retryable: true}
}

func (t *Talk) frame(ctx context.Context, f dialect.Frame) error {
	// From its first frame on a run is under way, and calling again would start another.
	t.hasFrames = true
	t.frames++
	if t.Frame != nil {
		t.Frame(f)
	}
	if t.Complete != nil {
		f = t.Complete(ctx, f)
	}
	advanced := false
	err := t.Emitter.WithLargeFrame(len(f.Data), func() error { return t.decode(f, &advanced) })
	if errors.Is(err, agent.ErrTurnOver) && t.hasEnded.Load() {
		return nil
	}
	if advanced {
		t.Emitter.ReportProgress()
	}
	return err
}

// decode emits what a frame gives, and reports whether the frame was progress.
func (t *Talk) decode(f dialect.Frame, advanced *bool) error {
	return t.Emitter.Decode(func() ([]event.Event, json.RawMessage, error) {
		ops, err := t.dec.Decode(f)
		*advanced = err == nil && t.Dialect.Advances(f, ops)
		ops = slices.DeleteFunc(ops, t.collect)
		if f.ID != "" {
			t.last = f.ID
		}
		if err != nil {
			return ops, nil, err
		}
		state, err := t.point()
		return ops, state, err
	})
}

// take looks at an operation, and reports whether it is a question, which is asked once the stream has ended.
func (t *Talk) collect(e event.Event) bool {
	if e.Type == event.TurnWait {
		t.requests = append(t.requests, *e.Get().Request)
		return true
	}
	if t.turnKey == "" {
		t.turnKey = e.Turn
	}
	if e.Type == event.TurnEnd && (e.Turn == "" || e.Turn == t.turnKey) {
		t.hasEnded.Store(true)
	}
	return false
}

// held releases what the decoder holds back when the turn ends. The emitter's lock is held.
func (t *Talk) flush() []event.Event {
	if t.closed {
		return nil
	}
	t.closed = true
	ops, _ := t.dec.Close() // that the stream was not at its end is no news: the turn has ended before it
	return ops
}
