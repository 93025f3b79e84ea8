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

// link is one connection to the App Server.
type link struct {
	conn   *websocket.Conn
	out    *agent.Emitter // nil where no turn is
	frames chan []byte    // closed when the connection has ended
	end    context.CancelFunc
	tasks  sync.WaitGroup
	err    error // why it has ended, once frames is closed
}

// dial connects. An error is a *failure.
func (k *socket) dial(ctx context.Context, out *agent.Emitter) (*link, error) {
	dctx, cancel := context.WithTimeout(ctx, k.times.dial)
	defer cancel()
	h := http.Header{"User-Agent": {"Leat"}}
	if k.cfg.Token != "" {
		h.Set("Authorization", "Bearer "+k.cfg.Token)
	}
	conn, res, err := websocket.Dial(dctx, k.url.String(), &websocket.DialOptions{HTTPHeader: h, HTTPClient: k.client})
	if err != nil {
		if res != nil && res.StatusCode != http.StatusSwitchingProtocols {
			return nil, refused(res)
		}
		return nil, unreachable(err)
	}
	conn.SetReadLimit(maxFrame)
	// The connection outlives the turn's context: a turn that was stopped is still to be aborted on it.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	l := &link{conn: conn, out: out, frames: make(chan []byte), end: end}
	l.tasks.Go(func() { l.read(life, k.times.settle) })
	l.tasks.Go(func() { l.ping(life, k.times) })
	return l, nil
}

func (l *link) read(ctx context.Context, settle time.Duration) {
	defer l.end()
	defer close(l.frames)
	var hold agent.Hold
	defer hold.Release()
	for {
		b, err := l.message(ctx, &hold)
		if err != nil {
			l.err = err
			return
		}
		var next []byte
		if !json.Valid(b) {
			// A connection that ends within a message looks as if the message had ended there: garbage is what the connection
			// outlives.
			hctx, cancel := context.WithTimeout(ctx, settle)
			next, err = l.message(hctx, &hold)
			late := hctx.Err() != nil
			cancel()
			if err != nil && !late {
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
func (l *link) message(ctx context.Context, hold *agent.Hold) ([]byte, error) {
	_, r, err := l.conn.Reader(ctx)
	if err != nil {
		return nil, err
	}
	return agent.ReadMessage(r, hold)
}

// ping finds out whether the other side is still there, which a connection without traffic does not tell.
func (l *link) ping(ctx context.Context, times times) {
	tick := time.NewTicker(times.stall / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		pctx, cancel := context.WithTimeout(ctx, times.dial)
		err := l.conn.Ping(pctx)
		cancel()
		if err != nil {
			l.end()
			return
		}
	}
}

// close ends the connection and waits for what runs on it.
func (l *link) close() {
	l.end()
	_ = l.conn.CloseNow()
	for range l.frames {
	}
	l.tasks.Wait()
}

// send writes a frame.
func (l *link) send(ctx context.Context, times times, frame any) error {
	b, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	if l.out != nil {
		l.out.Sent(b)
	}
	ctx, cancel := context.WithTimeout(ctx, times.dial)
	defer cancel()
	if err := l.conn.Write(ctx, websocket.MessageText, b); err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return nil
}

// call sends a request and returns the frame that answers it. What comes before is handed to other.
func (l *link) call(ctx context.Context, times times, id string, frame any, other func([]byte) error) ([]byte, error) {
	if err := l.send(ctx, times, frame); err != nil {
		return nil, err
	}
	limit := time.NewTimer(times.answer)
	defer limit.Stop()
	for {
		select {
		case b, ok := <-l.frames:
			if !ok {
				return nil, fmt.Errorf("%w: %w", errBroken, l.why())
			}
			if l.out != nil {
				l.out.Received(b)
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
			return nil, &failure{code: codeUnreachable, message: "the Letta server does not answer", retry: true}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

var errClosed = errors.New("the connection was closed")

// why is why the connection has ended; frames is closed.
func (l *link) why() error {
	if l.err == nil {
		return errClosed
	}
	return l.err
}
