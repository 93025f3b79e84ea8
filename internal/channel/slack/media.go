package slack

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

// maxFile is the largest file that is received or sent, in bytes. Slack itself allows a gigabyte. The limit is that of a conversation
// by default, and protects the memory of the gateway.
const maxFile = 100 << 20

// hosts are the domains of Slack's servers, which may get the token.
var hosts = []string{"slack.com", "slack-gov.com"}

// fileObject is a file in a message. The address for downloads needs the bot's token.
type fileObject struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Type     string `json:"mimetype"`
	Size     int64  `json:"size"`
	Mode     string `json:"mode"` // external for a link to a file elsewhere, tombstone for a deleted one
	Download string `json:"url_private_download"`
}

// media returns the files of a message that Slack has. Links to files elsewhere are left out: the token must not be sent there, and
// without it they rarely work.
func media(files []fileObject) []channel.Media {
	var list []channel.Media
	for _, f := range files {
		if f.Download != "" && f.Mode != "external" && f.Mode != "tombstone" {
			list = append(list, channel.Media{Ref: f.Download, Name: f.Name, Type: f.Type, Size: f.Size})
		}
	}
	return list
}

var _ channel.MediaChannel = (*bot)(nil)

// FetchMedia implements [channel.MediaChannel]. The token goes to the address, so that is checked.
func (c *bot) FetchMedia(ctx context.Context, m channel.Media) (io.ReadCloser, error) {
	if m.Size > maxFile {
		return nil, channel.ErrTooLarge
	}
	if !outbound.IsWithin(m.Ref, c.client.base, hosts...) {
		return nil, errors.New("slack: the address of a file is not one of Slack")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.Ref, http.NoBody)
	if err != nil {
		return nil, errors.New("slack: the address of a file is invalid")
	}
	r.Header.Set("Authorization", "Bearer "+c.client.token)
	return live.Download(ctx, c.client.files, r, rules.Platform, func(response *http.Response) error {
		return &apiError{Method: "download", Reason: response.Status} // without the scope files:read it is a redirection to the page for signing in
	})
}
