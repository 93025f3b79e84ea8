package whatsapp

import (
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

// mediaHosts are the domains of the platform's media servers, which may get the access token.
var mediaHosts = []string{"facebook.com", "fbsbx.com", "fbcdn.net", "whatsapp.net"}

// media returns a file of a person. Only documents have names.
func (f *file) media() channel.Media {
	kind, _, err := mime.ParseMediaType(f.Type)
	if err != nil {
		kind = "application/octet-stream"
	}
	name := f.Name
	if name == "" {
		name = strings.ReplaceAll(kind, "/", ".") // such as image.jpeg
	}
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
