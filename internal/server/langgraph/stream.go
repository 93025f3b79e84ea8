package langgraph

import (
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/server"
)

// stream is an open response.
type stream struct {
	response *server.Stream
	metrics  *server.Viewer
	ticker   *time.Ticker
	ticks    <-chan time.Time
	beat     string
	err      error // of the first write that failed
}

// openStream begins a response of events. Set other headers before.
func (s *surface) openStream(w http.ResponseWriter, r *http.Request) *stream {
	return s.openResponse(w, r, server.EventStream, keepAlive)
}

// openResponse begins a response that may take long. Meanwhile, beat is sent in each silence.
func (s *surface) openResponse(w http.ResponseWriter, r *http.Request, contentType, beat string) *stream {
	response, err := s.srv.OpenStream(w, r, http.StatusOK, contentType)
	ticker := time.NewTicker(response.Beat)
	return &stream{response: response, metrics: s.viewers.Open(), ticker: ticker, ticks: ticker.C, beat: beat, err: err}
}

// write sends events. After an error it sends nothing more.
func (st *stream) write(b []byte) error {
	if st.err == nil && len(b) > 0 && !st.response.Head() {
		st.err = st.response.Write(b)
		st.metrics.Frame(len(b))
	}
	return st.err
}

// tick sends something without a meaning in a silence, so that the client knows that the connection is alive.
func (st *stream) tick() error { return st.write([]byte(st.beat)) }

// close ends the count of the client.
func (st *stream) close() {
	st.ticker.Stop()
	st.metrics.Close()
}
