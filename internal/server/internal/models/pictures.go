package models

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

const (
	// maxImages and maxImageBytes (decoded) limit the images of a request, because they are stored in the conversation's log
	// and sent to every reader.
	maxImages     = 4
	maxImageBytes = 1 << 20
)

// imageTypes are the media types that the APIs accept.
var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// Pictures adds the pictures of one request to its messages. The limits count all of them, including those in earlier messages.
type Pictures struct{ count, size int }

// Add adds a picture to a message as a media part. Its data is base64.
func (n *Pictures) Add(m *gateway.CommandMessage, mime, data string) error {
	mime = strings.ToLower(mime)
	if !slices.Contains(imageTypes, mime) {
		return server.Invalid("messages: unsupported picture %q; known are: %s", mime, strings.Join(imageTypes, ", "))
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(raw) == 0 {
		return server.Invalid("messages: a picture's data must be base64")
	}
	n.count++
	n.size += len(raw)
	if n.count > maxImages || n.size > maxImageBytes {
		return server.Errorf(http.StatusRequestEntityTooLarge, server.ReasonTooLarge, "messages: at most %d pictures, with %d bytes together", maxImages, maxImageBytes)
	}
	// The data is encoded again, so that equal pictures have equal texts however the client has encoded them.
	m.Parts = append(m.Parts, event.Part{Kind: event.KindMedia, Media: &event.Media{
		URL: "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(raw), MIME: mime, Size: int64(len(raw)),
	}})
	return nil
}

// AddURL adds a picture whose address is a data URL.
func (n *Pictures) AddURL(m *gateway.CommandMessage, url string) error {
	head, data, ok := strings.Cut(url, ";base64,")
	mime, isInline := strings.CutPrefix(head, "data:")
	if !ok || !isInline {
		return server.Invalid("messages: pictures have to be in the request, as a data URL")
	}
	return n.Add(m, mime, data)
}
