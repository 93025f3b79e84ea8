package letta

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// maxImage limits the size of an attached image, in bytes. Larger images fail the turn before anything is sent.
const maxImage = 10 << 20

// textPiece is the text of a message that also has images.
type textPiece struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// imagePiece is an attached image.
type imagePiece struct {
	Type   string      `json:"type"`
	Source imageSource `json:"source"`
}

// imageSource contains the image itself, in base64: the servers can't fetch Leat's URLs.
type imageSource struct {
	Type string `json:"type"`
	MIME string `json:"media_type"`
	Data string `json:"data"`
}

// content converts a user's message to Letta's format: a string, or a list of pieces if there are images. Letta accepts no
// other files, so they are only named in the text, as are images that Leat no longer has.
func content(ctx context.Context, m agent.Message, emitter *agent.Emitter) (any, error) {
	var images []any
	text := m.Text
	for _, p := range m.Parts {
		if p.Kind != event.KindMedia || p.Media == nil {
			continue
		}
		if !strings.HasPrefix(p.Media.MIME, "image/") {
			text = strings.TrimSpace(text + "\n[attached: " + p.Media.Name + "]")
			continue
		}
		data, err := image(ctx, *p.Media, emitter)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, agent.ErrNoFiles) {
			emitter.Log().Warn("an attached image is missing and was not sent", "name", p.Media.Name, "error", err)
			text = strings.TrimSpace(text + "\n[attached: " + p.Media.Name + "]")
			continue
		}
		if err != nil {
			return nil, err
		}
		images = append(images, imagePiece{Type: "image", Source: imageSource{Type: "base64", MIME: p.Media.MIME, Data: data}})
	}
	if len(images) == 0 {
		return text, nil
	}
	if text != "" {
		images = append([]any{textPiece{Type: "text", Text: text}}, images...)
	}
	return images, nil
}

// image reads an attached image and returns it in base64.
func image(ctx context.Context, m event.Media, emitter *agent.Emitter) (string, error) {
	r, err := emitter.OpenFile(ctx, m)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, maxImage+1))
	if err != nil {
		return "", fmt.Errorf("read image %s: %w", m.Name, err)
	}
	if len(b) > maxImage {
		return "", &agent.Error{Code: codeTooLarge, Message: fmt.Sprintf("the image %s is larger than %d MiB", m.Name, maxImage>>20)}
	}
	return base64.StdEncoding.EncodeToString(b), nil
}
