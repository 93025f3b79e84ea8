package live

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel"
)

// sendFiles sends the files of the turn after its text. A file that can't be sent itself is sent as its address. The number of files
// that were sent is stored after each one, so a delivery that continues begins with the first that is missing. A file with an unknown
// outcome counts as sent, as a message of the answer does.
func (d *delivery) sendFiles(ctx context.Context) error {
	files := d.stream.Media()
	for d.state.Files < len(files) {
		err := d.sendCounted(ctx, func() (string, error) { return d.sendFile(ctx, files[d.state.Files]) })
		if err != nil {
			return err
		}
	}
	if d.state.Files > len(files) || d.metadata.Speak == nil || d.stream.Text() == "" {
		return nil
	}
	return d.sendVoice(ctx)
}

// sendVoice sends the answer as a voice note, which counts as the last file. An answer that can't be spoken is in the chat as text.
func (d *delivery) sendVoice(ctx context.Context) error {
	chat := d.chat
	if quiet, ok := chat.(quietChat); ok {
		chat = quiet.FileChat
	}
	sender, ok := chat.(VoiceChat)
	if !ok {
		return nil
	}
	note, err := d.metadata.Speak(ctx, d.stream.Text())
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		d.bot.log.Error("answer could not be spoken", "error", err)
	}
	if len(note) == 0 {
		return nil
	}
	f := File{Name: "answer.ogg", Type: "audio/ogg", Content: note, Key: partKey(d.metadata.Turn+"/voice", 0)}
	err = d.sendCounted(ctx, func() (id string, err error) {
		err = d.persist(ctx, func() (err error) {
			id, err = sender.SendVoice(ctx, f)
			return err
		})
		return id, err
	})
	if err == nil || ctx.Err() != nil || errors.Is(err, errSave) || errors.Is(err, channel.ErrUnreachable) {
		return err
	}
	// People can forbid voice notes. The answer is in the chat as text, so the delivery has not failed.
	d.bot.log.Warn("voice note was refused", "error", err)
	d.state.Creating = ""
	d.state.Files++
	return d.save(ctx)
}

// sendCounted sends the next file of the turn and stores that it was sent.
func (d *delivery) sendCounted(ctx context.Context, send func() (id string, err error)) error {
	return d.sendOnce(ctx, creatingFile, &d.state.Files, send)
}

// sendFile sends one file and returns the id of its message. A file that is too large, or can't be read any more, is replaced by its
// name and address, so the person at least learns of it.
func (d *delivery) sendFile(ctx context.Context, m event.Media) (id string, err error) {
	key := partKey(d.metadata.Turn+"/file", d.state.Files)
	sender, ok := d.chat.(FileChat)
	content, err := d.readFile(ctx, m)
	if !ok || err != nil || int64(len(content)) > d.bot.rules.MaxFile {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return d.post(ctx, Post{Kind: Answer, Text: link(m), Key: key})
	}
	err = d.persist(ctx, func() (err error) {
		id, err = sender.SendFile(ctx, File{Name: nameOf(m), Type: m.MIME, Content: content, Key: key})
		return err
	})
	return id, err
}

// readFile returns the content of a file, or more than the largest that can be sent. One byte more than the limit is enough for the
// caller to notice that a file is too large.
func (d *delivery) readFile(ctx context.Context, m event.Media) ([]byte, error) {
	r, err := d.metadata.OpenMedia(ctx, m)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, d.bot.rules.MaxFile+1))
}

// link returns a message with the name and the address of a file. An address that only the gateway understands is left out: a person
// could not open it.
func link(m event.Media) markup.Message {
	text := "📎 " + nameOf(m)
	if strings.HasPrefix(m.URL, "https://") || strings.HasPrefix(m.URL, "http://") {
		text += "\n" + m.URL
	}
	return markup.Message{Text: text}
}

// nameOf returns a name for a file. An agent may give a whole path. Only its last element is shown, because the rest is of no use to
// the reader and may reveal the structure of a machine.
func nameOf(m event.Media) string {
	if m.Name != "" {
		return path.Base(m.Name)
	}
	return "file"
}
