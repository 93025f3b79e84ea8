package whatsapp

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/whatsapp"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel/channeltest"
)

// While a turn runs, the person sees the typing indicator and questions, and at the end the answer and its files.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, server, _, _ := newNumber(t, fake.Options{PairGap: 6 * time.Second})
		id := server.Say(ann, "hello")
		s, state := channeltest.NewStory(t, "turn"), channeltest.State{}
		s.Files = map[string][]byte{"/files/1": []byte("%PDF")}
		done := s.Deliver(t.Context(), n, ann.ID, id, &state)
		s.Begin()
		seen := func(what string) {
			t.Helper()
			for range 10 {
				time.Sleep(9 * time.Second)
				if !server.IsTyping(ann.ID) {
					t.Errorf("no typing indicator: %s", what)
				}
			}
		}
		seen("at first")
		s.Tool("bash", `{"command":"ls"}`)
		s.OpenText()
		s.Write("A text that is long enough to be shown elsewhere.")
		seen("while the text grows")
		s.Ask("r1", "Remove x?")
		time.Sleep(10 * time.Second)
		if got := texts(server, ann.ID); len(got) != 1 || !strings.Contains(got[0], "approve, deny") {
			t.Errorf("%q", got)
		}
		s.Answer("r1", event.Deny)
		s.Send(event.Event{Type: event.PartStart, Message: "answer", Part: "file", Body: &event.Body{
			Kind: event.KindMedia, Media: &event.Media{URL: "/files/1", MIME: "application/pdf", Name: "a.pdf"},
		}})
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		got := server.Messages(ann.ID)
		if len(got) != 4 || !strings.HasPrefix(got[2].Text, "A text") || got[3].File == nil || got[3].File.Name != "a.pdf" {
			t.Errorf("%+v", got)
		}
		check(t, server)
	})
}
