package eliza

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect/elizachat"
	"github.com/leat-dev/leat/event"
)

// If a server accepts the connection but doesn't answer, the socket gives up after dialLimit and connects again.
func TestSocketIsNotOpened(t *testing.T) {
	var calls atomic.Int64
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			<-r.Context().Done() // until the client gives up
			return
		}
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow()
		_ = c.Write(context.Background(), websocket.MessageText, []byte(`{"type":"heartbeat_event","payload":{}}`)) // it may have been closed
		_, _, _ = c.Read(r.Context())
	}))
	defer h.Close()
	a, err := New(Config{URL: h.URL, Dialect: elizachat.Dialect()})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	a.socket.patience = 500 * time.Millisecond
	told := make(chan agent.Signal, 8)
	a.Signals(func(x agent.Signal) { told <- x })
	a.Start(slog.New(slog.DiscardHandler))
	<-told
}

// Images are sent with the message; other files are mentioned in its text.
func TestContent(t *testing.T) {
	media := func(url, mime, name string) event.Part {
		return event.Part{Kind: event.KindMedia, Media: &event.Media{URL: url, MIME: mime, Name: name}}
	}
	text, pictures := content(agent.Message{Text: "Look.", Parts: []event.Part{
		media("data:image/png;base64,aGk=", "image/png", "a.png"), media("data:text/csv;base64,aGk=", "text/csv", "b.csv"),
		media("/api/conversations/c/files/f", "image/png", "large.png"),
		{Kind: event.KindData},
	}})
	if want := "Look.\n\n[Attached: b.csv. It can't be shown to you.]\n\n[Attached: large.png. It can't be shown to you.]"; text != want {
		t.Errorf("the text is %q", text)
	}
	if len(pictures) != 1 || pictures[0] != (image{"aGk=", "image/png", "a.png"}) {
		t.Errorf("the pictures are %+v", pictures)
	}
}
