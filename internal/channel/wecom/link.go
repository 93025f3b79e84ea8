package wecom

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/leat-dev/leat/internal/channel"
)

const (
	// ackLimit is how long an acknowledgement may take. After it the outcome is unknown.
	ackLimit = 5 * time.Second
	// writeLimit limits the sending of a frame. One with a piece of a file has 700 KB, which a slow line needs time for.
	writeLimit = time.Minute
	// maxFrame limits a received frame, in bytes.
	maxFrame = 4 << 20
)

// The commands of frames.
const (
	commandSubscribe = "aibot_subscribe"
	commandPing      = "ping"
	commandMessage   = "aibot_msg_callback"
	commandEvent     = "aibot_event_callback"
	commandRespond   = "aibot_respond_msg"
	commandSend      = "aibot_send_msg"
	commandInit      = "aibot_upload_media_init"
	commandChunk     = "aibot_upload_media_chunk"
	commandFinish    = "aibot_upload_media_finish"
)

// frame is what both sides send. An acknowledgement has no command, and the request id of the frame that it acknowledges.
type frame struct {
	Command string `json:"cmd,omitempty"`
	Headers struct {
		ID string `json:"req_id"`
	} `json:"headers"`
	Body    json.RawMessage `json:"body,omitempty"`
	Code    int             `json:"errcode,omitempty"`
	Message string          `json:"errmsg,omitempty"`
}

// link sends frames over the current connection and waits for their acknowledgements.
type link struct {
	mu      sync.Mutex // protects the fields below
	conn    *websocket.Conn
	isReady bool                  // the connection is subscribed
	isOver  bool                  // Run has ended, so no connection follows
	pending map[string]chan frame // frames that wait for their acknowledgement, by request id
}

// open makes a connection the current one.
func (l *link) open(conn *websocket.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
}

// ready allows frames of deliveries.
func (l *link) ready() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isReady = true
}

// close ends the use of the connection. The frames that wait for an acknowledgement get none.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn, l.isReady = nil, false
	for id, ch := range l.pending {
		close(ch)
		delete(l.pending, id)
	}
}

// end makes frames fail for good, until Run begins again.
func (l *link) end(isOver bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isOver = isOver
}

// acknowledge passes an acknowledgement to the frame that waits for it.
func (l *link) acknowledge(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ch := l.pending[f.Headers.ID]; ch != nil {
		delete(l.pending, f.Headers.ID)
		ch <- f // it has space
	}
}

// newID returns a request id for a frame that answers none.
func newID(command string) string { return command + "_" + uuid.NewString() }

// request sends a frame, waits for its acknowledgement, and decodes its body into result, unless that is nil. An error is an
// *apiError, or wraps errUnsent or errUnknown.
func (l *link) request(ctx context.Context, command, id string, body, result any) error {
	f := frame{Command: command}
	f.Headers.ID = id
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("wecom: %w", err)
		}
		f.Body = raw
	}
	raw, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("wecom: %w", err)
	}
	ch := make(chan frame, 1)
	l.mu.Lock()
	conn := l.conn
	if conn == nil || !l.isReady && command != commandSubscribe || l.pending[id] != nil {
		isOver := l.isOver
		l.mu.Unlock()
		if isOver {
			return channel.ErrStopped
		}
		return errUnsent
	}
	l.pending[id] = ch
	l.mu.Unlock()
	if err := write(ctx, conn, raw); err != nil {
		l.drop(id, ch)
		return errUnknown
	}
	limit := time.NewTimer(ackLimit)
	defer limit.Stop()
	select {
	case answer, ok := <-ch:
		return outcome(answer, ok, result)
	case <-limit.C:
	case <-ctx.Done():
	}
	l.drop(id, ch)
	select {
	case answer, ok := <-ch: // it has arrived at the same time
		return outcome(answer, ok, result)
	default:
		return errUnknown
	}
}

// write sends the bytes of a frame. The connection would be closed if the context ended meanwhile, so that of the delivery is not used.
func write(ctx context.Context, conn *websocket.Conn, raw []byte) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer cancel()
	return conn.Write(ctx, websocket.MessageText, raw)
}

// outcome returns what an acknowledgement says. ok is false if the connection was closed before.
func outcome(f frame, ok bool, result any) error {
	switch {
	case !ok:
		return errUnknown
	case f.Code != 0:
		return &apiError{f.Code, f.Message}
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(f.Body, result); err != nil {
		return fmt.Errorf("wecom: answer of the platform: %w", err)
	}
	return nil
}

// drop ends the wait for an acknowledgement.
func (l *link) drop(id string, ch chan frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending[id] == ch {
		delete(l.pending, id)
	}
}
