package openclaw

import (
	"cmp"
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
	// requestLimit is the time within which the gateway has to answer a request. A gateway that doesn't is taken for dead.
	requestLimit = 30 * time.Second
	// writeLimit is the time for writing one frame. A frame with attachments has many MiB.
	writeLimit = time.Minute
	// defaultTick is the interval of tick events of a gateway whose hello doesn't have one.
	defaultTick = 30 * time.Second
	// closeSilent is the close code that OpenClaw's own clients use if the gateway's ticks stop.
	closeSilent = 4000
)

// connection is one WebSocket connection after its handshake. The goroutine that calls readFrames owns the reading side; any
// goroutine may send requests.
type connection struct {
	ws     *websocket.Conn
	hello  *hello
	began  time.Time     // start of the gateway's process, by the local clock
	closed chan struct{} // closed when readFrames returns

	mu      sync.Mutex
	pending map[string]chan *response // by request id; each channel has room for its one response
	seq     int64                     // the highest number of an event so far; 0 before the first numbered event
	cause   error                     // why the connection ended; only the first cause is stored
	after   time.Duration             // how long the gateway expects its restart to take; 0 if it has not announced one
}

// response is a response with the raw frame that contained it, for captures and decoders.
type response struct {
	frame *frame
	raw   []byte
}

// newLink returns a connection for an admitted WebSocket. The gateway's uptime gives the start of its process, from which
// lookUp learns whether it restarted after a message was sent.
func newLink(ws *websocket.Conn, h *hello) *connection {
	began := time.Now().Add(-time.Duration(h.Snapshot.Uptime) * time.Millisecond)
	return &connection{ws: ws, hello: h, began: began, closed: make(chan struct{}), pending: map[string]chan *response{}}
}

// protocol returns the protocol version that the gateway chose, between minProtocol and maxProtocol.
func (l *connection) protocol() int { return l.hello.Protocol }

// clockStep is how far a clock may be set back while a turn runs without breaking comparisons with it.
const clockStep = 2 * time.Second

// gatewayTime converts a local time to the gateway's clock. The result is never later than the true time, so that rows that are
// older than it are older for certain. It is the zero time if the handshake didn't reveal the gateway's clock.
func (l *connection) gatewayTime(at time.Time) time.Time {
	if !l.hello.clock {
		return time.Time{}
	}
	return at.Add(l.hello.ahead - clockStep)
}

// readFrames reads frames until the connection ends. Responses go to the requests that wait for them; take gets all other
// frames and must not block, because it delays every conversation. A connection without any frame for two tick intervals is
// closed with errSilent. Frames that are not JSON are ignored, as the gateway ignores such frames of its clients.
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
			continue // possibly the beginning of a message in which the connection was lost: then the next read fails
		}
		if f.Type == "res" {
			l.deliver(&response{&f, b})
			continue
		}
		take(b, &f)
	}
}

// readMessage reads one message. It waits until hold has room for it in the process-wide budget for large frames.
func readMessage(ctx context.Context, ws *websocket.Conn, hold *agent.Reservation) ([]byte, error) {
	_, r, err := ws.Reader(ctx)
	if err != nil {
		return nil, err
	}
	return agent.ReadMessage(r, hold)
}

// deliver sends a response to the request with the same id. If that request has been cancelled, the response is dropped. The
// channel is removed before the send, so a second response with the same id can't block the reading goroutine.
func (l *connection) deliver(r *response) {
	l.mu.Lock()
	ch := l.pending[r.frame.ID]
	delete(l.pending, r.frame.ID)
	l.mu.Unlock()
	if ch != nil {
		ch <- r
	}
}

// gap reports whether frames are missing before f. Only protocol 4 numbers the events of a connection; otherwise the result
// is false. The number of the first event that Leat receives is not checked, because the handshake drops events. After a gap
// the turns read the history.
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

// fail records why the connection ended, unless a cause is already recorded.
func (l *connection) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		l.cause = err
	}
}

// noteShutdown records that the gateway announced its shutdown, and after what time it expects to be back (0 if unknown).
func (l *connection) noteShutdown(after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.after = after
	if l.cause == nil {
		l.cause = errHandOver
	}
}

// closeReason returns why the connection ended, and how long the gateway wants clients to wait before they reconnect. The
// duration is 0 if the gateway didn't say.
func (l *connection) closeReason() (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.after, cmp.Or(l.cause, errLost)
}

// close closes the connection with a close frame. Then readFrames returns.
func (l *connection) close() { _ = l.ws.Close(websocket.StatusNormalClosure, "") }

// isUp reports whether readFrames still runs.
func (l *connection) isUp() bool {
	select {
	case <-l.closed:
		return false
	default:
		return true
	}
}

// call sends a request and decodes the response into to, which may be nil. An error response is a *rpcError. If the connection
// ends first, the error wraps errLost, and it is unknown whether the gateway has processed the request.
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

// ask sends a request and returns the raw response. onSend, which may be nil, gets the encoded request just before it is
// written. Errors are those of call.
//
// A request that is larger than the gateway's limit is refused here and never sent, because a failure of the connection would
// affect all turns that share it. If the connection ends while the request waits, a response that has already arrived still counts. A request
// without a response for requestLimit ends the connection; a cancelled ctx only ends the request.
func (l *connection) ask(ctx context.Context, method string, params any, onSend func([]byte)) (*response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestLimit, errNoAnswer)
	defer cancel()
	q := request{Type: "req", ID: uuid.NewString(), Method: method, Params: params}
	b, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	if limit := l.hello.Policy.MaxPayload; limit > 0 && int64(len(b)) > limit {
		return nil, &rpcError{Code: "INVALID_REQUEST", Message: fmt.Sprintf("the request has %d bytes; the gateway accepts at most %d", len(b), limit)}
	}
	// The buffer lets deliver succeed after the request has given up.
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
	// Cancelling a write closes the connection, which all turns share. So the caller's context doesn't cancel it; only writeLimit does.
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
		// A gateway that leaves a request unanswered is taken for dead, even if its socket is open and ticks still arrive.
		return nil, l.drop(fmt.Errorf("%w: %w", errLost, errNoAnswer))
	}
}

// drop ends the connection at once and returns reason.
func (l *connection) drop(reason error) error {
	l.fail(reason)
	_ = l.ws.CloseNow()
	return reason
}

// result returns r, or the error that it contains.
func (r *response) result() (*response, error) {
	switch {
	case r.frame.OK:
		return r, nil
	case r.frame.Error != nil:
		return nil, r.frame.Error
	}
	return nil, &rpcError{Message: "refused without a reason"}
}
