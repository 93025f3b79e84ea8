package openclaw

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/agent"
)

// A frame reserves room in the budget for large frames while it is read. Without room, the connection ends with agent.ErrBusy,
// and a later connection reads the frame.
func TestLargeMessages(t *testing.T) {
	message := append(append([]byte(`{"type":"`), bytes.Repeat([]byte("x"), 20<<20)...), `"}`...)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer ws.CloseNow()
		if ws.Write(r.Context(), websocket.MessageText, message) == nil {
			_, _, _ = ws.Read(r.Context()) // until the client leaves
		}
	}))
	defer server.Close()
	read := func() ([]byte, error) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		ws, _, err := websocket.Dial(ctx, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		ws.SetReadLimit(readLimit)
		conn := newLink(ws, &hello{})
		var got []byte
		conn.readFrames(ctx, func(raw []byte, _ *frame) {
			got = raw
			end()
		})
		_, err = conn.closeReason()
		return got, err
	}
	var others agent.Reservation
	if err := others.Resize(240 << 20); err != nil { // what is left has no room for the message
		t.Fatal(err)
	}
	if b, err := read(); b != nil || !errors.Is(err, agent.ErrBusy) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	others.Release()
	if b, err := read(); !bytes.Equal(b, message) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
