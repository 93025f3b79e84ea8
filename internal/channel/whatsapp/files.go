package whatsapp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

// maxUpload is the largest file that the platform takes, a document, in bytes.
const maxUpload = 100 << 20

// kinds are the media types that can be sent as something else than a document, and the largest size in bytes.
var kinds = map[string]struct {
	message string
	max     int
}{
	"image/jpeg": {"image", 5 << 20}, "image/png": {"image", 5 << 20},
	"video/mp4": {"video", 16 << 20}, "video/3gpp": {"video", 16 << 20},
	"audio/aac": {"audio", 16 << 20}, "audio/amr": {"audio", 16 << 20}, "audio/mpeg": {"audio", 16 << 20}, "audio/mp4": {"audio", 16 << 20},
	"audio/ogg": {"audio", 16 << 20},
}

// documents are the media types that can be sent as documents.
var documents = []string{
	"text/plain", "application/pdf", "application/msword", "application/vnd.ms-",
	"application/vnd.openxmlformats-officedocument.",
}

// upload is a file that was uploaded, so that a repeated message doesn't upload it again.
type upload struct {
	key, id string
}

// SendFile implements [live.FileChat]. A file that the platform doesn't take is sent as its name.
func (t *chat) SendFile(ctx context.Context, f live.File) (string, error) {
	kind, mediaType := kindOf(f.Type, len(f.Content))
	if kind == "" || len(f.Content) == 0 {
		return t.sendName(ctx, f)
	}
	if t.upload.key != f.Key || f.Key == "" {
		id, err := t.n.upload(ctx, f.Name, mediaType, f.Content)
		switch {
		case refusal(err).Code == codeParameter: // it isn't of the type that it claims to be
			return t.sendName(ctx, f)
		case errors.Is(err, live.ErrUnknown):
			return "", errors.Join(live.ErrUnsent, err) // a second upload has no effect that people see
		case err != nil:
			return "", t.explain(err)
		}
		t.upload = upload{f.Key, id}
	}
	m := outgoing{Type: kind}
	switch file := (&fileSent{ID: t.upload.id}); kind {
	case "image":
		m.Image = file
	case "video":
		m.Video = file
	case "audio":
		m.Audio = file
	default:
		file.Name = f.Name
		m.Document = file
	}
	id, err := t.send(ctx, m, "")
	if refusal(err).Code == codeMedia {
		return t.sendName(ctx, f)
	}
	return id, err
}

// sendName sends the name of a file.
func (t *chat) sendName(ctx context.Context, f live.File) (string, error) {
	return t.send(ctx, outgoing{Type: "text", Text: &text{Body: "📎 " + f.Name}}, "")
}

// kindOf returns the kind of message for a file and the media type to upload it with, or "" if the platform takes it in no form.
func kindOf(mediaType string, size int) (kind, uploaded string) {
	mediaType, _, _ = strings.Cut(strings.ToLower(mediaType), ";")
	if k, ok := kinds[mediaType]; ok && size <= k.max {
		return k.message, mediaType
	}
	if size > maxUpload {
		return "", ""
	}
	for _, prefix := range documents {
		if strings.HasPrefix(mediaType, prefix) {
			return "document", mediaType
		}
	}
	if strings.HasPrefix(mediaType, "text/") || mediaType == "application/json" {
		return "document", "text/plain"
	}
	return "", ""
}

// upload uploads a file and returns its id.
func (n *number) upload(ctx context.Context, name, mediaType string, content []byte) (string, error) {
	var result struct {
		ID string `json:"id"`
	}
	fields := map[string]string{"messaging_product": "whatsapp"}
	body, contentType, err := live.Form(fields, "file", live.File{Name: name, Type: mediaType, Content: content})
	if err == nil {
		err = n.client.send(ctx, n.client.files, http.MethodPost, path(n.options.Number)+"/media", contentType, body, &result)
	}
	if err == nil && result.ID == "" {
		err = errors.New("whatsapp: an upload has no id")
	}
	return result.ID, err
}

// mediaHosts are the domains of the platform's media servers, which may get the access token.
var mediaHosts = []string{"facebook.com", "fbsbx.com", "fbcdn.net", "whatsapp.net"}

// media returns a file of a person. Only documents have names.
func (f *file) media() channel.Media {
	kind, _, err := mime.ParseMediaType(f.Type)
	if err != nil {
		kind = "application/octet-stream"
	}
	name := cmp.Or(f.Name, strings.ReplaceAll(kind, "/", ".")) // such as image.jpeg
	return channel.Media{Ref: f.ID, Name: name, Type: kind}
}

// FetchMedia implements [channel.MediaChannel]. The address of a file is valid for five minutes, so it is asked for each time.
func (n *number) FetchMedia(ctx context.Context, m channel.Media) (io.ReadCloser, error) {
	var f struct {
		URL  string `json:"url"`
		Size int64  `json:"file_size"`
	}
	if err := n.client.call(ctx, http.MethodGet, path(m.Ref)+"?phone_number_id="+n.options.Number, nil, &f); err != nil {
		return nil, err
	}
	if f.Size > maxDownload {
		return nil, channel.ErrTooLarge
	}
	return n.client.download(ctx, f.URL)
}

// download opens a file of the platform.
func (c *client) download(ctx context.Context, address string) (io.ReadCloser, error) {
	if !outbound.IsWithin(address, c.base, mediaHosts...) {
		return nil, errors.New("whatsapp: the address of a file is not one of the platform's")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, errors.New("whatsapp: the address of a file is invalid")
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	return live.Download(ctx, c.files, r, rules.Platform, func(response *http.Response) error {
		return &apiError{Status: response.StatusCode, Message: "download: " + response.Status}
	})
}
