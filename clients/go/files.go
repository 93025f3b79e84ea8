package leat

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/leat-dev/leat/event"
)

// Upload stores a file with a conversation, and returns what a part of kind media refers to it by. It is sent once: r can't be read again, so a
// failure isn't retried, and only ctx limits how long it takes. The gateway detects the type of some files from their first bytes.
//
// Each file is stored once per conversation, so that uploading the same bytes again needs no additional space. size is the file's length in bytes. A
// file that no message shows is deleted after a day.
func (c *Client) Upload(ctx context.Context, id, name, mime string, r io.Reader, size int64) (event.Media, error) {
	var result struct {
		Media event.Media `json:"media"`
	}
	req, err := c.request(ctx, http.MethodPost, conversation(id, "/files?name="+url.QueryEscape(name)), nil)
	if err != nil {
		return result.Media, err
	}
	req.Body, req.ContentLength = io.NopCloser(r), size
	req.Header.Set("Content-Type", mime)
	err = c.answer(req, &result)
	return result.Media, err
}

// File writes the file of a part of kind media to w, and returns its length in bytes. If the file isn't stored at the gateway, the
// error is ErrForeign, since the gateway's token must not reach other servers.
func (c *Client) File(ctx context.Context, m *event.Media, w io.Writer) (int64, error) {
	if !strings.HasPrefix(m.URL, "/") {
		return 0, ErrForeign
	}
	// The gateway's addresses begin with its base path, which the client's URL has too.
	path := m.URL
	if base, err := url.Parse(c.URL); err == nil && base.Host != "" {
		path = strings.TrimPrefix(path, strings.TrimRight(base.Path, "/"))
	}
	n, err := c.download(ctx, http.MethodGet, path, "file", w)
	if err != nil {
		return n, fmt.Errorf("leat: file %s: %w", m.Name, err)
	}
	return n, nil
}
