package wecom

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"

	"github.com/leat-dev/leat/chattest/internal/memory"
)

// RoundTrip implements [http.RoundTripper]: it answers without a socket, so that tests can run in a testing/synctest bubble. A
// connection is a pipe, whose other end belongs to a goroutine until the connection is closed.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Host = r.URL.Host
	if r.Header.Get("Upgrade") == "" {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Result(), nil
	}
	client, server := memory.Pipe()
	go func() {
		defer server.Close()
		s.ServeHTTP(&pipeWriter{conn: server, header: http.Header{}}, r)
	}()
	reader := bufio.NewReader(client)
	response, err := http.ReadResponse(reader, r)
	if err != nil {
		_ = client.Close() // the error says more
		return nil, err
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		response.Body = pipeBody{reader, client}
	}
	return response, nil
}

// pipeBody is the body of a response that is a connection.
type pipeBody struct {
	io.Reader
	net.Conn
}

func (b pipeBody) Read(p []byte) (int, error) { return b.Reader.Read(p) }

// pipeWriter writes a response to a pipe.
type pipeWriter struct {
	conn   net.Conn
	header http.Header
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) Write(p []byte) (int, error) { return w.conn.Write(p) }

func (w *pipeWriter) WriteHeader(status int) {
	_, _ = fmt.Fprintf(w.conn, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status)) // a client that has gone notices
	_ = w.header.Write(w.conn)
	_, _ = io.WriteString(w.conn, "\r\n")
}

// Hijack implements [http.Hijacker].
func (w *pipeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return w.conn, bufio.NewReadWriter(bufio.NewReader(w.conn), bufio.NewWriter(w.conn)), nil
}
