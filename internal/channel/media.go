package channel

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
)

// Files are the stored files of conversations.
type Files interface {
	// PutFile stores a file. If the conversation has a file with the same origin, that one is returned.
	PutFile(ctx context.Context, p gateway.Principal, conversation string, f agent.File, r io.Reader) (event.Media, error)
	// OpenMedia opens a file that a message shows. For media that aren't stored the error is [fs.ErrNotExist].
	OpenMedia(ctx context.Context, p gateway.Principal, conversation string, m event.Media) (io.ReadCloser, error)
}

// MediaChannel is a channel whose people can send files.
type MediaChannel interface {
	Channel
	// FetchMedia opens a file that a person sent. [ErrTooLarge] means that the platform doesn't give it to bots.
	FetchMedia(ctx context.Context, m Media) (io.ReadCloser, error)
}

// parts returns the content of a message of a person: its text, and its files, which are stored in the conversation. The text of a voice
// note is what was said.
func (c *connector) parts(ctx context.Context, b *binding, m *InboundMessage) ([]event.Part, error) {
	var files []event.Part
	if ch, ok := c.runtime().channel.(MediaChannel); ok && c.pipeline.files != nil {
		for _, file := range m.Media {
			stored, err := c.storeMedia(ctx, ch, b, file)
			if err != nil {
				return nil, err
			}
			if file.IsVoice && m.Content == "" && c.pipeline.voice.Transcribe != nil {
				if err := c.transcribe(ctx, b, m, stored); err != nil {
					return nil, err
				}
			}
			files = append(files, event.Part{Kind: event.KindMedia, Media: &stored})
		}
	}
	var parts []event.Part
	if text := m.text(); text != "" {
		parts = append(parts, event.Part{Kind: event.KindText, Text: text})
	}
	return append(parts, files...), nil
}

// storeMedia copies a file of a person into the conversation. The origin makes a repetition return the same file.
func (c *connector) storeMedia(ctx context.Context, ch MediaChannel, b *binding, file Media) (event.Media, error) {
	r, err := ch.FetchMedia(ctx, file)
	if err != nil {
		if errors.Is(err, ErrTooLarge) {
			return event.Media{}, &gateway.Rejection{Reason: gateway.ReasonTooLarge, Message: textTooLarge}
		}
		return event.Media{}, err
	}
	defer r.Close()
	stored := agent.File{Name: file.Name, MIME: file.Type, Origin: c.name + ":" + file.Ref}
	if file.IsVoice {
		stored.Name = voiceName
	}
	return c.pipeline.files.PutFile(ctx, c.principalOf(b), b.Conversation, stored, r)
}

// Media returns the files that the turn shows, in order.
func (s *Stream) Media() []event.Media {
	var list []event.Media
	for _, m := range s.Messages() {
		for _, p := range m.Parts {
			if p.Kind == event.KindMedia && p.Media != nil {
				list = append(list, *p.Media)
			}
		}
	}
	return list
}

// openMedia opens a file of a conversation.
func (c *connector) openMedia(ctx context.Context, b *binding, m event.Media) (io.ReadCloser, error) {
	if c.pipeline.files == nil {
		return nil, &fs.PathError{Op: "open", Path: m.Name, Err: fs.ErrNotExist}
	}
	return c.pipeline.files.OpenMedia(ctx, c.principalOf(b), b.Conversation, m)
}
