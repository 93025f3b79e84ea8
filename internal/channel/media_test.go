package channel_test

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/gateway"
)

// mediaSink is a sink whose people can send files.
type mediaSink struct{ *sink }

func (s mediaSink) FetchMedia(_ context.Context, m channel.Media) (io.ReadCloser, error) {
	if m.Size > 100 {
		return nil, channel.ErrTooLarge
	}
	return io.NopCloser(strings.NewReader("bytes of " + m.Ref)), nil
}

// memoryFiles stores files by their origins.
type memoryFiles struct {
	mu    sync.Mutex
	bytes map[string]string
}

func (f *memoryFiles) PutFile(_ context.Context, _ gateway.Principal, _ string, file agent.File, r io.Reader) (event.Media, error) {
	b, err := io.ReadAll(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bytes[file.Origin] = string(b)
	return event.Media{URL: "/" + file.Origin, MIME: file.MIME, Name: file.Name}, err
}

func (f *memoryFiles) OpenMedia(_ context.Context, _ gateway.Principal, _ string, m event.Media) (io.ReadCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, ok := f.bytes[strings.TrimPrefix(m.URL, "/")]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader([]byte(b))), nil
}

// The files of a person are stored in the conversation, and the agent gets them with the text. A file that the platform withholds
// is refused.
func TestMedia(t *testing.T) {
	ch := mediaSink{newSink("plain")}
	files := &memoryFiles{bytes: map[string]string{}}
	describes := func(_ context.Context, in agent.Input, out *agent.Emitter) error {
		text := in.Message.Text + ";"
		for _, p := range in.Message.Parts {
			text += string(p.Kind) + ":" + p.Text
			if p.Media != nil {
				text += p.Media.Name + " " + p.Media.MIME
			}
			text += ";"
		}
		return out.Text(text)
	}
	h := openWith(t, newJournal(t), agentFunc(describes), files, ch)
	inbox := receive(t, ch.inbox, "start of the channel")
	h.say(inbox, channel.InboundMessage{Content: "look", Media: []channel.Media{{Ref: "f1", Name: "a.png", Type: "image/png"}}})
	if m := receive(t, ch.sent, "answer"); m.Content != "look;media:a.png image/png;" {
		t.Errorf("%q", m.Content)
	}
	if got := files.bytes["plain:f1"]; got != "bytes of f1" {
		t.Errorf("%q of %q", got, files.bytes)
	}
	h.say(inbox, channel.InboundMessage{Media: []channel.Media{{Ref: "f2", Size: 101}}})
	if m := receive(t, ch.sent, "reply"); m.Content != "The file is too large for me." {
		t.Errorf("%q", m.Content)
	}
}
