package feishu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// maxUpload is the largest file that bots can send, and maxImage the largest image, in bytes.
	maxUpload = 30 << 20
	maxImage  = 10 << 20
)

const (
	// codeTooLarge is that of a file which the platform doesn't give to bots.
	codeTooLarge = 234037
	// codeImage is that of an image which the platform can't read.
	codeImage = 234011
)

// FetchMedia implements [channel.MediaChannel].
func (c *bot) FetchMedia(ctx context.Context, m channel.Media) (io.ReadCloser, error) {
	parts := strings.SplitN(m.Ref, "/", 3)
	if len(parts) != 3 {
		return nil, fmt.Errorf("feishu: a file has the reference %q", m.Ref)
	}
	response, err := c.client.send(ctx, request{
		method: http.MethodGet, path: messagePath(parts[0]) + "/resources/" + url.PathEscape(parts[2]) + "?type=" + parts[1], isTransfer: true,
	})
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer response.Body.Close()
	var empty struct{}
	err = c.client.decode(ctx, response, &empty)
	if has(err, codeTooLarge) {
		return nil, channel.ErrTooLarge
	}
	return nil, err
}

// upload is a file that was uploaded, so that a repeated message doesn't upload it again.
type upload struct {
	key        string // of the message
	kind, file string // the file's kind and key at the platform
}

// SendFile implements [live.FileChat]: it uploads a file and sends it, a picture as an image.
func (t *chat) SendFile(ctx context.Context, f live.File) (string, error) {
	if len(f.Content) == 0 { // refused by the platform
		return t.Post(ctx, live.Post{Kind: live.Answer, Text: plain("📎 " + f.Name), Key: f.Key})
	}
	if t.upload.key != f.Key || f.Key == "" {
		kind, key, err := t.c.uploadAs(ctx, f)
		if errors.Is(err, live.ErrUnknown) {
			return "", errors.Join(live.ErrUnsent, err) // a second upload has no effect that people see
		}
		if err != nil {
			return "", explain(err)
		}
		t.upload = upload{key: f.Key, kind: kind, file: key}
	}
	content, err := cardJSON(map[string]string{t.upload.kind + "_key": t.upload.file})
	if err != nil {
		return "", err
	}
	return t.send(ctx, t.upload.kind, content, "", f.Key)
}

// uploadAs uploads a file as an image if the platform can show it, and otherwise as a file. It returns the kind and the key.
func (c *bot) uploadAs(ctx context.Context, f live.File) (kind, key string, err error) {
	kind = "file"
	if slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"}, f.Type) && len(f.Content) <= maxImage {
		kind = "image"
	}
	key, err = c.upload(ctx, kind, f)
	if kind == "image" && has(err, codeImage) {
		kind = "file"
		key, err = c.upload(ctx, kind, f)
	}
	return kind, key, err
}

// upload uploads a file and returns its key. kind is image or file.
func (c *bot) upload(ctx context.Context, kind string, f live.File) (string, error) {
	fields := map[string]string{"file_type": fileType(f.Name), "file_name": f.Name}
	if kind == "image" {
		fields = map[string]string{"image_type": "message"}
	}
	body, contentType, err := live.Form(fields, kind, live.File{Name: f.Name, Content: f.Content})
	if err != nil {
		return "", err
	}
	var result map[string]string
	err = c.client.call(ctx, request{
		method: http.MethodPost, path: "/im/v1/" + kind + "s", body: body, contentType: contentType, isTransfer: true,
	}, &result)
	return result[kind+"_key"], err
}

// fileType returns the platform's type for a file. It only chooses the icon and the preview.
func fileType(name string) string {
	switch extension := strings.TrimPrefix(strings.ToLower(path.Ext(name)), "."); extension {
	case "pdf", "doc", "xls", "ppt", "mp4", "opus":
		return extension
	case "docx", "xlsx", "pptx":
		return strings.TrimSuffix(extension, "x")
	}
	return "stream"
}
