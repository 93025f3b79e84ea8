// Streams: what ends them, how they outlive their handlers, and responses that stay open: headers that keep proxies from buffering, write
// deadlines, and comments in pauses.

package server

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/leat-dev/leat/internal/server/internal/netpoll"
)

// liveStreams are the streams of a server. The zero value is ready to use.
type liveStreams struct {
	// Counts the streams that have not ended.
	open sync.WaitGroup

	mu       sync.Mutex
	isClosed bool
	streams  map[*liveStream]struct{}
}

// liveStream is what can end a stream.
type liveStream struct {
	cancel context.CancelCauseFunc
	// Removes it from its session; nil without one.
	forget func() bool
	// Nil if its credentials don't expire.
	expiry *time.Timer
}

// add registers a stream. After close it is cancelled at once.
func (l *liveStreams) add(st *liveStream) {
	l.open.Add(1)
	l.mu.Lock()
	isClosed := l.isClosed
	if l.streams == nil {
		l.streams = map[*liveStream]struct{}{}
	}
	l.streams[st] = struct{}{}
	l.mu.Unlock()
	if isClosed {
		st.cancel(ErrShutdown)
	}
}

// remove ends what could end the stream.
func (l *liveStreams) remove(st *liveStream) {
	if st.forget != nil {
		st.forget()
	}
	if st.expiry != nil {
		st.expiry.Stop()
	}
	l.mu.Lock()
	delete(l.streams, st)
	l.mu.Unlock()
	l.open.Done()
}

// close cancels all streams, also those that are added later.
func (l *liveStreams) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosed {
		return
	}
	l.isClosed = true
	for st := range l.streams {
		st.cancel(ErrShutdown)
	}
}

// stream gives a streaming request a context that ends with the server, with its session, and, unless the connection can renew
// them, with its credentials.
func (s *Server) stream(r *http.Request, e *endpoint, id Identity) (_ *http.Request, end func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	st := s.hook(e, id, cancel)
	return r.WithContext(ctx), func() {
		s.streams.remove(st)
		cancel(nil)
	}
}

// hook calls cancel when the server closes, when the session of a stream ends, and, unless the connection can renew them, when its
// credentials expire. The server waits for the stream until it is removed.
func (s *Server) hook(e *endpoint, id Identity, cancel context.CancelCauseFunc) *liveStream {
	st := &liveStream{cancel: cancel}
	if id.session != "" {
		st.forget = s.sessions.add(id.session, cancel)
		if s.opt.Sessions.IsEnded(id.session) { // ended after the request was accepted
			cancel(errLoggedOut)
		}
	}
	if e.Access != InBand && !id.Expires.IsZero() {
		st.expiry = time.AfterFunc(time.Until(id.Expires), func() { cancel(ErrExpired) })
	}
	s.streams.add(st)
	return st
}

// IsDetachable reports whether the connection of a request can be taken over by [http.Hijacker] and used without a goroutine.
func IsDetachable(r *http.Request) bool {
	if !netpoll.IsSupported || r.Method != http.MethodGet || r.ProtoMajor != 1 || r.TLS != nil || r.ContentLength != 0 {
		return false
	}
	c, _ := r.Context().Value(connKey{}).(*conn)
	if c == nil {
		return true // another http.Server than Serve's has accepted it
	}
	_, ok := c.Conn.(syscall.Conn)
	return ok
}

// Detach lets the handler of a stream return before the stream ends, after it has taken the connection over. The request ends, for
// the log, for the metrics and for [Server.Serve], when end is called with the number of bytes sent since. When the stream has to end,
// cancel is called with the cause, also more than once and possibly before Detach returns; it must not block. The context of the request
// ends when its handler returns. Detach panics if w isn't the response of a stream.
func Detach(w http.ResponseWriter, cancel context.CancelCauseFunc) (end func(bytes int64)) {
	return w.(*response).detach(cancel)
}

// TakeStream is [Server.OpenStream] for a request that is detachable: it takes the connection over before anything is sent. The caller
// sends head first, and then a body that is chunked unless the request's version is HTTP/1.0. It closes the connection after the body.
// [Detach] has to be called next. What the client has sent after its request gets no answer.
func TakeStream(w http.ResponseWriter, r *http.Request, contentType string) (conn net.Conn, head []byte, err error) {
	conn, _, head, err = takeStream(w, r, http.StatusOK, contentType)
	return conn, head, err
}

// takeStream is TakeStream with a status. It also returns what was read of the connection after the head of the request.
func takeStream(w http.ResponseWriter, r *http.Request, status int, contentType string) (conn net.Conn, prefix, head []byte, err error) {
	h := w.Header()
	streamHeaders(h, contentType)
	h.Set("Connection", "close")
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	if r.ProtoAtLeast(1, 1) {
		h.Set("Transfer-Encoding", "chunked")
	}
	b := bytes.NewBuffer(make([]byte, 0, 1<<10))
	if expectsContinue(r) {
		b.WriteString("HTTP/1.1 100 Continue\r\n\r\n")
	}
	fmt.Fprintf(b, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	if err := h.Write(b); err != nil {
		return nil, nil, nil, fmt.Errorf("head of a stream: %w", err)
	}
	b.WriteString("\r\n")
	conn, buffers, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("take a connection: %w", err)
	}
	w.(*response).status = status
	prefix, _ = buffers.Peek(buffers.Reader.Buffered()) // they are there
	return conn, slices.Clone(prefix), b.Bytes(), nil
}

// detach is [Detach] for a route. The result refers to no part of the request, which would stay in memory otherwise.
func (s *Server) detach(w *response, r *http.Request, e *endpoint, id Identity, cancel context.CancelCauseFunc) (end func(bytes int64)) {
	w.isDetached = true
	st := s.hook(e, id, cancel)
	rec := newRecord(r, w, e.Pattern)
	// They were parts of the request's first line.
	rec.conversation, rec.turn, rec.method = strings.Clone(rec.conversation), strings.Clone(rec.turn), e.Method
	return func(bytes int64) {
		s.streams.remove(st)
		rec.bytes += bytes
		s.finish(context.Background(), rec, e)
	}
}

// Poller returns the poller of the connections that have no goroutine.
func (s *Server) Poller() *netpoll.Poller { return &s.poller }

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
