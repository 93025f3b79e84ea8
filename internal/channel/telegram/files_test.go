package telegram

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/telegram"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
)

// pixel is the smallest PNG.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// The files of a turn follow its text: pictures as photos, others as documents, and those elsewhere as links. None is sent twice,
// also if the answer to its request is lost.
func TestFiles(t *testing.T) {
	png, err := base64.StdEncoding.DecodeString(pixel)
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string][]byte{"/files/1": png, "/files/2": []byte("a,b\n"), "/files/3": []byte("no picture")}
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{Gap: time.Second})
		server.Say(ann, "hello")
		server.Fail(fake.Fault{Method: "sendDocument", After: true})
		s := channeltest.NewStory(t, turnID)
		s.Files = stored
		done := deliver(t.Context(), c, place{chat: 7}, &channeltest.State{}, s)
		s.Begin()
		s.OpenText()
		s.Write("Here they are.")
		for _, m := range []event.Media{
			{URL: "/files/1", MIME: "image/png", Name: "dot.png"},
			{URL: "/files/2", MIME: "text/csv", Name: "table.csv"},
			{URL: "/files/3", MIME: "image/png", Name: "broken.png"},
			{URL: "https://example.com/x.pdf", Name: "x.pdf"},
		} {
			s.Show(m)
		}
		s.End(event.Completed)
		if err := <-done; !errors.Is(err, channel.ErrUnknownOutcome) {
			t.Errorf("a document's request was not answered: %v", err)
		}
		var got []string
		for _, m := range server.Visible(7) {
			line := m.Text
			for _, f := range m.Files {
				line += f.Name
				if f.IsPhoto {
					line += " (photo)"
				}
			}
			got = append(got, line)
		}
		const want = "Here they are.|dot.png (photo)|table.csv|broken.png|📎 x.pdf\nhttps://example.com/x.pdf"
		if text := strings.Join(got, "|"); text != want {
			t.Errorf("%q, want %q", text, want)
		}
		check(t, server)
	})
}

// The files of people are fetched from the platform. Those of an album are one message.
func TestReceivedFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		received := make(inbox, 10)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		server.SendFile(ann, fake.File{Content: []byte("one"), IsPhoto: true}, "", "album")
		server.SendFile(ann, fake.File{Content: []byte("two"), IsPhoto: true}, "Which is better?", "album")
		server.SendFile(ann, fake.File{Content: make([]byte, maxDownload+1), Name: "big.bin", Type: "application/octet-stream"}, "", "")
		go func() { done <- c.Run(ctx, received) }()
		synctest.Wait()
		album, big := <-received, <-received
		if album.Content != "Which is better?" || len(album.Media) != 2 || album.Media[0].Type != "image/jpeg" {
			t.Fatalf("%+v", album)
		}
		for i, want := range []string{"one", "two"} {
			r, err := c.FetchMedia(t.Context(), album.Media[i])
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(r); string(b) != want || err != nil {
				t.Errorf("%q, %v", b, err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := c.FetchMedia(t.Context(), big.Media[0]); !errors.Is(err, channel.ErrTooLarge) {
			t.Errorf("a large file: %v", err)
		}
		if _, err := c.FetchMedia(t.Context(), channel.Media{Ref: big.Media[0].Ref}); !errors.Is(err, channel.ErrTooLarge) {
			t.Errorf("a large file whose size was unknown: %v", err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
