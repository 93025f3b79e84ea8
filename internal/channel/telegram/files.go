package telegram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// maxUpload is the largest file that the Bot API takes, in bytes.
	maxUpload = 50 << 20
	// maxPhoto is the largest picture that can be sent as a photo. A larger one is sent as a document.
	maxPhoto = 10 << 20
	// transferLimit limits the transfer of one file.
	transferLimit = 5 * time.Minute
)

// SendFile implements [live.FileChat]: a picture is sent as a photo, and anything else as a document.
func (t *chat) SendFile(ctx context.Context, f live.File) (string, error) {
	isPhoto := strings.HasPrefix(f.Type, "image/") && f.Type != "image/svg+xml" && len(f.Content) <= maxPhoto && !t.asDocument
	// The refusal of a picture concerns this picture only.
	t.asDocument = false
	if !isPhoto {
		return t.sendFile(ctx, "sendDocument", "document", f)
	}
	id, err := t.sendFile(ctx, "sendPhoto", "photo", f)
	if code(err) == http.StatusBadRequest { // an extreme shape, or not a picture after all
		t.asDocument = true
		return "", fmt.Errorf("%w: %w", live.ErrRepeat, err)
	}
	return id, err
}

// SendVoice implements [live.VoiceChat].
func (t *chat) SendVoice(ctx context.Context, f live.File) (string, error) {
	return t.sendFile(ctx, "sendVoice", "voice", f)
}

// sendFile uploads a file with a method, whose parameter for the file is field.
func (t *chat) sendFile(ctx context.Context, method, field string, f live.File) (string, error) {
	params := map[string]string{"chat_id": fmt.Sprint(t.at.chat)}
	if topic := t.at.topic(); topic != 0 {
		params["message_thread_id"] = fmt.Sprint(topic)
	}
	var result message
	err := t.c.client.upload(ctx, method, field, params, f, &result)
	return messageRef(t.at.chat, result.ID), t.explain(err)
}

// upload calls a method with a file. Its errors are those of call.
func (c *client) upload(ctx context.Context, method, field string, params map[string]string, f live.File, result any) error {
	body, contentType, err := live.Form(params, field, live.File{Name: f.Name, Content: f.Content})
	if err != nil {
		return err
	}
	return c.post(ctx, transferLimit, c.files, method, contentType, body, result)
}

// maxDownload is the largest file that the Bot API gives to bots, in bytes.
const maxDownload = 20 << 20

// fileObject is a file in a message.
type fileObject struct {
	// ID can be used by this bot only, and stays valid.
	ID string `json:"file_id"`
	// Name and Type are what the sender's client says, and may be missing.
	Name string `json:"file_name"`
	Type string `json:"mime_type"`
	// Size is in bytes, or 0 if it isn't known.
	Size int64  `json:"file_size"`
	Path string `json:"file_path"` // in the result of getFile
}

// media returns the files of a message. Of a picture, which comes in several sizes, it is the largest.
func (m *message) media() []channel.Media {
	var files []*fileObject
	if n := len(m.Photo); n > 0 {
		photo := m.Photo[n-1]
		photo.Type = "image/jpeg" // photos are always JPEG, and have no name
		photo.Name = fmt.Sprintf("photo-%d.jpg", m.ID)
		files = append(files, &photo)
	}
	files = append(files, m.Document, m.Voice, m.Audio, m.Video)
	var list []channel.Media
	for _, f := range files {
		if f != nil {
			list = append(list, channel.Media{Ref: f.ID, Name: f.Name, Type: f.Type, Size: f.Size, IsVoice: f == m.Voice})
		}
	}
	return list
}

// FetchMedia implements [channel.MediaChannel].
func (c *bot) FetchMedia(ctx context.Context, m channel.Media) (io.ReadCloser, error) {
	if m.Size > maxDownload {
		return nil, channel.ErrTooLarge
	}
	var f fileObject
	if err := c.client.call(ctx, requestLimit, "getFile", map[string]string{"file_id": m.Ref}, &f); err != nil {
		if has(err, "file is too big") {
			return nil, channel.ErrTooLarge
		}
		return nil, err
	}
	return c.client.download(ctx, f.Path)
}

// download opens a file of the Bot API.
func (c *client) download(ctx context.Context, file string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/file/bot"+c.token+"/"+strings.TrimPrefix(path.Clean("/"+file), "/"), http.NoBody)
	if err != nil {
		return nil, errors.New("telegram: the path of a file is invalid")
	}
	return live.Download(ctx, c.files, r, rules.Platform, func(response *http.Response) error {
		return &apiError{Method: "download", Code: response.StatusCode, Description: response.Status}
	})
}
