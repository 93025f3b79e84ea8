package eliza

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

const (
	// maxImages is Eliza's own bound.
	maxImages = 4
	// maxImageBytes bounds the pictures of one message together, as bytes of the files. They lie in the conversation's
	// log and go to every reader.
	maxImageBytes = 1 << 20
	// maxClientMessageID is Eliza's own bound, in characters.
	maxClientMessageID = 128
	// deltaV2 is the stream protocol without the whole text in every frame.
	deltaV2 = "delta-v2"
)

var (
	channelTypes = []string{"SELF", "DM", "GROUP", "VOICE_DM", "VOICE_GROUP", "FEED", "THREAD", "WORLD", "FORUM", "API"}
	imageTypes   = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
)

// sendBody is the body of a message. Other keys that Eliza's clients send mean nothing here and are ignored.
type sendBody struct {
	Text            string  `json:"text"`
	ChannelType     string  `json:"channelType"`
	Source          string  `json:"source"`
	Images          []image `json:"images"`
	ClientMessageID string  `json:"clientMessageId"`
	StreamProtocol  string  `json:"streamProtocol"`
}

// image is a picture as Eliza's clients send it: base64, with its media type.
type image struct {
	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`
	Name     string `json:"name"`
}

func invalid(format string, args ...any) error {
	return server.Errorf(http.StatusBadRequest, server.ReasonInvalid, format, args...)
}

// readSend reads a message and makes its command.
func readSend(r *http.Request) (b sendBody, c gateway.Command, err error) {
	if err := server.Decode(r, &b); err != nil {
		return b, c, err
	}
	if strings.TrimSpace(b.Text) == "" && len(b.Images) == 0 {
		return b, c, invalid("text is required")
	}
	if b.ChannelType != "" && !slices.Contains(channelTypes, strings.ToUpper(b.ChannelType)) {
		return b, c, invalid("channelType is invalid")
	}
	if n := utf8.RuneCountInString(b.ClientMessageID); n > maxClientMessageID {
		return b, c, invalid("clientMessageId has %d characters, at most %d", n, maxClientMessageID)
	}
	m := &gateway.CommandMessage{Text: b.Text, Source: b.Source}
	if m.Source == "" {
		m.Source = clientChat
	}
	if m.Parts, err = pictures(b.Images); err != nil {
		return b, c, err
	}
	c = gateway.Command{Type: gateway.CommandSend, Key: r.Header.Get("Idempotency-Key"), Message: m}
	if b.ClientMessageID != "" {
		c.Key = "client:" + b.ClientMessageID
	}
	return b, c, nil
}

func pictures(images []image) ([]event.Part, error) {
	if len(images) > maxImages {
		return nil, invalid("Too many images (max %d)", maxImages)
	}
	var parts []event.Part
	size := 0
	for i, img := range images {
		mime := strings.ToLower(img.MIMEType)
		if !slices.Contains(imageTypes, mime) {
			return nil, invalid("image %d: unsupported type %q; known are: %s", i+1, img.MIMEType, strings.Join(imageTypes, ", "))
		}
		data := img.Data
		// Eliza takes bare base64; a data URL says the same.
		if head, rest, ok := strings.Cut(data, ";base64,"); ok && strings.EqualFold(head, "data:"+mime) {
			data = rest
		}
		raw, err := base64.StdEncoding.DecodeString(data)
		if err != nil || len(raw) == 0 {
			return nil, invalid("image %d: data must be base64", i+1)
		}
		if size += len(raw); size > maxImageBytes {
			return nil, invalid("the images have more than %d bytes together", maxImageBytes)
		}
		parts = append(parts, event.Part{Kind: event.KindMedia, Media: &event.Media{
			URL: "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(raw), MIME: mime, Name: img.Name, Size: int64(len(raw)),
		}})
	}
	return parts, nil
}
