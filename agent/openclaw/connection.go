package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/leat-dev/leat/agent"
)

const (
	// requestLimit is how long the answer to a request may take.
	requestLimit = 30 * time.Second
	// writeLimit is how long a frame may take to be sent; one with files has many MiB.
	writeLimit = time.Minute
	// defaultTick is how often a gateway gives a sign of life that does not say so.
	defaultTick = 30 * time.Second
	// closeSilent is the code by which clients of the gateway leave one that has fallen silent.
	closeSilent = 4000
)

// link is one connection that was let in.
type connection struct {
	ws     *websocket.Conn
	hello  *hello
	began  time.Time     // when the gateway's process began, by this machine's clock
	closed chan struct{} // closed when nothing more is read

	mu      sync.Mutex
	pending map[string]chan *response
	seq     int64
	cause   error // why it is over; the first counts
	after   time.Duration
}

// answered is a response with the frame that it came in.
type response struct {
	frame *frame
	raw   []byte
}

func newLink(ws *websocket.Conn, h *hello) *connection {
	began := time.Now().Add(-time.Duration(h.Snapshot.Uptime) * time.Millisecond)
	return &connection{ws: ws, hello: h, began: began, closed: make(chan struct{}), pending: map[string]chan *response{}}
}

// protocol is the one that the gateway speaks.
func (l *connection) protocol() int { return l.hello.Protocol }

// clockStep is by how much a clock may be set back while a turn runs.
const clockStep = 2 * time.Second

// there returns what the gateway's clock showed at a time, or less; the zero time if it is not known.
func (l *connection) gatewayTime(at time.Time) time.Time {
	if !l.hello.clock {
		return time.Time{}
	}
	return at.Add(l.hello.ahead - clockStep)
}

// read reads frames until the connection ends, and hands them to take. Frames that are no JSON are ignored, as the gateway
// ignores ours. It waits for nothing but the next frame, and for that not longer than two ticks.
func (l *connection) readFrames(ctx context.Context, take func(raw []byte, f *frame)) {
	defer close(l.closed)
	limit := 2 * time.Duration(l.hello.Policy.TickInterval) * time.Millisecond
	if limit <= 0 {
		limit = 2 * defaultTick
	}
	watch := time.AfterFunc(limit, func() {
		l.fail(errSilent)
		_ = l.ws.Close(closeSilent, "no tick")
	})
	defer watch.Stop()
	var hold agent.Reservation
	defer hold.Release()
	for {
		b, err := readMessage(ctx, l.ws, &hold)
		if err != nil {
			l.fail(fmt.Errorf("%w: %w", errLost, rootCause(err)))
			_ = l.ws.CloseNow()
			return
		}
		watch.Reset(limit)
		var f frame
		if json.Unmarshal(b, &f) != nil {
			continue // it may be what there is of a message in which the connection was lost, which the next read tells
		}
		if f.Type == "res" {
			l.deliver(&response{&f, b})
			continue
		}
		take(b, &f)
	}
}

// readMessage reads one message, as far as the budget for large frames allows.
func readMessage(ctx context.Context, ws *websocket.Conn, hold *agent.Reservation) ([]byte, error) {
	_, r, err := ws.Reader(ctx)
	if err != nil {
		return nil, err
	}
	return agent.ReadMessage(r, hold)
}

func (l *connection) deliver(r *response) {
	l.mu.Lock()
	ch := l.pending[r.frame.ID]
	delete(l.pending, r.frame.ID)
	l.mu.Unlock()
	if ch != nil {
		ch <- r
	}
}

// gap reports whether frames are missing before this one. Only protocol 4 numbers the frames of a connection.
func (l *connection) gap(f *frame) bool {
	if f.Seq == 0 || l.protocol() < numberedProtocol {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	missing := l.seq > 0 && f.Seq > l.seq+1
	l.seq = max(l.seq, f.Seq)
	return missing
}

// fail notes why the connection is over.
func (l *connection) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		l.cause = err
	}
}

// leaving notes that the gateway is about to close, and when it will be back.
func (l *connection) noteShutdown(after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.after = after
	if l.cause == nil {
		l.cause = errHandOver
	}
}

// why is why the connection is over, and when the gateway said it would be back; 0 is nothing said.
func (l *connection) closeReason() (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		return l.after, errLost
	}
	return l.after, l.cause
}

// close ends the connection; read then returns.
func (l *connection) close() { _ = l.ws.Close(websocket.StatusNormalClosure, "") }

// up reports whether frames still come.
func (l *connection) isUp() bool {
	select {
	case <-l.closed:
		return false
	default:
		return true
	}
}

// call asks and decodes the answer into to, which may be nil. An error of the gateway is a *rpcError; where the connection
// ended first, errLost is in it.
func (l *connection) call(ctx context.Context, method string, params, to any) error {
	r, err := l.ask(ctx, method, params, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if to == nil {
		return nil
	}
	if err := json.Unmarshal(r.frame.Payload, to); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// ask asks and returns the answer with the bytes that it came in. sent, which may be nil, sees the request.
func (l *connection) ask(ctx context.Context, method string, params any, onSend func([]byte)) (*response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestLimit, errNoAnswer)
	defer cancel()
	q := request{Type: "req", ID: uuid.NewString(), Method: method, Params: params}
	b, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	if limit := l.hello.Policy.MaxPayload; limit > 0 && int64(len(b)) > limit {
		return nil, &rpcError{Code: "INVALID_REQUEST", Message: fmt.Sprintf("the request has %d bytes; the gateway takes %d", len(b), limit)}
	}
	ch := make(chan *response, 1)
	l.mu.Lock()
	l.pending[q.ID] = ch
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.pending, q.ID)
		l.mu.Unlock()
	}()
	if onSend != nil {
		onSend(b)
	}
	// A write that is cancelled closes the connection, which is everybody's: only its own limit may.
	wctx, wcancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	err = l.ws.Write(wctx, websocket.MessageText, b)
	wcancel()
	if err != nil {
		return nil, l.drop(fmt.Errorf("%w: %w", errLost, rootCause(err)))
	}
	select {
	case r := <-ch:
		return r.result()
	case <-l.closed:
		select {
		case r := <-ch:
			return r.result()
		default:
		}
		_, closeReason := l.closeReason()
		return nil, errors.Join(errLost, closeReason)
	case <-ctx.Done():
		if err := context.Cause(ctx); !errors.Is(err, errNoAnswer) {
			return nil, err
		}
		// What answers nothing is not there, whatever its socket says.
		return nil, l.drop(fmt.Errorf("%w: %w", errLost, errNoAnswer))
	}
}

// drop ends the connection for a reason, which it returns.
func (l *connection) drop(reason error) error {
	l.fail(reason)
	_ = l.ws.CloseNow()
	return reason
}

func (r *response) result() (*response, error) {
	switch {
	case r.frame.OK:
		return r, nil
	case r.frame.Error != nil:
		return nil, r.frame.Error
	}
	return nil, &rpcError{Message: "refused without a reason"}
}
