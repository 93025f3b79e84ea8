//go:build e2e

package openclaw

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/test/e2e/internal/harness"
)

// wire is a proxy between Leat and a gateway that can drop connections and lose events.
type wire struct {
	URL    string
	target string
	rest   http.Handler // plain HTTP

	mu    sync.Mutex
	down  bool
	muted bool
	conns map[*websocket.Conn]bool
}

// newWire returns a wire to a gateway, which may be started later.
func newWire(t *testing.T, claw *harness.Program) *wire {
	t.Helper()
	target, err := url.Parse(claw.URL)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{target: strings.Replace(claw.URL, "http", "ws", 1), rest: httputil.NewSingleHostReverseProxy(target), conns: map[*websocket.Conn]bool{}}
	s := httptest.NewServer(w)
	t.Cleanup(func() {
		w.Cut()
		s.Close()
	})
	w.URL = s.URL
	return w
}

// Cut drops all connections and refuses new ones until Mend.
func (w *wire) Cut() {
	w.mu.Lock()
	w.down = true
	conns := slices.Collect(maps.Keys(w.conns))
	w.mu.Unlock()
	for _, c := range conns {
		_ = c.CloseNow() // it may have ended
	}
}

// Mend ends Cut and Mute.
func (w *wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down, w.muted = false, false
}

// Mute drops the gateway's events until Mend. Responses still pass.
func (w *wire) Mute() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.muted = true
}

func (w *wire) loses(frame []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	var f struct {
		Type string `json:"type"`
	}
	return w.muted && json.Unmarshal(frame, &f) == nil && f.Type == "event"
}

// add registers a connection. It returns false after Cut.
func (w *wire) add(c *websocket.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.down {
		w.conns[c] = true
	}
	return !w.down
}

func (w *wire) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		w.rest.ServeHTTP(rw, r)
		return
	}
	there, _, err := websocket.Dial(r.Context(), w.target+r.URL.Path, nil)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = there.CloseNow() }() // it may have ended
	if !w.add(there) {
		http.Error(rw, "the wire is cut", http.StatusBadGateway)
		return
	}
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.conns, there)
	}()
	here, err := websocket.Accept(rw, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = here.CloseNow() }() // it may have ended
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var both sync.WaitGroup
	copyFrames := func(to, from *websocket.Conn, loses func([]byte) bool) {
		defer cancel()
		from.SetReadLimit(64 << 20)
		for {
			kind, b, err := from.Read(ctx)
			if err != nil {
				_ = to.Close(max(websocket.CloseStatus(err), websocket.StatusNormalClosure), "") // it may have ended
				return
			}
			if !loses(b) && to.Write(ctx, kind, b) != nil {
				return
			}
		}
	}
	both.Go(func() { copyFrames(here, there, w.loses) })
	both.Go(func() { copyFrames(there, here, func([]byte) bool { return false }) })
	both.Wait()
}
