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

// A voice note is marked as one, and the answer to it is sent as text and as a voice note, once, also if the answer to the request is
// lost. A person who forbids voice notes, or an engine that fails, leaves the text.
func TestVoiceNotes(t *testing.T) {
	for name, test := range map[string]struct {
		speak   func(context.Context, string) ([]byte, error)
		prepare func(*fake.Server)
		notes   int
		err     error
	}{
		"sent":      {speak: speak, notes: 1},
		"lost":      {speak: speak, prepare: func(s *fake.Server) { s.Fail(fake.Fault{Method: "sendVoice", After: true}) }, notes: 1, err: channel.ErrUnknownOutcome},
		"penalty":   {speak: speak, prepare: func(s *fake.Server) { s.Fail(fake.Fault{Method: "sendVoice", Status: 429, RetryAfter: time.Minute}) }, notes: 1},
		"forbidden": {speak: speak, prepare: func(s *fake.Server) { s.ForbidVoice(7) }},
		"failed":    {speak: func(context.Context, string) ([]byte, error) { return nil, errors.New("no engine") }},
		"silent":    {speak: func(context.Context, string) ([]byte, error) { return nil, nil }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, server := newBot(fake.Options{Gap: time.Second})
				received := make(inbox, 1)
				ctx, cancel := context.WithCancel(t.Context())
				ran := make(chan error, 1)
				server.SendFile(ann, fake.File{Content: []byte("OggS"), IsVoice: true}, "", "")
				go func() { ran <- c.Run(ctx, received) }()
				if m := <-received; len(m.Media) != 1 || !m.Media[0].IsVoice || m.Media[0].Type != "audio/ogg" || m.Content != "" {
					t.Errorf("%+v", m)
				}
				cancel()
				if err := <-ran; err != nil {
					t.Error(err)
				}
				if test.prepare != nil {
					test.prepare(server)
				}
				s, state := channeltest.NewStory(t, turnID), &channeltest.State{}
				s.Speak = test.speak
				done := deliver(t.Context(), c, place{chat: 7}, state, s)
				s.Begin()
				s.OpenText()
				s.Write("It is **noon**.")
				s.End(event.Completed)
				if err := <-done; !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
					t.Error(err)
				}
				texts, notes := 0, 0
				for _, m := range server.Visible(7) {
					switch {
					case m.Text == "It is noon.":
						texts++
					case len(m.Files) == 1 && m.Files[0].IsVoice && string(m.Files[0].Content) == "OggSIt is **noon**.":
						notes++
					default:
						t.Errorf("%+v", m)
					}
				}
				if texts != 1 || notes != test.notes {
					t.Errorf("%d texts and %d voice notes", texts, notes)
				}
				check(t, server)
			})
		})
	}
}

func speak(_ context.Context, answer string) ([]byte, error) { return []byte("OggS" + answer), nil }
