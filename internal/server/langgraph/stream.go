package langgraph

import (
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/server"
)

// stream is an open response of server-sent events.
type stream struct {
	response *server.Stream
	metrics  *server.Viewer
	ticker   *time.Ticker
	ticks    <-chan time.Time
	err      error // of the first write that failed
}

// openStream begins a response. Set other headers before.
func (s *surface) openStream(w http.ResponseWriter, r *http.Request) *stream {
	response, err := s.srv.OpenStream(w, r, http.StatusOK, server.EventStream)
	ticker := time.NewTicker(response.Beat)
	return &stream{response: response, metrics: s.viewers.Open(), ticker: ticker, ticks: ticker.C, err: err}
}

// write sends events. After an error it sends nothing more.
func (out *stream) write(b []byte) error {
	if out.err == nil && len(b) > 0 && !out.response.Head() {
		out.err = out.response.Write(b)
		out.metrics.Frame(len(b))
	}
	return out.err
}

// tick sends a comment in a silence, so that the client knows that the connection is alive.
func (out *stream) tick() error { return out.write([]byte(keepAlive)) }

// close ends the count of the client.
func (out *stream) close() {
	out.ticker.Stop()
	out.metrics.Close()
}
