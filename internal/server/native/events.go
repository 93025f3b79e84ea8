// The event stream of a conversation as SSE and NDJSON: from a cursor or a snapshot, until the viewer leaves or loses access.

package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/sse"
)

// events answers GET /api/conversations/{id}/events: a conversation from a cursor on, as SSE or NDJSON.
//
// Everything that can be refused (the media type, the permission, the limit of viewers) is checked before
// OpenStream sends the status.
func (n *native) events(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	encoding, err := encodingOf(r)
	if err != nil {
		return err
	}
	f, err := n.gw.Feed(r.Context(), p, r.PathValue("id"))
	if err != nil {
		return err
	}
	v := &viewer{n: n, w: w, r: r, p: p, encoding: encoding, feed: f, cursor: cursor(r), metrics: n.sse}
	defer v.release()
	if v.leave, err = n.gw.AddViewer(p); err != nil {
		return err
	}
	media := server.EventStream
	if encoding == feed.NDJSON {
		media, v.metrics = server.NDJSON, n.ndjson
	}
	w.Header().Add("Vary", "Accept")
	if v.canDetach() {
		return v.detach(r.Context())
	}
	if v.stream, err = n.s.OpenStream(w, r, http.StatusOK, media); err != nil || v.stream.Head() {
		return err
	}
	v.measured = v.metrics.Open()
	return v.run(r.Context())
}

// release ends the viewer, unless it was detached. It is called once, also after an error in the middle of events.
func (v *viewer) release() {
	if v.isDetached {
		return
	}
	v.feed.Release()
	if v.leave != nil {
		v.leave()
	}
	if v.measured != nil {
		v.measured.Close()
	}
}

// encodingOf chooses the encoding by the Accept header.
//
// NDJSON must be named explicitly. A missing header, a wildcard or any text type means SSE. Quality values
// are ignored: a client that accepts NDJSON at all can read it.
func encodingOf(r *http.Request) (feed.Encoding, error) {
	accept := strings.ToLower(strings.Join(r.Header.Values("Accept"), ","))
	for _, media := range []string{"application/x-ndjson", "application/ndjson", "application/jsonl"} {
		if strings.Contains(accept, media) {
			return feed.NDJSON, nil
		}
	}
	if accept == "" || strings.Contains(accept, "text/event-stream") || strings.Contains(accept, "*/*") || strings.Contains(accept, "text/*") {
		return feed.SSE, nil
	}
	return 0, server.Errorf(http.StatusNotAcceptable, server.ReasonInvalid, "no supported media type in Accept; send text/event-stream or application/x-ndjson")
}

// cursor returns the cursor of a request. The header wins, because a browser that reconnects repeats its URL and adds the
// header.
func cursor(r *http.Request) feed.Cursor {
	if c := r.Header.Get("Last-Event-ID"); c != "" {
		return feed.Cursor(c)
	}
	return feed.Cursor(r.URL.Query().Get("after"))
}

// viewer sends one conversation over a streamed response.
//
// Only the handler's goroutine uses it. It has no queue: cursor is the position of the last batch that was
// written. If the connection allows it, it is detached after its first batch, and needs no goroutine from then on.
type viewer struct {
	n          *native
	w          http.ResponseWriter
	r          *http.Request
	p          gateway.Principal
	encoding   feed.Encoding
	feed       *gateway.Reader
	leave      func() // ends the count as a viewer
	stream     *server.Stream
	cursor     feed.Cursor
	metrics    *server.ViewerMetrics
	measured   *server.Viewer
	isDetached bool
}

// run writes frames until the client disconnects, the server stops or the conversation ends. It returns only internal errors.
//
// The first frame is always hello, so a client knows the head of the log before the first batch. The last
// frame is an error frame with the reason, except when nobody can read it: after a failed write, or when
// the request was cancelled.
func (v *viewer) run(ctx context.Context) error {
	greeting, err := v.greeting()
	if err != nil {
		return err
	}
	if v.stream.Write(greeting) != nil {
		return nil // the client disconnected
	}
	err = v.follow(ctx)
	if errors.Is(err, errDisconnected) || errors.Is(err, context.Canceled) {
		return nil
	}
	frame, merr := lastFrame(v.encoding, v.feed.Conversation(), err)
	if merr != nil {
		return merr
	}
	_ = v.stream.Write(frame) // best effort: a client that misses it resumes by its cursor
	if server.Describe(err).Status == http.StatusInternalServerError {
		return err
	}
	return nil
}

