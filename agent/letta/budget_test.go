package letta

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/agent"
)

// A message of the App Server counts against the budget for large frames while it arrives. If the budget is used up, the connection
// ends, and a later one reads what it missed.
func TestLargeMessages(t *testing.T) {
	message := append(append([]byte(`{"type":"`), bytes.Repeat([]byte("x"), 20<<20)...), `"}`...)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.CloseNow()
		if conn.Write(r.Context(), websocket.MessageText, message) == nil {
			_, _, _ = conn.Read(r.Context()) // until the client leaves
		}
	}))
	defer server.Close()
	read := func() ([]byte, error) {
		ctx, end := context.WithCancel(t.Context())
		conn, _, err := websocket.Dial(ctx, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		conn.SetReadLimit(maxFrame)
		l := &connection{ws: conn, frames: make(chan []byte), cancel: end}
		l.tasks.Go(func() { l.readFrames(ctx, time.Second) })
		defer l.close()
		b, ok := <-l.frames
		if !ok {
			return nil, l.err
		}
		return b, nil
	}
	var others agent.Reservation
	if err := others.Resize(240 << 20); err != nil { // the remaining budget is smaller than the message
		t.Fatal(err)
	}
	if b, err := read(); b != nil || !errors.Is(err, agent.ErrBusy) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	others.Release()
	if b, err := read(); err != nil || !bytes.Equal(b, message) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
