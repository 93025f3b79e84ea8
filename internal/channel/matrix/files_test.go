package matrix

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/matrix"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
)

// The files of a turn follow its text. None is sent twice, also if the answer to its request is lost. One that the homeserver doesn't
// take is replaced by its name.
func TestFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{MaxUpload: 1000})
		ann := server.Direct("@ann:matrix.test", "Ann")
		for skip := range 3 {
			server.Fail(fake.Fault{Route: "send", Skip: skip, After: true})
		}
		server.Fail(fake.Fault{Route: "upload", Before: true})
		s := channeltest.NewStory(t, turnID)
		s.Files = map[string][]byte{"/files/1": []byte("picture"), "/files/2": []byte("a,b\n"), "/files/3": make([]byte, 2000)}
		done := deliver(t.Context(), c, ann.Room, "", s)
		s.Begin()
		s.OpenText()
		s.Write("Here they are.")
		s.Show(event.Media{URL: "/files/1", MIME: "image/png", Name: "dot.png"})
		s.Show(event.Media{URL: "/files/2", MIME: "text/csv", Name: "table.csv"})
		s.Show(event.Media{URL: "/files/3", Name: "large.bin"})
		s.Show(event.Media{URL: "https://example.com/x.pdf", Name: "x.pdf"})
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Error(err)
		}
		var got []string
		for _, m := range server.Visible(ann.Room) {
			line := m.Kind + " " + m.Text
			if f := server.File(m.File); f != nil {
				line += " (" + f.Type + ", " + string(f.Content) + ")"
			}
			got = append(got, line)
		}
		const want = "m.text Here they are.|m.image dot.png (image/png, picture)|m.file table.csv (text/csv, a,b\n)|" +
			"m.text 📎 large.bin\n(too large for the homeserver)|m.text 📎 x.pdf\nhttps://example.com/x.pdf"
		if text := strings.Join(got, "|"); text != want {
			t.Errorf("%q, want %q", text, want)
		}
		check(t, server, ann.Room)
	})
}

// The files of people are fetched from the homeserver.
func TestReceivedFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		ann := server.Direct("@ann:matrix.test", "Ann")
		received, stop := run(t, c)
		server.SendFile(ann, fake.File{Name: "a.png", Type: "image/png", Content: []byte("one")}, "What is it?")
		server.SendFile(ann, fake.File{Name: "b.txt", Type: "text/plain", Content: []byte("two")}, "")
		time.Sleep(time.Second)
		captioned, bare := <-received, <-received
		if captioned.Content != "What is it?" || bare.Content != "" || len(captioned.Media) != 1 ||
			captioned.Media[0].Name != "a.png" || bare.Media[0].Size != 3 {
			t.Fatalf("%+v %+v", captioned, bare)
		}
		r, err := c.FetchMedia(t.Context(), bare.Media[0])
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(r); string(b) != "two" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if _, err := c.FetchMedia(t.Context(), channel.Media{Ref: bare.Media[0].Ref, Size: maxDownload + 1}); !errors.Is(err, channel.ErrTooLarge) {
			t.Errorf("a large file: %v", err)
		}
		if _, err := c.FetchMedia(t.Context(), channel.Media{Ref: "mxc://matrix.test/none"}); code(err) != codeNotFound {
			t.Errorf("a file that doesn't exist: %v", err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		check(t, server)
	})
}
