package telegram

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

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
