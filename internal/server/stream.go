// Responses that stay open: headers that keep proxies from buffering, write deadlines, and comments in pauses.

package server

import (
	"fmt"
	"net/http"
	"time"

	"github.com/leat-dev/leat/sse"
)

// Media types of streams.
const (
	EventStream = "text/event-stream; charset=utf-8"
	NDJSON      = "application/x-ndjson; charset=utf-8"
)

// piece is how many bytes of a large batch are written under one deadline, so that a slow reader that makes progress is not
// mistaken for a stalled one.
const piece = 64 << 10

// Stream is a response without a fixed end. Only one goroutine may use it.
type Stream struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	stall time.Duration
	since time.Time // when the deadline was last set
	head  bool
	// Beat is how long the stream may be silent. The handler sends a heartbeat then.
	Beat time.Duration
}

// OpenStream sends the headers at once, so that the client knows that it is connected before the first data. The status is
// usually 200. Set other headers before.
//
// The returned error is that of the first flush. The stream is usable for Head even then.
func (s *Server) OpenStream(w http.ResponseWriter, r *http.Request, status int, contentType string) (*Stream, error) {
	streamHeaders(w.Header(), contentType)
	st := &Stream{w: w, rc: http.NewResponseController(w), stall: s.opt.Stall, head: r.Method == http.MethodHead, Beat: s.opt.Heartbeat}
	w.WriteHeader(status)
	st.extend()
	return st, st.flush()
}

func streamHeaders(h http.Header, contentType string) {
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "private, no-cache, no-store, no-transform")
	h.Set("X-Accel-Buffering", "no") // nginx would buffer the whole stream
}

// Head reports whether the client requested only the headers. The handler must not write then.
func (st *Stream) Head() bool { return st.head }

// Write sends bytes and flushes them. It blocks while the client accepts none, up to the stall limit. After an error the stream
// is unusable.
func (st *Stream) Write(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), piece)
		st.extend()
		if _, err := st.w.Write(b[:n]); err != nil {
			return fmt.Errorf("write stream: %w", err)
		}
		b = b[n:]
	}
	return st.flush() // under the deadline of the last piece
}

// Comment sends an SSE comment, which clients ignore, as a heartbeat.
func (st *Stream) Comment(text string) error { return st.Write(sse.AppendComment(nil, text)) }

// extend restarts the stall limit, unless less than a hundredth of it has passed: setting a deadline costs a tenth of a small
// write.
func (st *Stream) extend() {
	if at := time.Now(); at.Sub(st.since) > st.stall/100 {
		st.since = at
		_ = st.rc.SetWriteDeadline(at.Add(st.stall)) // without an effect if the writer has no deadlines
	}
}

func (st *Stream) flush() error {
	if err := st.rc.Flush(); err != nil {
		return fmt.Errorf("flush stream: %w", err)
	}
	return nil
}
