package memory

import (
	"bufio"
	"context"
	"net"
	"net/http"
)

// upgrade answers a request for a WebSocket, of which both ends are in memory: the body of the response is the client's end of a pipe, and
// the other end belongs to a goroutine until the handler returns.
func upgrade(h http.Handler, r *http.Request) *http.Response {
	client, server := newPipe()
	w := &hijacker{header: http.Header{}, conn: server, status: make(chan int, 1)}
	go func() {
		defer server.Close()
		h.ServeHTTP(w, received(r.WithContext(context.WithoutCancel(r.Context())))) // the context is that of the handshake only
		w.WriteHeader(http.StatusOK)                                                // unless there was an answer
	}()
	status := <-w.status
	response := &http.Response{StatusCode: status, Header: w.header.Clone(), Request: r, Body: client, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if status != http.StatusSwitchingProtocols {
		_ = client.Close()
		response.Body = http.NoBody
	}
	return response
}

// hijacker is a response that becomes a connection.
type hijacker struct {
	header http.Header
	conn   net.Conn
	status chan int
	isSent bool
}

// Header implements [http.ResponseWriter].
func (w *hijacker) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter]. The client gets the response when the status is known.
func (w *hijacker) WriteHeader(status int) {
	if !w.isSent {
		w.isSent = true
		w.status <- status
	}
}

// Write implements [http.ResponseWriter]. The body of a refusal is dropped: clients look at the status only.
func (w *hijacker) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return len(p), nil
}

// Hijack implements [http.Hijacker].
func (w *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return w.conn, bufio.NewReadWriter(bufio.NewReader(w.conn), bufio.NewWriter(w.conn)), nil
}
