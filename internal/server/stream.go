package server

import (
	"fmt"
	"net/http"
	"time"

	"github.com/leat-dev/leat/sse"
)

// The media types of streams.
const (
	EventStream = "text/event-stream; charset=utf-8"
	NDJSON      = "application/x-ndjson; charset=utf-8"
)

// piece is how many bytes of a large batch are written under one deadline, so that a slow reader that makes progress is not
// taken for one that stalls.
const piece = 64 << 10

// Stream is a response that goes on. It is used from one goroutine.
type Stream struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	stall time.Duration
	since time.Time // when the deadline was set last
	head  bool
	// Beat is how long the stream may be silent; whoever writes it sends a heartbeat then.
	Beat time.Duration
}

// OpenStream sends the headers of a stream at once, so that the client knows that it is connected before there is anything
// to say. status is usually 200; other headers are set before.
func (s *Server) OpenStream(w http.ResponseWriter, r *http.Request, status int, contentType string) (*Stream, error) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "private, no-cache, no-store, no-transform")
	h.Set("X-Accel-Buffering", "no") // nginx would hold everything back
	st := &Stream{w: w, rc: http.NewResponseController(w), stall: s.opt.Stall, head: r.Method == http.MethodHead, Beat: s.opt.Heartbeat}
	w.WriteHeader(status)
	st.extend()
	return st, st.flush()
}

// Head reports whether the client asked for the headers alone; then nothing is to be written.
func (st *Stream) Head() bool { return st.head }

// Write sends bytes and flushes them. It blocks while the client takes nothing, up to the stall limit; after an error the
// stream is over.
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

// Comment sends an SSE comment, which clients ignore: a heartbeat.
func (st *Stream) Comment(text string) error { return st.Write(sse.AppendComment(nil, text)) }

// extend gives the client the whole stall limit again, less a hundredth: to set a deadline takes as long as a tenth of a
// small write, so it is not done for each.
func (st *Stream) extend() {
	if now := time.Now(); now.Sub(st.since) > st.stall/100 {
		st.since = now
		_ = st.rc.SetWriteDeadline(now.Add(st.stall)) // not every writer has deadlines; then there is none
	}
}

func (st *Stream) flush() error {
	if err := st.rc.Flush(); err != nil {
		return fmt.Errorf("flush stream: %w", err)
	}
	return nil
}
