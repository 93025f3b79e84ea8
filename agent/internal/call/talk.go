package call

import (
	"cmp"
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
	// readSize is the size of reads from a stream, in bytes.
	readSize = 32 << 10
	// maxRejoins is the maximum number of successive requests that resume a stream without receiving a frame.
	maxRejoins = 5
)

// ErrGone is returned after a 404 if [Talk].ReportGone is set: the upstream has no such conversation.
var ErrGone = errors.New("agent: the upstream has no such conversation")

// Talk runs one turn with an upstream that answers requests with server-sent events in one dialect. It sends one request for the message,
// and another with the answers whenever the stream ended with requests to the user. It retries failed requests, resumes broken streams
// if Rejoin is set, and asks the user with [agent.Emitter.Ask]. Set the fields, then call Run once. The functions are called by
// the goroutine of Run.
type Talk struct {
	Client  *http.Client
	Dialect dialect.Dialect
	Emitter *agent.Emitter
	// Request makes the turn's request, or with answers the one that continues after them. It is called again for each attempt.
	Request func(ctx context.Context, answers []event.Answer) (*http.Request, error)
	// Rejoin makes the request that resumes a broken stream after the event with the id lastID. It returns a nil request if the stream
	// can't be resumed. If Rejoin is nil, no stream can.
	Rejoin func(ctx context.Context, lastID string) (*http.Request, error)
	// Closed is called if a stream was closed without the end that its dialect requires. It returns nil if the run is complete, an
	// error that wraps [agent.ErrBroken] if it continues and can be resumed, and another error if it failed. If Closed is nil, the turn
	// fails as cut short.
	Closed func(ctx context.Context) error
	// State, if not nil, returns the turn's state after each frame, for [agent.Resumer]. Before a request with answers it is called with
	// nil: if the gateway stops then, it can't know whether the upstream got them, so the state must not allow a resumption. It is
	// called with the emitter locked.
	State func(p *Point) (json.RawMessage, error)
	// Start, if not nil, is the point at which the turn is resumed with Rejoin after a restart.
	Start *Point
	// ReportGone makes Run return [ErrGone] if the first response is a 404, so that the caller can try another address.
	ReportGone bool
	// Busy, if not nil, reports whether the upstream rejected a request because another run is active, so that a retry may succeed.
	Busy func(*Failure) bool
	// Response and Frame, if not nil, are called with each 2xx response and with each frame before it is decoded.
	Response func(*http.Response)
	Frame    func(dialect.Frame)
	// Complete, if not nil, returns the frame to decode instead of the received one. The capture has the received one.
	Complete func(context.Context, dialect.Frame) dialect.Frame

	dec dialect.Decoder // guarded by the emitter's lock

	hasEnded  atomic.Bool
	turnKey   string // upstream key of the turn; other turns in the stream are nested
	hasFrames bool   // the current request has received a frame, or resumes a stream that had
	requests  []event.Request
	last      string // id of the last event
	total     int64
	frames    int
}

// Point is the position of a turn after a frame. It is stored with the turn; its JSON must stay readable by later versions.
type Point struct {
	Last     string          `json:"last,omitempty"` // id of the event
	TurnKey  string          `json:"own,omitempty"`  // upstream key of the turn
	Requests []event.Request `json:"asked,omitempty"`
	Decoder  json.RawMessage `json:"decoder,omitempty"`
}

