package leat

import (
	"context"
	"io"
	"net/http"
)

// Backup writes a consistent copy of the gateway's whole store to w and returns its length in bytes. Only the holder of the gateway's
// token may call it. After an error, discard what was written.
func (c *Client) Backup(ctx context.Context, w io.Writer) (int64, error) {
	return c.download(ctx, http.MethodPost, "/api/backup", "backup", w)
}
