package matrix

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// maxDownload and maxUpload are the largest files that are received and sent, in bytes: the default limit of Synapse. A
	// homeserver may allow less; its refusal is handled then.
	maxDownload = 50 << 20
	maxUpload   = 50 << 20
)

// media returns the file of a message, or nil. Its URL has the form mxc://SERVER/ID. Files in encrypted rooms have no such address
// and are not read.
func (m *received) media() []channel.Media {
	switch m.Kind {
	case "m.image", "m.file", "m.audio", "m.video":
	default:
		return nil
	}
	if !strings.HasPrefix(m.URL, "mxc://") {
		return nil
	}
	f := channel.Media{Ref: m.URL, Name: m.Name, Type: m.Info.Type, Size: m.Info.Size}
	f.Name = cmp.Or(f.Name, m.Body)
	return []channel.Media{f}
}

// text returns the text of a message. The body of a file without a caption is its name.
func (m *received) text() string {
	if m.media() != nil && (m.Name == "" || m.Name == m.Body) {
		return ""
	}
	return m.Body
}

// FetchMedia implements [channel.MediaChannel].
func (c *bot) FetchMedia(ctx context.Context, m channel.Media) (io.ReadCloser, error) {
	if m.Size > maxDownload {
		return nil, channel.ErrTooLarge
	}
	server, id, ok := strings.Cut(strings.TrimPrefix(m.Ref, "mxc://"), "/")
	if !ok {
		return nil, errors.New("matrix: the address of a file is invalid")
	}
	r, err := c.client.download(ctx, path("client/v1/media/download/%s/%s", server, id))
	if code(err) == "M_TOO_LARGE" {
		return nil, channel.ErrTooLarge
	}
	return r, err
}

// download opens a file. A homeserver may redirect to the place where it stores files, which must not get the access token.
func (c *client) download(ctx context.Context, path string) (io.ReadCloser, error) {
	r, err := c.request(ctx, http.MethodGet, path, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := c.files.Do(r)
	if err != nil {
		return nil, fmt.Errorf("matrix: %s: %w", route(path), live.RequestError(ctx, err))
	}
	if to, err := response.Location(); err == nil && response.StatusCode/100 == 3 { // relative to the first address
		_ = response.Body.Close()
		if r, err = http.NewRequestWithContext(ctx, http.MethodGet, to.String(), http.NoBody); err != nil {
			return nil, errors.New("matrix: the homeserver redirects to an invalid address")
		}
		if response, err = c.files.Do(r); err != nil {
			return nil, fmt.Errorf("matrix: %s: %w", route(path), live.RequestError(ctx, err))
		}
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		raw, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10)) // a part is enough to explain the refusal
		return nil, refusal(path, response, raw)
	}
	return response.Body, nil
}

// upload is the newest file that was uploaded, so that a repeated message doesn't upload it again. An upload takes long, and the
// message after it is repeated whenever its request gets no answer.
type upload struct {
	key, address string
}

// SendFile implements [live.FileChat]. A file that is larger than the homeserver allows is replaced by its name.
func (t *chat) SendFile(ctx context.Context, f live.File) (string, error) {
	if t.upload.key != f.Key || f.Key == "" {
		var answer struct {
			Address string `json:"content_uri"`
		}
		to := "/_matrix/media/v3/upload?filename=" + url.QueryEscape(f.Name)
		contentType := cmp.Or(f.Type, "application/octet-stream")
		if err := t.blocked(); err != nil {
			return "", err
		}
		err := t.c.client.do(ctx, transferLimit, t.c.client.files, http.MethodPost, to, contentType, bytes.NewReader(f.Content), &answer)
		if status(err) == http.StatusRequestEntityTooLarge {
			return t.send(ctx, f.Key, content{Kind: kindText, Body: "📎 " + f.Name + "\n(too large for the homeserver)", Relation: t.at.relation("")})
		}
		if err != nil {
			return "", t.explain(err)
		}
		t.upload = upload{f.Key, answer.Address}
	}
	return t.send(ctx, f.Key, content{
		Kind: fileKind(f.Type), Body: f.Name, Name: f.Name, URL: t.upload.address, Info: &fileInfo{Type: f.Type, Size: int64(len(f.Content))},
		Relation: t.at.relation(""),
	})
}

// fileKind returns the kind of a message with a file.
func fileKind(mediaType string) string {
	switch kind, _, _ := strings.Cut(mediaType, "/"); kind {
	case "image", "audio", "video":
		return "m." + kind
	}
	return "m.file"
}
