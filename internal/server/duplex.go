// Requests whose body and response are streams, on connections that are taken from net/http. One that is idle needs two small stacks and
// a small buffer instead of the stack, the buffers and the headers of a request.

package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"runtime/debug"
	"strings"
	"time"
)

// duplexBuffer is how many bytes of a body are read ahead. A piece of an agent's text is smaller.
const duplexBuffer = 1 << 10

// Duplex is a request whose body is read while its response is written. Its two directions may have a goroutine each.
type Duplex struct {
	*Stream
	// Body ends with [io.EOF] only if the client has sent all of it.
	Body io.Reader
	// Nil if net/http keeps the connection.
	wire *wire
	log  *slog.Logger
	w    http.ResponseWriter
	r    *http.Request
}

// OpenDuplex is [Server.OpenStream] for a request whose body is read meanwhile. Run has to be called next. If the client waits for permission
// to send the body, it gets that first.
func (s *Server) OpenDuplex(w http.ResponseWriter, r *http.Request, status int, contentType string) (*Duplex, error) {
	if r.ProtoMajor > 1 || len(r.TransferEncoding) == 0 { // not chunked
		if expectsContinue(r) {
			w.WriteHeader(http.StatusContinue)
		}
		stream, err := s.OpenStream(w, r, status, contentType)
		return &Duplex{Stream: stream, Body: r.Body, w: w, r: r}, err
	}
	conn, prefix, head, err := takeStream(w, r, status, contentType)
	if err != nil {
		return nil, err
	}
	out := &wire{Conn: conn}
	d := &Duplex{
		Stream: &Stream{w: out, rc: http.NewResponseController(out), stall: s.opt.Stall, Beat: s.opt.Heartbeat}, wire: out, log: s.log, w: w, r: r,
		Body: httputil.NewChunkedReader(bufio.NewReaderSize(io.MultiReader(bytes.NewReader(prefix), conn), duplexBuffer)),
	}
	d.extend()
	_, _ = conn.Write(head) // a later write has the same error
	return d, nil
}

// expectsContinue reports whether the client waits for the status 100. The final status would tell it not to send its body.
func expectsContinue(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Expect"), "100-continue")
}

// Run calls handle with a context that ends as that of a request does. If the connection was taken over, Run returns at once, and the request
// ends with handle.
func (d *Duplex) Run(handle func(context.Context) error) error {
	if d.wire == nil {
		return handle(d.r.Context())
	}
	_, values := HandshakeOf(d.r)
	ctx, cancel := context.WithCancelCause(values)
	end := d.w.(*response).detach(cancel)
	d.w, d.r = nil, nil // they need several KB
	go func() {         // the server waits for end
		isWhole := d.call(ctx, handle)
		end(d.close(isWhole))
		cancel(nil)
	}()
	return nil
}

// call calls handle, and logs its error or its panic as the server does for other requests. After a panic it returns false.
func (d *Duplex) call(ctx context.Context, handle func(context.Context) error) (isWhole bool) {
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("handler panicked", "request", RequestID(ctx), "panic", p, "stack", string(debug.Stack()))
		}
	}()
	if err := handle(ctx); err != nil {
		d.log.Error("request failed", "request", RequestID(ctx), "error", err)
	}
	return true
}

// close closes the connection, after the end of the response if that is whole. It returns the number of bytes of the response's body. Bytes
// that the client still sends are read for a while: the system would discard the end of the response otherwise.
func (d *Duplex) close(isWhole bool) int64 {
	if !isWhole {
		_ = d.wire.Conn.Close()
		return d.wire.bytes
	}
	if _, err := d.wire.Conn.Write([]byte("0\r\n\r\n")); err == nil {
		_ = d.wire.SetReadDeadline(time.Now().Add(leftoverTimeout))
		_, _ = io.Copy(io.Discard, d.wire.Conn)
	}
	_ = d.wire.Conn.Close()
	return d.wire.bytes
}

// StopReading makes the current and all later reads of the body fail.
func (st *Stream) StopReading() { _ = st.rc.SetReadDeadline(time.Unix(1, 0)) }

// wire writes a chunked response to a connection.
type wire struct {
	net.Conn
	bytes int64
}

// Header implements [http.ResponseWriter]. The head was sent already.
func (w *wire) Header() http.Header { return nil }

// WriteHeader implements [http.ResponseWriter].
func (w *wire) WriteHeader(int) {}

// Flush implements [http.Flusher]. Nothing is buffered.
func (w *wire) Flush() {}

func (w *wire) Write(b []byte) (int, error) {
	if _, err := w.Conn.Write(Chunk(b)); err != nil {
		return 0, err
	}
	w.bytes += int64(len(b))
	return len(b), nil
}

// Chunk returns a frame as a chunk of HTTP/1.1.
func Chunk(frame []byte) []byte { return fmt.Appendf(nil, "%x\r\n%s\r\n", len(frame), frame) }
