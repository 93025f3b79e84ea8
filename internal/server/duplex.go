// Requests whose body and response are streams, on connections that are taken from net/http. One that is idle needs two small stacks and
// a small buffer instead of the stack, the buffers and the headers of a request.

package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"time"
)

// duplexBuffer is how many bytes of a body are read ahead. A piece of an agent's text is smaller.
const duplexBuffer = 1 << 10

// Duplex is a chunked request with a streamed response, on a connection that was taken over.
type Duplex struct {
	*Stream
	Body io.Reader
	wire *wire
}

// CanTakeDuplex reports whether [Server.TakeDuplex] can be used for a request.
func CanTakeDuplex(r *http.Request) bool {
	return r.ProtoMajor == 1 && slices.Equal(r.TransferEncoding, []string{"chunked"})
}

// TakeDuplex is [Server.OpenStream] for a request whose body is read meanwhile. It takes the connection over. [Detach] has to be called
// next, and Close at the end. If the client waits for permission to send the body, it gets that first.
func (s *Server) TakeDuplex(w http.ResponseWriter, r *http.Request, status int, contentType string) (*Duplex, error) {
	conn, read, head, err := takeStream(w, r, status, contentType)
	if err != nil {
		return nil, err
	}
	out := &wire{Conn: conn}
	d := &Duplex{
		Stream: &Stream{w: out, rc: http.NewResponseController(out), stall: s.opt.Stall, Beat: s.opt.Heartbeat}, wire: out,
		Body: httputil.NewChunkedReader(bufio.NewReaderSize(io.MultiReader(bytes.NewReader(read), conn), duplexBuffer)),
	}
	d.extend()
	_, _ = conn.Write(head) // a later write has the same error
	return d, nil
}

// StopReading makes the current and all later reads of the body fail.
func (st *Stream) StopReading() { _ = st.rc.SetReadDeadline(time.Unix(1, 0)) }

// Close ends the response and closes the connection. It returns the number of bytes of the response's body. Bytes that the client still
// sends are read for a while: the system would discard the end of the response otherwise.
func (d *Duplex) Close() int64 {
	if _, err := d.wire.Conn.Write([]byte("0\r\n\r\n")); err == nil {
		_ = d.wire.SetReadDeadline(time.Now().Add(leftoverTimeout))
		_, _ = io.Copy(io.Discard, d.wire.Conn)
	}
	_ = d.wire.Conn.Close()
	return d.wire.bytes
}

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
