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
func (st *stream) write(b []byte) error {
	if st.err == nil && len(b) > 0 && !st.response.Head() {
		st.err = st.response.Write(b)
		st.metrics.Frame(len(b))
	}
	return st.err
}

// tick sends a comment in a silence, so that the client knows that the connection is alive.
func (st *stream) tick() error { return st.write([]byte(keepAlive)) }

// close ends the count of the client.
func (st *stream) close() {
	st.ticker.Stop()
	st.metrics.Close()
}
