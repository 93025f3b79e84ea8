package channel_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/store/journal"
)

// transcribed counts the notes that testVoice has transcribed.
var transcribed atomic.Int64

// testVoice understands notes whose reference begins with "said-". Each transcription differs, as those of real engines may.
var testVoice = channel.Voice{
	Transcribe: func(_ context.Context, note io.Reader) (string, error) {
		b, err := io.ReadAll(note)
		if err != nil {
			return "", err
		}
		text, ok := strings.CutPrefix(string(b), "bytes of said-")
		if !ok {
			return "", errors.New("noise")
		}
		return " " + text + strings.Repeat("!", int(transcribed.Add(1))) + " ", nil
	},
	Speak: func(_ context.Context, answer string) ([]byte, error) { return []byte("OggS" + answer), nil },
}

// voiceSink is a channel whose people send voice notes and get them.
type voiceSink struct{ *streamSink }

func (voiceSink) FetchMedia(ctx context.Context, m channel.Media) (io.ReadCloser, error) {
	return mediaSink{}.FetchMedia(ctx, m)
}

func (voiceSink) SendsVoice() {}

// What a person says in a voice note is the text of their message, and the answer can be spoken. An answer to a written message can't. A
// repetition after a crash has the text of the first time.
func TestVoiceNotes(t *testing.T) {
	ch := voiceSink{newStreamSink("voice")}
	j := newJournal(t)
	files := &memoryFiles{bytes: map[string]string{}}
	h := openWith(t, j, agentFunc(echo), files, ch)
	inbox := receive(t, ch.inbox, "start of the channel")
	note := func(ref string) channel.InboundMessage {
		return channel.InboundMessage{ID: "id-" + ref, Media: []channel.Media{{Ref: ref, Type: "audio/ogg", IsVoice: true}}}
	}
	transcribed.Store(0)
	h.say(inbox, note("said-hello"))
	d := receive(t, ch.streams, "delivery")
	if text := d.final(t); text != "you said hello!" {
		t.Errorf("%q", text)
	}
	if d.metadata.Speak == nil {
		t.Fatal("the answer to a voice note can't be spoken")
	}
	if b, err := d.metadata.Speak(t.Context(), "x"); string(b) != "OggSx" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	d.result <- nil
	h.say(inbox, channel.InboundMessage{Content: "written"})
	d = receive(t, ch.streams, "delivery")
	if text := d.final(t); text == "" || d.metadata.Speak != nil {
		t.Error("the answer to a written message can be spoken")
	}
	d.result <- nil
	h.say(inbox, note("noise"))
	if m := receive(t, ch.sent, "reply"); m.Content != "I couldn't understand your voice message. Please try again, or write." {
		t.Errorf("%q", m.Content)
	}
	h.close()

	// A process that ends before it has marked a message as handled repeats it.
	broken := &unmarked{Journal: j, refused: make(chan struct{}, 10)}
	h = openWith(t, broken, agentFunc(echo), files, ch)
	inbox = receive(t, ch.inbox, "start of the channel")
	h.say(inbox, note("said-again"))
	d = receive(t, ch.streams, "delivery")
	if text := d.final(t); text != "you said again!!" {
		t.Errorf("%q", text)
	}
	d.result <- nil
	receive(t, broken.refused, "mark")
	h.close()
	h = openWith(t, j, agentFunc(echo), files, ch)
	inbox = receive(t, ch.inbox, "start of the channel")
	h.say(inbox, channel.InboundMessage{Content: "and now?"})
	d = receive(t, ch.streams, "delivery")
	if text := d.final(t); text != "you said and now?" {
		t.Errorf("the message was answered twice: %q", text)
	}
	d.result <- nil
	if n := transcribed.Load(); n != 2 || len(ch.sent) > 0 {
		t.Errorf("%d transcriptions, %d replies", n, len(ch.sent))
	}
}

// unmarked is a journal in which messages of people can't be marked as handled.
type unmarked struct {
	journal.Journal
	refused chan struct{}
}

func (j *unmarked) Append(ctx context.Context, b journal.Batch) error {
	if b.Conversation == channel.Log && len(b.Keys) == 1 && b.Keys[0].Expires != 0 && string(b.Keys[0].Value) == "{}" {
		j.refused <- struct{}{}
		return errors.New("the disk is broken")
	}
	return j.Journal.Append(ctx, b)
}
