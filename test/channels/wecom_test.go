package channels

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/chattest/wecom"
)

// The platform's own client for Node connects to the fake, receives messages and files, streams, sends and uploads.
func TestWeCom(t *testing.T) {
	needNode(t)
	fake := wecom.New(wecom.Options{BotID: "bot", Secret: "secret"})
	server := httptest.NewServer(fake)
	defer server.Close()
	people := make(chan struct{})
	go func() { // the client waits for messages
		defer close(people)
		ann := wecom.Private("ann")
		waitFor(t, "a connection", fake.IsConnected)
		count := func(n int) func() bool {
			return func() bool {
				done := 0
				for _, m := range fake.Visible("ann") {
					if m.Text == "done" {
						done++
					}
				}
				return done == n
			}
		}
		fake.Say(ann, "hello")
		waitFor(t, "answers to a text", count(1))
		fake.SendFile(ann, wecom.File{Name: "b.txt", Content: []byte("content")}, "")
		waitFor(t, "an answer to a file", count(2))
		fake.Say(ann, "stop")
	}()
	var result struct {
		Received []struct{ ID, Chat, From, Type, Text, Name string }
		Errors   []any
	}
	defer func() { <-people }()
	runNode(t, "wecom.js", strings.Replace(server.URL, "http", "ws", 1), map[string]string{"botId": "bot", "secret": "secret"}, &result)
	if len(result.Received) != 3 || result.Received[0].From != "ann" || result.Received[0].Text != "hello" || result.Received[1].Text != "content" ||
		result.Received[1].Name != "b.txt" {
		t.Errorf("%+v", result.Received)
	}
	if want := []any{0., 0., 0., 93006., 0., 0., 0.}; !slices.Equal(result.Errors, want) {
		t.Errorf("%v, want %v", result.Errors, want)
	}
	got := fake.Visible("ann")
	if len(got) != 5 || got[0].Text != "Hello **Ann**" || got[0].IsOpen || len(got[0].Versions) != 2 || got[1].Text != "later" || len(got[2].File.Content) != 600<<10 {
		t.Errorf("%d messages", len(got))
	}
	for _, v := range fake.Violations() {
		t.Error(v)
	}
}

// waitFor waits until something has happened, for a minute at most.
func waitFor(t *testing.T, what string, has func() bool) {
	for end := time.Now().Add(time.Minute); !has(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) || t.Context().Err() != nil {
			t.Errorf("no %s", what)
			return
		}
	}
}
