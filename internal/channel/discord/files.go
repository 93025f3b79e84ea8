package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// maxUpload is the largest file that the platform takes from a bot everywhere, in bytes. Servers with boosts take larger files,
	// but a bot can't rely on that.
	maxUpload = 10 << 20
	// maxDownload is the largest file that is fetched, in bytes: the largest that a conversation takes by default.
	maxDownload = 100 << 20
	// transferLimit limits the transfer of one file.
	transferLimit = 5 * time.Minute
)

// upload describes a file of a request. The id connects the description with the part of the form that has the bytes.
type upload struct {
	ID       int    `json:"id"`
	Filename string `json:"filename"`
}

// SendFile implements [live.FileChat]. A file follows its text without a reply and without buttons. Its name is the one that people
// see.
func (t *chat) SendFile(ctx context.Context, f live.File) (string, error) {
	empty := ""
	body := outgoing{
		Content: &empty, AllowedMentions: &allowedMentions{Parse: []string{}}, Components: []component{}, Attachments: []upload{{Filename: f.Name}},
		Nonce: nonceOf(f.Key), Enforce: true,
	}
	return t.create(ctx, f.Key, body, false, func(result *message) error {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		form, contentType, err := live.Form(map[string]string{"payload_json": string(raw)}, "files[0]", f)
		if err != nil {
			return err
		}
		return t.c.client.send(ctx, at(http.MethodPost, "/channels/%s/messages", t.id), t.c.client.files, transferLimit, contentType, form, result)
	})
}

// media returns the files of a message. Their references are ids, because the addresses of files expire.
func (m *message) media() []channel.Media {
	var list []channel.Media
	for _, a := range m.Attachments {
		list = append(list, channel.Media{Ref: m.Channel + "/" + m.ID + "/" + a.ID, Name: a.Filename, Type: a.Type, Size: a.Size})
	}
	return list
}

// FetchMedia implements [channel.MediaChannel]. The message is read again to get a fresh address.
func (c *bot) FetchMedia(ctx context.Context, m channel.Media) (io.ReadCloser, error) {
	if m.Size > maxDownload {
		return nil, channel.ErrTooLarge
	}
	place, id, _ := strings.Cut(m.Ref, "/")
	number, file, _ := strings.Cut(id, "/")
	var from message
	if err := c.client.call(ctx, at(http.MethodGet, "/channels/%s/messages/%s", place, number), nil, &from); err != nil {
		return nil, err
	}
	for _, a := range from.Attachments {
		if a.ID == file {
			return c.client.download(ctx, a.URL)
		}
	}
	return nil, fmt.Errorf("discord: the message has no file %q any more", m.Name)
}

// download opens a file. Its address is on another host than the API, which must not get the token.
func (c *client) download(ctx context.Context, address string) (io.ReadCloser, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && !c.allowPrivate {
		return nil, errors.New("discord: the address of a file is invalid")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, errors.New("discord: the address of a file is invalid")
	}
	r.Header.Set("User-Agent", userAgent)
	return live.Download(ctx, c.files, r, rules.Platform, func(response *http.Response) error {
		return &apiError{Route: "download of a file", Status: response.StatusCode, Message: response.Status}
	})
}