// Run sends the requests of the turn and emits the streams. It returns when the turn is over.
//
// Each round is one request with its retries and resumptions. If the stream ended with requests to the user,
// Run asks them one after another and starts the next round with all answers. A resumed turn (Start) begins
// with Rejoin; requests of its stored point are asked when that stream has ended.
func (t *Talk) Run(ctx context.Context) error {
	t.dec = t.Dialect.Decoder()
	if p := t.Start; p != nil {
		if err := t.dec.Restore(p.Decoder); err != nil {
			return fmt.Errorf("restore decoder: %w", err)
		}
		t.last, t.turnKey, t.requests = p.Last, p.TurnKey, p.Requests
	}
	t.Emitter.CloseOnEnd(t.dec)
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

// storeUncertain stores the state that forbids a resumption and waits until it is durable, before answers are
// sent. Without it, a restart after the answers arrived would ask the user the same questions again.
func (t *Talk) storeUncertain() error {
	state, err := t.State(nil)
	if err != nil {
		return err
	}
	if err := t.Emitter.Emit(nil, state); err != nil {
		return err
	}
	return t.Emitter.Flush()
}

// point returns the state after the current frame; nil leaves the stored state unchanged. The emitter must be locked.
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

// attempt sends one request and those that resume its stream. If it returns a [*Failure] with Retry set,
// nothing was emitted. While the stream is being resumed, failures are counted in idle; each frame that arrives
// starts that count again, so a stream may break any number of times as long as it makes progress.
func (t *Talk) attempt(ctx context.Context, answers []event.Answer) error {
	life, stop := Life(ctx, t.hasEnded.Load)
	defer stop()
	idle := 0
	if t.Start != nil {
		idle = 1
	}
	for {
		req, err := t.next(life, answers, idle)
		if err != nil {
			return err
		}
		before := t.frames
		err = t.exchange(life, req)
		if t.hasEnded.Load() {
			return nil
		}
		// While a stream is being resumed, a failed request counts as a broken stream too: the server may be restarting.
		isBroken := errors.Is(err, agent.ErrBroken) || idle > 0 && errors.As(err, new(*Failure))
		if !isBroken || ctx.Err() != nil {
			return err
		}
		if idle++; t.frames != before {
			idle = 1
		}
	}
}

// next returns the next request of an attempt. idle is 0 for the first one, which starts or continues the run. Otherwise the request
// resumes a broken stream, and idle is 1 plus the number of such requests that received no frame since the last frame. next waits before
// the second and later ones, so that a server that is restarting isn't flooded.
func (t *Talk) next(ctx context.Context, answers []event.Answer, idle int) (*http.Request, error) {
	if idle == 0 {
		return t.Request(ctx, answers)
	}
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

// exchange sends one request and reads its stream. A 202 counts as a failure that is retried, since a server
// that accepts a run for later has no stream for it yet.
func (t *Talk) exchange(ctx context.Context, req *http.Request) error {
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
		return &Failure{Code: codeStatus, Message: "the agent is not ready yet", Retry: true, Hint: retry.After(res.Header.Get("Retry-After"), time.Now())}
	case res.StatusCode/100 != 2:
		f := StatusFailure(res)
		f.Retry = f.Retry || t.Busy != nil && t.Busy(f)
		return f
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "text/event-stream" {
		return &Failure{Code: CodeAnswer, Message: fmt.Sprintf("the agent answered %d with %q instead of server-sent events", res.StatusCode, res.Header.Get("Content-Type"))}
	}
	t.Emitter.Trouble(nil)
	if t.Response != nil {
		t.Response(res)
	}
	if err := t.readStream(ctx, res.Body); err != nil {
		return err
	}
	Drain(res.Body)
	return nil
}

// captureRequest adds the body of a request to the capture. Headers aren't captured, since they have credentials.
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

// readStream reads one stream to the end of the turn or of the stream, whichever is first.
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
			// The stream ended within an event. Resume it even if the run has ended, since the server still has that event.
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

// end handles a stream that was closed before the end of the turn. That is expected if it has requests to the user.
func (t *Talk) end(ctx context.Context) error {
	if len(t.requests) > 0 {
		return nil
	}
	if t.Closed != nil {
		err := t.Closed(ctx)
		if f, ok := errors.AsType[*Failure](err); ok && !errors.Is(err, agent.ErrBroken) {
			return f.AgentError() // the outcome is known, so the stream isn't resumed
		}
		return err
	}
	return &Failure{Code: CodeCutShort, Message: fmt.Sprintf("the agent's answer ended before the end of the turn that %s requires", t.Dialect.Name), Retryable: true}
}

// frame handles one frame of the stream: it calls the functions of the caller, decodes the frame and emits the
// result. A frame that ends the turn returns nil, and readStream stops.
func (t *Talk) frame(ctx context.Context, f dialect.Frame) error {
	// After the first frame a run is active, and another request would start a second one.
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

// decode emits the operations of a frame with the state after it. It sets advanced if the frame was progress.
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

// collect reports whether an operation is a request to the user. Requests are not emitted; Run asks them after the stream has ended.
// It also notes the end of the turn; a turn.end of a nested turn doesn't count.
func (t *Talk) collect(e event.Event) bool {
	if e.Type == event.TurnWait {
		t.requests = append(t.requests, *e.Get().Request)
		return true
	}
	t.turnKey = cmp.Or(t.turnKey, e.Turn)
	if e.Type == event.TurnEnd && (e.Turn == "" || e.Turn == t.turnKey) {
		t.hasEnded.Store(true)
	}
	return false
}
