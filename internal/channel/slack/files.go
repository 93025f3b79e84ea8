package slack

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

// SendFile implements [live.FileChat]. A file appears in the chat when its upload is completed. The upload has three steps. The first
// two can be repeated without a visible effect; only the last one makes the file appear.
func (t *chat) SendFile(ctx context.Context, f live.File) (string, error) {
	if t.isNeeded || t.doubts[f.Key] {
		if err := t.searchChat(ctx, ""); err != nil {
			return "", t.undecided(err)
		}
		if id := t.takeFile(f.Name, int64(len(f.Content))); id != "" {
			t.knowFile(id)
			return t.at.channel + "/" + id, nil
		}
	}
	var place struct {
		Address string `json:"upload_url"`
		ID      string `json:"file_id"`
	}
	form := params{"filename": f.Name, "length": strconv.Itoa(len(f.Content))}
	if err := t.c.client.call(ctx, "files.getUploadURLExternal", form, &place); err != nil {
		return "", explain(withoutEffect(err))
	}
	if err := t.c.client.upload(ctx, place.Address, f.Content); err != nil {
		return "", err
	}
	form = params{"channel_id": t.at.channel}.with("files", []map[string]string{{"id": place.ID, "title": f.Name}})
	if t.at.thread != "" {
		form["thread_ts"] = t.at.thread
	}
	if err := t.c.client.call(ctx, methodComplete, form, nil); err != nil {
		return "", explain(t.doubt(f.Key, err))
	}
	t.knowFile(place.ID)
	return t.at.channel + "/" + place.ID, nil
}

// withoutEffect returns the error of a request that can be repeated, because its effect is not visible. An address that isn't used
// expires.
func withoutEffect(err error) error {
	if isUnknown(err) {
		return unsent("files.getUploadURLExternal", err)
	}
	return err
}

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
