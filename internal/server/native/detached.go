// An event stream without a goroutine. Its connection is taken from net/http.

package native

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/fanout"
	"github.com/leat-dev/leat/internal/server/internal/netpoll"
	"github.com/leat-dev/leat/internal/server/internal/outgoing"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/sse"
)

// lastLimit is how long a client may take to accept the last frame. A restart waits for it.
const lastLimit = 5 * time.Second

// maxJoined is the size in bytes of the largest first batch that is sent with the greeting. A larger one would be copied, which costs more than
// a second write.
const maxJoined = 4 << 10

// canDetach reports whether the viewer can continue without a goroutine. NDJSON is for programs, which are few, so it keeps its goroutine.
func (v *viewer) canDetach() bool { return v.encoding == feed.SSE && server.IsDetachable(v.r) }

// detached is a detached event stream. Its viewer calls End; the poller calls the other methods. It lives until its
// connection is closed, which may be after the end of the viewer: the last frame has to be sent first.
type detached struct {
	n            *native
	conversation string
	// HTTP/1.0 has no chunks; the end of the connection is that of the stream.
	isChunked bool
	viewer    *fanout.Viewer
	writer    *outgoing.Conn
	measured  *server.Viewer
	// leave ends the count as a viewer, and end the request in the log and the metrics. Each is called once.
	leave func()
	end   func(bytes int64)

	mu sync.Mutex
	// bytes is the size of what was written, without the heads of HTTP. mu protects it, last and limit.
	bytes int64
	// The frame to write before the connection is closed, from the end of the viewer on.
	last []byte
	// For last; nil before the end of the viewer.
	limit *time.Timer
	// Of the connection.
	closing sync.Once
}

var (
	// heartbeatSSE is a comment, which an EventSource doesn't pass to its page. All viewers write the same bytes.
	heartbeatSSE = sse.AppendComment(nil, "ping")
	heartbeats   = map[feed.Encoding][]byte{feed.SSE: heartbeatSSE, feed.SSEChunk: server.Chunk(heartbeatSSE)}
)

// detach sends the greeting and a small first batch with one write, and continues without a goroutine. After
// TakeStream the handler must not use the response any more, so every failure from there on is handled by closing the
// connection and never returned. Its client connects again with its cursor.
func (v *viewer) detach(ctx context.Context) error {
	greeting, err := v.greeting()
	if err != nil {
		return err
	}
	b, err := v.poll(ctx)
	if err != nil {
		return err
	}
	conn, frame, err := server.TakeStream(v.w, v.r, server.EventStream)
	if err != nil {
		return err
	}
	v.isDetached = true
	v.measured = v.metrics.Open()
	d := &detached{n: v.n, conversation: v.feed.Conversation(), isChunked: v.r.ProtoAtLeast(1, 1), measured: v.measured, leave: v.leave}
	o := fanout.Options{Reader: v.feed, Sink: d, Encoding: feed.SSE, Measured: v.measured}
	if d.isChunked {
		o.Encoding = feed.SSEChunk
		greeting = server.Chunk(greeting)
	}
	frame = append(frame, greeting...)
	if b == nil {
		v.measured.Idle(v.cursor)
	} else if batch, err := b.Encode(o.Encoding); err == nil && len(batch) <= maxJoined { // otherwise the viewer continues with it
		frame = append(frame, batch...)
		v.measured.Wrote(v.cursor, b, len(batch))
		v.cursor = b.Cursor
	}
	o.Cursor, d.bytes = v.cursor, int64(len(frame))
	d.viewer = v.n.viewers.NewViewer(o)
	d.end = server.Detach(v.w, d.viewer.Cancel)
	d.writer, err = outgoing.New(outgoing.Config{Conn: conn, Poller: v.n.s.Poller(), Stall: v.n.s.Options().Stall, Owner: d})
	if err != nil {
		v.n.s.Log().Error("a connection can't be polled", "error", err) // the client connects again
		_ = conn.Close()
		d.viewer.Cancel(fanout.ErrDisconnected)
	} else if state, err := d.writer.TryWrite(frame); err != nil || state == outgoing.Busy { // a new connection is never busy
		d.viewer.Cancel(fanout.ErrDisconnected)
	}
	d.viewer.Start()
	return nil
}

// TryWrite implements [fanout.Sink].
func (d *detached) TryWrite(frame []byte) (outgoing.State, error) { return d.writer.TryWrite(frame) }

// OnFailed implements [outgoing.Owner].
func (d *detached) OnFailed(error) { d.OnEvents(netpoll.Closed) }

// OnEvents implements [outgoing.Owner]. It ends a stream whose client has left. Bytes that it sends have no meaning.
func (d *detached) OnEvents(e netpoll.Events) {
	if e&netpoll.Closed != 0 {
		d.viewer.Cancel(fanout.ErrDisconnected)
		d.mu.Lock()
		isLast := d.limit != nil
		d.mu.Unlock()
		if isLast {
			d.close()
		}
	}
}

// OnReady implements [outgoing.Owner]. It continues after the connection was full.
func (d *detached) OnReady() {
	d.mu.Lock()
	isLast := d.limit != nil
	d.mu.Unlock()
	if isLast {
		d.writeLast()
	} else {
		d.viewer.Ready()
	}
}

// End implements [fanout.Sink]. It tells the client why the stream ends, and closes the connection when the client
// has it. It is called once. The limit starts here, so a client that doesn't read can't keep the connection open.
func (d *detached) End(cause error, bytes int64) {
	d.measured.Close()
	d.leave()
	var frame []byte
	if !errors.Is(cause, fanout.ErrDisconnected) && !errors.Is(cause, context.Canceled) {
		var err error
		if frame, err = lastFrame(feed.SSE, d.conversation, cause); err != nil || server.Describe(cause).Status == http.StatusInternalServerError {
			d.n.s.Log().Error("event stream failed", "conversation", d.conversation, "error", errors.Join(cause, err))
		}
		if d.isChunked {
			frame = append(server.Chunk(frame), "0\r\n\r\n"...)
		}
	}
	d.mu.Lock()
	d.bytes, d.last = d.bytes+bytes, frame
	d.limit = time.AfterFunc(lastLimit, d.close)
	d.mu.Unlock()
	if frame == nil {
		d.close()
	} else {
		d.writeLast()
	}
}

// writeLast writes the last frame as soon as the connection takes it, and closes the connection when all of it is
// sent. It is called again whenever the connection has become ready, until the frame is taken.
func (d *detached) writeLast() {
	d.mu.Lock()
	frame := d.last
	d.mu.Unlock()
	if frame == nil {
		d.close() // it was pending
		return
	}
	state, err := d.writer.TryWrite(frame)
	if state == outgoing.Busy && err == nil {
		return
	}
	d.mu.Lock()
	d.last, d.bytes = nil, d.bytes+int64(len(frame))
	d.mu.Unlock()
	if state == outgoing.Complete || err != nil {
		d.close()
	}
}

// close closes the connection and ends the request. It may be called several times, also at the same time: by the
// viewer's end, the poller and the timer.
func (d *detached) close() {
	d.closing.Do(func() {
		if d.writer != nil {
			d.writer.Close()
		}
		d.mu.Lock()
		bytes := d.bytes
		d.limit.Stop()
		d.mu.Unlock()
		d.end(bytes)
	})
}
