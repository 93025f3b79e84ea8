package eliza

import (
	"cmp"
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
	// maxImages is Eliza's limit.
	maxImages = 4
	// maxImageBytes is the largest size of all images of a message together, in decoded bytes. They are stored in the
	// conversation's log and sent to every reader.
	maxImageBytes = 1 << 20
	// maxClientMessageID is Eliza's limit, in characters.
	maxClientMessageID = 128
	// deltaV2 is the stream protocol in which most frames omit the full text.
	deltaV2 = "delta-v2"
)

var (
	channelTypes = []string{"SELF", "DM", "GROUP", "VOICE_DM", "VOICE_GROUP", "FEED", "THREAD", "WORLD", "FORUM", "API"}
	imageTypes   = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
)

// sendBody is the body of a message. Other keys of Eliza's clients are ignored.
type sendBody struct {
	Text            string  `json:"text"`
	ChannelType     string  `json:"channelType"`
	Source          string  `json:"source"`
	Images          []image `json:"images"`
	ClientMessageID string  `json:"clientMessageId"`
	StreamProtocol  string  `json:"streamProtocol"`
}

// image is a base64-encoded image with its media type.
type image struct {
	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`
	Name     string `json:"name"`
}

// readSend parses a message and returns its command.
//
// The checks and their texts are those of Eliza's server. The clientMessageId becomes the command's key,
// with a prefix, so it can't be equal to a key of the native protocol. It wins over the header
// Idempotency-Key, because the clients repeat it with each retry.
func readSend(r *http.Request) (b sendBody, c gateway.Command, err error) {
	if err := server.Decode(r, &b); err != nil {
		return b, c, err
	}
	if strings.TrimSpace(b.Text) == "" && len(b.Images) == 0 {
		return b, c, server.Invalid("text is required")
	}
	if b.ChannelType != "" && !slices.Contains(channelTypes, strings.ToUpper(b.ChannelType)) {
		return b, c, server.Invalid("channelType is invalid")
	}
	if n := utf8.RuneCountInString(b.ClientMessageID); n > maxClientMessageID {
		return b, c, server.Invalid("clientMessageId has %d characters; the limit is %d", n, maxClientMessageID)
	}
	m := &gateway.CommandMessage{Text: b.Text, Source: b.Source}
	m.Source = cmp.Or(m.Source, clientChat)
	if m.Parts, err = pictures(b.Images); err != nil {
		return b, c, err
	}
	c = gateway.Command{Type: gateway.CommandSend, Key: r.Header.Get("Idempotency-Key"), Message: m}
	if b.ClientMessageID != "" {
		c.Key = "client:" + b.ClientMessageID
	}
	return b, c, nil
}

// pictures converts the images of a message to media parts with data URLs. The data are decoded and
// encoded again, so that what is stored is valid base64 in the standard alphabet and its size is known.
func pictures(images []image) ([]event.Part, error) {
	if len(images) > maxImages {
		return nil, server.Invalid("Too many images (max %d)", maxImages)
	}
	var parts []event.Part
	size := 0
	for i, img := range images {
		mime := strings.ToLower(img.MIMEType)
		if !slices.Contains(imageTypes, mime) {
			return nil, server.Invalid("image %d: unsupported type %q; use %s", i+1, img.MIMEType, strings.Join(imageTypes, ", "))
		}
		data := img.Data
		// Eliza accepts bare base64. A data URL of the same type is accepted too.
		if head, encoded, ok := strings.Cut(data, ";base64,"); ok && strings.EqualFold(head, "data:"+mime) {
			data = encoded
		}
		raw, err := base64.StdEncoding.DecodeString(data)
		if err != nil || len(raw) == 0 {
			return nil, server.Invalid("image %d: invalid data; send base64", i+1)
		}
		if size += len(raw); size > maxImageBytes {
			return nil, server.Invalid("the images together exceed %d bytes", maxImageBytes)
		}
		parts = append(parts, event.Part{Kind: event.KindMedia, Media: &event.Media{
			URL: "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(raw), MIME: mime, Name: img.Name, Size: int64(len(raw)),
		}})
	}
	return parts, nil
}