// greeting returns the first frame.
func (v *viewer) greeting() ([]byte, error) {
	hello, err := json.Marshal(helloFrame{Type: "hello", Protocol: Protocol, Conversation: v.feed.Conversation(), Turns: unfinishedTurns(v.feed.Feed), Head: v.feed.Head()})
	if err != nil {
		return nil, fmt.Errorf("hello: %w", err)
	}
	frame := frameOf(v.encoding, hello)
	if v.encoding == feed.SSE {
		frame = append(sse.AppendRetry(nil, retryHint), frame...)
	}
	return frame, nil
}

// poll is [gateway.Reader.Poll], also if the feed is lost meanwhile. A feed is lost when its log was replaced or the
// writer failed. The cursor stays valid, unless the log has another epoch.
func (v *viewer) poll(ctx context.Context) (*feed.Batch, error) {
	for {
		b, err := v.feed.Poll(ctx, v.cursor, batchBudget)
		if !errors.Is(err, feed.ErrLost) {
			return b, err
		}
		next, err := v.feed.Reattach(ctx)
		if err != nil {
			return nil, err
		}
		v.feed = next
	}
}

// lastFrame returns the frame with the cause of a stream's end. Its text is for users, and an internal error has a
// general one.
func lastFrame(encoding feed.Encoding, conversation string, cause error) ([]byte, error) {
	last, err := json.Marshal(newError("error", "", conversation, cause))
	if err != nil {
		return nil, fmt.Errorf("last frame: %w", err)
	}
	frame := frameOf(encoding, last)
	if after := server.Describe(cause).RetryAfter; after > 0 && encoding == feed.SSE {
		frame = append(sse.AppendRetry(nil, after), frame...) // a browser's EventSource reads no frames
	}
	return frame, nil
}

// errDisconnected reports that a write of a streamed response failed.
var errDisconnected = errors.New("native: client disconnected")

// follow writes the feed's batches, and a heartbeat after each interval without one. It returns the cause of the end.
//
// Notify is called before Poll. In the opposite order, a commit between the two would be missed until the
// next one. Each batch has everything since the cursor, up to batchBudget, so a slow reader gets fewer
// batches. A heartbeat is due only after a silent interval.
func (v *viewer) follow(ctx context.Context) error {
	beat := time.NewTimer(v.stream.Beat)
	defer beat.Stop()
	for {
		changed := v.feed.Notify()
		before := v.feed
		b, err := v.poll(ctx)
		if v.feed != before && b == nil && err == nil {
			continue // changed is that of the lost feed
		}
		if err != nil {
			return err
		}
		if b != nil {
			frame, err := b.Encode(v.encoding)
			if err != nil {
				return err
			}
			if err := v.stream.Write(frame); err != nil {
				return errDisconnected
			}
			v.measured.Wrote(v.cursor, b, len(frame))
			v.cursor = b.Cursor
			beat.Reset(v.stream.Beat)
			continue
		}
		v.measured.Idle(v.cursor)
		select {
		case <-changed:
		case <-beat.C:
			if v.heartbeat() != nil {
				return errDisconnected
			}
			beat.Reset(v.stream.Beat)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// frameOf encodes a frame without a cursor. It has no SSE id, so it does not move the cursor of an EventSource.
func frameOf(encoding feed.Encoding, json []byte) []byte {
	if encoding == feed.NDJSON {
		return append(json, '\n')
	}
	b, err := sse.AppendEvent(nil, "", "", json)
	if err != nil {
		panic(err) // only an id or a name can be wrong
	}
	return b
}

// heartbeat sends a ping frame over NDJSON, and a comment over SSE, which an EventSource does not pass to
// its page.
func (v *viewer) heartbeat() error {
	if v.encoding == feed.NDJSON {
		return v.stream.Write(append(pingFrame[:len(pingFrame):len(pingFrame)], '\n'))
	}
	return v.stream.Write(heartbeatSSE)
}
