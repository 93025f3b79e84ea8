package slack

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/leat-dev/leat/internal/channel"
)

// maxFile is the largest file that is received or sent, in bytes. Slack itself allows a gigabyte. The limit is that of a conversation
// by default, and protects the memory of the gateway.
const maxFile = 100 << 20

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
	if !c.client.isTrusted(m.Ref) {
		return nil, errors.New("slack: the address of a file is not one of Slack")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.Ref, http.NoBody)
	if err != nil {
		return nil, errors.New("slack: the address of a file is invalid")
	}
	r.Header.Set("Authorization", "Bearer "+c.client.token)
	response, err := c.client.files.Do(r)
	if err != nil {
		return nil, failure(ctx, "download", err)
	}
	if response.StatusCode != http.StatusOK { // without the scope files:read it is a redirection to the page for signing in
		_ = response.Body.Close()
		return nil, &apiError{Method: "download", Reason: response.Status}
	}
	return response.Body, nil
}

// isTrusted reports whether the token may be sent to an address: one of Slack, or of the server that has the API.
func (c *client) isTrusted(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	api, err := url.Parse(c.base)
	if err == nil && u.Scheme == api.Scheme && u.Host == api.Host {
		return true
	}
	host := u.Hostname()
	return u.Scheme == "https" && (host == "slack.com" || strings.HasSuffix(host, ".slack.com") || strings.HasSuffix(host, ".slack-gov.com"))
}
