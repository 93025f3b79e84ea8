// One WebSocket connection to the App Server: requests with their responses, frames in between, pings and the end.

package letta

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/base/retry"
)

// maxFrame limits a frame, in bytes. The list of a long conversation's messages is one frame.
const maxFrame = 32 << 20

// connection is one WebSocket to the App Server. Two goroutines belong to it: one reads frames, one sends pings. close ends both.
// send and call may only be used by the goroutine that receives from frames, except that Probe and Steer also call send.
type connection struct {
	ws      *websocket.Conn
	emitter *agent.Emitter // records traffic for the turn's trace; nil if the connection belongs to no turn
	frames  chan []byte    // closed when the connection has ended
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
	err     error // the reason of the end; valid after frames was closed
}

// dial connects to the server. The error is a *failure. The connection survives ctx, so that a stopped turn can still be
// aborted on it; the caller has to close it.
func (k *socketAgent) dial(ctx context.Context, emitter *agent.Emitter) (*connection, error) {
	dctx, cancel := context.WithTimeout(ctx, k.times.dial)
	defer cancel()
	h := http.Header{"User-Agent": {"Leat"}}
	if k.cfg.Token != "" {
		h.Set("Authorization", "Bearer "+k.cfg.Token)
	}
	conn, res, err := websocket.Dial(dctx, k.url.String(), &websocket.DialOptions{HTTPHeader: h, HTTPClient: k.client})
	if err != nil {
		if res != nil && res.StatusCode != http.StatusSwitchingProtocols {
			return nil, statusFailure(res)
		}
		return nil, connectFailure(err)
	}
	conn.SetReadLimit(maxFrame)
	life, cancelLife := context.WithCancel(context.WithoutCancel(ctx))
	c := &connection{ws: conn, emitter: emitter, frames: make(chan []byte), cancel: cancelLife}
	c.tasks.Go(func() { c.readFrames(life, k.times.finish) })
	c.tasks.Go(func() { c.ping(life, k.times) })
	return c, nil
}

// readFrames sends the frames to l.frames until the connection ends. The channel has no buffer: while the receiver is busy, the
// connection isn't read, and the server has to wait. A frame that isn't JSON is kept back for at most wait: if the
// connection ends within that time, the frame was cut off by the end and is dropped; if not, it is passed on, and the decoder reports it.
func (l *connection) readFrames(ctx context.Context, wait time.Duration) {
	defer l.cancel()
	defer close(l.frames)
	var memory agent.Reservation
	defer memory.Release()
	for {
		b, err := l.message(ctx, &memory)
		if err != nil {
			l.err = err
			return
		}
		var next []byte
		if !json.Valid(b) {
			hctx, cancel := context.WithTimeout(ctx, wait)
			next, err = l.message(hctx, &memory)
			isLate := hctx.Err() != nil
			cancel()
			if err != nil && !isLate {
				l.err = err
				return
			}
		}
		for _, b := range [][]byte{b, next} {
			if b == nil {
				continue
			}
			select {
			case l.frames <- b:
			case <-ctx.Done():
				return
			}
		}
	}
}

// message reads one frame. A large frame first waits for its share of the gateway's memory budget.
func (l *connection) message(ctx context.Context, memory *agent.Reservation) ([]byte, error) {
	_, r, err := l.ws.Reader(ctx)
	if err != nil {
		return nil, err
	}
	return agent.ReadMessage(r, memory)
}

// ping sends pings and ends the connection if one isn't answered. Without them a connection whose other side has vanished would
// look idle forever.
func (l *connection) ping(ctx context.Context, times times) {
	for retry.Sleep(ctx, times.stall/3) == nil {
		pctx, cancel := context.WithTimeout(ctx, times.dial)
		err := l.ws.Ping(pctx)
		cancel()
		if err != nil {
			l.cancel()
			return
		}
	}
}

// close ends the connection and waits for its goroutines. It drains frames, so that readFrames can't block on a frame that no
// goroutine receives; these frames are dropped.
func (l *connection) close() {
	l.cancel()
	_ = l.ws.CloseNow()
	for range l.frames {
	}
	l.tasks.Wait()
}

// send writes a frame. An error of the connection wraps errBroken. The frame is captured for the trace before it is written, so
// the trace also shows a frame that the server may not have received.
func (l *connection) send(ctx context.Context, times times, frame any) error {
	b, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	if l.emitter != nil {
		l.emitter.CaptureSent(b)
	}
	ctx, cancel := context.WithTimeout(ctx, times.dial)
	defer cancel()
	if err := l.ws.Write(ctx, websocket.MessageText, b); err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return nil
}

// call sends a request and returns the frame with the same request id. It passes all frames before it to other, whose error
// ends the call. The error wraps errBroken if the connection ends, and is a *failure if the server doesn't answer in time.
func (l *connection) call(ctx context.Context, times times, id string, frame any, other func([]byte) error) ([]byte, error) {
	if err := l.send(ctx, times, frame); err != nil {
		return nil, err
	}
	limit := time.NewTimer(times.answer)
	defer limit.Stop()
	for {
		select {
		case b, ok := <-l.frames:
			if !ok {
				return nil, fmt.Errorf("%w: %w", errBroken, l.closeError())
			}
			if l.emitter != nil {
				l.emitter.CaptureReceived(b)
			}
			var f struct {
				ID string `json:"request_id"`
			}
			if json.Unmarshal(b, &f) == nil && f.ID == id {
				return b, nil
			}
			if err := other(b); err != nil {
				return nil, err
			}
		case <-limit.C:
			return nil, &failure{code: codeUnreachable, message: "the Letta server doesn't answer", retryable: true}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// errClosed is the reason of an end without an error, such as by close.
var errClosed = errors.New("the connection was closed")

// closeError returns the reason why the connection has ended. frames must be closed.
func (l *connection) closeError() error {
	return cmp.Or(l.err, errClosed)
}
