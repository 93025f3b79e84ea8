package telegram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

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
