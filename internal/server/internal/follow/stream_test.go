package follow_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/follow"
)

var errGone = errors.New("gone")

// fragile is a client that disconnects after some writes.
type fragile struct {
	*httptest.ResponseRecorder
	writes int
}

func (f *fragile) Write(b []byte) (int, error) {
	if f.writes--; f.writes < 0 {
		return 0, errGone
	}
	return f.ResponseRecorder.Write(b)
}

func TestStream(t *testing.T) {
	srv := server.New(server.Options{})
	defer srv.Close()
	viewers := srv.Metrics().Viewers("test")
	open := func(method string, writes int) (*follow.Stream, *fragile) {
		w := &fragile{httptest.NewRecorder(), writes}
		return follow.OpenStream(srv, viewers, w, httptest.NewRequest(method, "/", nil), server.EventStream, ":beat\n"), w
	}

	st, w := open(http.MethodGet, 2)
	defer st.Close()
	if err := errors.Join(st.Write(nil), st.Write([]byte("a\n")), st.Tick()); err != nil || w.Body.String() != "a\n:beat\n" {
		t.Errorf("the client got %q, %v", w.Body, err)
	}
	if got := w.Header().Get("Content-Type"); got != server.EventStream || w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, got)
	}
	// After a failed write nothing is sent, and the error stays the first one.
	for range 2 {
		if err := st.Write([]byte("b")); !errors.Is(err, errGone) || !errors.Is(st.Err, errGone) {
			t.Errorf("a failed write returns %v, and the stream has %v", err, st.Err)
		}
	}
	if w.writes != -1 {
		t.Error("the stream was written to after a failed write")
	}

	head, w := open(http.MethodHead, 1)
	defer head.Close()
	if err := head.Write([]byte("a")); err != nil || !head.Head() || w.Body.Len() > 0 {
		t.Errorf("HEAD gets %q, %v", w.Body, err)
	}
}
