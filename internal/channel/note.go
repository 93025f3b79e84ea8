package channel

import (
	"context"
	"io"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// Voice turns voice notes into text and answers into voice notes. A function that is nil isn't available. Both work with Ogg Opus.
type Voice struct {
	// Transcribe returns the text of a voice note. It is empty if nothing was said.
	Transcribe func(ctx context.Context, note io.Reader) (text string, err error)
	// Speak returns an answer, which is Markdown, as a voice note. It is nil if nothing of the answer can be said.
	Speak func(ctx context.Context, answer string) (note []byte, err error)
}

// speakFunc is the form of [Voice.Speak].
type speakFunc = func(ctx context.Context, answer string) (note []byte, err error)

// VoiceChannel is a channel that can send voice notes. Its SendStream calls [StreamMetadata.Speak].
type VoiceChannel interface {
	StreamChannel
	SendsVoice()
}

// voiceName is the name of stored voice notes. A turn that answers a message with such a file is spoken, also after a restart.
const voiceName = "voice-message.ogg"

// transcribe sets the content of a message to the text of its voice note, and stores it: the text of a repetition has to be the same,
// because the message has an idempotency key.
func (c *connector) transcribe(ctx context.Context, b *binding, m *InboundMessage, file event.Media) error {
	r, err := c.openMedia(ctx, b, file)
	if err != nil {
		return err
	}
	defer r.Close()
	text, err := c.pipeline.voice.Transcribe(ctx, r)
	text = strings.TrimSpace(text)
	if err != nil || text == "" {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			c.log.Error("voice message could not be transcribed", "error", err)
		}
		return &gateway.Rejection{Reason: gateway.ReasonInvalid, Message: textUnheard}
	}
	m.Content = text
	return c.inbox.replace(ctx, m)
}

// speaker returns the function for [StreamMetadata.Speak], or nil if the turn is not to be spoken.
func (c *connector) speaker(log *transcript.Transcript, turn *transcript.Turn) speakFunc {
	_, ok := c.runtime().channel.(VoiceChannel)
	m := log.Message(turn.Answers)
	if !ok || m == nil || m.Source != c.name || c.pipeline.voice.Speak == nil {
		return nil
	}
	for _, p := range m.Parts {
		if p.Kind == event.KindMedia && p.Media != nil && p.Media.Name == voiceName {
			return c.pipeline.voice.Speak
		}
	}
	return nil
}
