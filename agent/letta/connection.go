package letta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/agent"
)

// maxFrame bounds a frame, in bytes: the list of a long conversation's messages is one.
const maxFrame = 32 << 20

// connection is one connection to the App Server.
type connection struct {
	ws      *websocket.Conn
	emitter *agent.Emitter // nil where no turn is
	frames  chan []byte    // closed when the connection has ended
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
	err     error // why it has ended, once frames is closed
}

// dial connects. An error is a *failure.
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
	// The connection outlives the turn's context: a turn that was stopped is still to be aborted on it.
	life, cancelLife := context.WithCancel(context.WithoutCancel(ctx))
	c := &connection{ws: conn, emitter: emitter, frames: make(chan []byte), cancel: cancelLife}
	c.tasks.Go(func() { c.readFrames(life, k.times.finish) })
	c.tasks.Go(func() { c.ping(life, k.times) })
	return c, nil
}

func (l *connection) readFrames(ctx context.Context, settle time.Duration) {
	defer l.cancel()
	defer close(l.frames)
	var memory agent.Hold
	defer memory.Release()
	for {
		b, err := l.message(ctx, &memory)
		if err != nil {
			l.err = err
			return
		}
		var next []byte
		if !json.Valid(b) {
			// A connection that ends within a message looks as if the message had ended there: garbage is what the connection
			// outlives.
			hctx, cancel := context.WithTimeout(ctx, settle)
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

// message reads one message, as far as the budget for large frames allows.
func (l *connection) message(ctx context.Context, memory *agent.Hold) ([]byte, error) {
	_, r, err := l.ws.Reader(ctx)
	if err != nil {
		return nil, err
	}
	return agent.ReadMessage(r, memory)
}

// ping finds out whether the other side is still there, which a connection without traffic does not tell.
func (l *connection) ping(ctx context.Context, times times) {
	tick := time.NewTicker(times.stall / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		pctx, cancel := context.WithTimeout(ctx, times.dial)
		err := l.ws.Ping(pctx)
		cancel()
		if err != nil {
			l.cancel()
			return
		}
	}
}

// close ends the connection and waits for what runs on it.
func (l *connection) close() {
	l.cancel()
	_ = l.ws.CloseNow()
	for range l.frames {
	}
	l.tasks.Wait()
}

// send writes a frame.
func (l *connection) send(ctx context.Context, times times, frame any) error {
	b, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	if l.emitter != nil {
		l.emitter.Sent(b)
	}
	ctx, cancel := context.WithTimeout(ctx, times.dial)
	defer cancel()
	if err := l.ws.Write(ctx, websocket.MessageText, b); err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return nil
}

// call sends a request and returns the frame that answers it. What comes before is handed to other.
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
				l.emitter.Received(b)
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
			return nil, &failure{code: codeUnreachable, message: "the Letta server does not answer", retryable: true}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

var errClosed = errors.New("the connection was closed")

// closeError is why the connection has ended; frames is closed.
func (l *connection) closeError() error {
	if l.err == nil {
		return errClosed
	}
	return l.err
}
