package telegram

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
)

const (
	// maxUpload is the largest file that the Bot API takes, in bytes.
	maxUpload = 50 << 20
	// maxPhoto is the largest picture that can be sent as a photo. A larger one is sent as a document.
	maxPhoto = 10 << 20
	// transferLimit limits the transfer of one file.
	transferLimit = 5 * time.Minute
)

// sendFiles sends the files of the turn after its text. A file that isn't stored is sent as its address.
func (d *delivery) sendFiles(ctx context.Context) error {
	files := d.stream.Media()
	for d.state.Files < len(files) {
		f := files[d.state.Files]
		d.state.Files++
		d.state.Creating = creatingFinal
		if err := d.metadata.Save(ctx, d.state); err != nil {
			return err
		}
		id, err := d.sendFile(ctx, f)
		switch {
		case errors.Is(err, errUnknown) && ctx.Err() == nil:
			d.state.Unknown++
		case err != nil:
			return err
		default:
			d.created(id)
		}
		d.state.Creating = ""
		if err := d.metadata.Save(ctx, d.state); err != nil {
			return err
		}
	}
	return nil
}

// sendFile sends one file: a picture as a photo, and anything else as a document.
func (d *delivery) sendFile(ctx context.Context, m event.Media) (int64, error) {
	r, err := d.metadata.OpenMedia(ctx, m)
	if err != nil {
		return d.sendLink(ctx, m)
	}
	defer r.Close()
	content, err := io.ReadAll(io.LimitReader(r, maxUpload+1))
	if err != nil {
		return 0, err
	}
	if len(content) > maxUpload {
		return d.sendLink(ctx, m)
	}
	method, field := "sendDocument", "document"
	if strings.HasPrefix(m.MIME, "image/") && m.MIME != "image/svg+xml" && len(content) <= maxPhoto {
		method, field = "sendPhoto", "photo"
	}
	params := map[string]string{"chat_id": fmt.Sprint(d.at.chat)}
	if topic := d.at.topic(); topic != 0 {
		params["message_thread_id"] = fmt.Sprint(topic)
	}
	var sent message
	send := func() error {
		return d.pass(ctx, d.gate, true, func() error { return d.client.upload(ctx, method, field, params, nameOf(m), content, &sent) })
	}
	err = d.persist(ctx, send)
	if code(err) == http.StatusBadRequest && field == "photo" { // an extreme shape, or not a picture after all
		method, field = "sendDocument", "document"
		err = d.persist(ctx, send)
	}
	return sent.ID, err
}

// sendLink sends the name and the address of a file that can't be sent itself.
func (d *delivery) sendLink(ctx context.Context, m event.Media) (int64, error) {
	text := "📎 " + nameOf(m)
	if strings.HasPrefix(m.URL, "https://") || strings.HasPrefix(m.URL, "http://") {
		text += "\n" + m.URL
	}
	var sent message
	err := d.persist(ctx, func() error {
		return d.request(ctx, d.gate, true, "sendMessage", outgoing{ChatID: d.at.chat, Thread: d.at.topic(), Text: text}, &sent)
	})
	return sent.ID, err
}

// nameOf returns a name for a file.
func nameOf(m event.Media) string {
	if m.Name != "" {
		return path.Base(m.Name)
	}
	return "file"
}

// upload calls a method with a file. Its errors are those of call.
func (c *client) upload(ctx context.Context, method, field string, params map[string]string, name string, content []byte, result any) error {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for key, value := range params {
		if err := form.WriteField(key, value); err != nil {
			return err
		}
	}
	part, err := form.CreateFormFile(field, name)
	if err != nil {
		return err
	}
	if _, err := part.Write(content); err != nil {
		return err
	}
	if err := form.Close(); err != nil {
		return err
	}
	return c.post(ctx, transferLimit, c.files, method, form.FormDataContentType(), &body, result)
}
