package follow

import (
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/server"
)

// Stream is an open response to a viewer. Close it.
type Stream struct {
	Ticks <-chan time.Time // has a value when the viewer should get a heartbeat; see Tick
	Err   error            // the error of the first write that failed

	response *server.Stream
	viewer   *server.Viewer
	ticker   *time.Ticker
	beat     []byte
}

// OpenStream begins a response with status 200, and counts the viewer. Set other headers before. The heartbeat is something without a meaning,
// which clients skip.
func OpenStream(srv *server.Server, viewers *server.ViewerMetrics, w http.ResponseWriter, r *http.Request, contentType, heartbeat string) *Stream {
	response, err := srv.OpenStream(w, r, http.StatusOK, contentType)
	ticker := time.NewTicker(response.Beat)
	return &Stream{Ticks: ticker.C, Err: err, response: response, viewer: viewers.Open(), ticker: ticker, beat: []byte(heartbeat)}
}

// Head reports whether the client requested only the headers. Write sends nothing then.
func (s *Stream) Head() bool { return s.response.Head() }

// Write sends what there is. After an error it sends nothing more, and returns the same error.
func (s *Stream) Write(b []byte) error {
	if s.Err == nil && len(b) > 0 && !s.Head() {
		s.Err = s.response.Write(b)
		s.viewer.Frame(len(b))
	}
	return s.Err
}

// Tick sends the heartbeat, so that the client and the proxies before it know that the connection is alive.
func (s *Stream) Tick() error { return s.Write(s.beat) }

// Close ends the count of the viewer.
func (s *Stream) Close() {
	s.ticker.Stop()
	s.viewer.Close()
}
