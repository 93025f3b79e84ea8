package leat

import (
	"context"
	"io"
	"net/http"
)

// Backup writes a copy of the gateway's whole store, as of one moment, to w, and returns its length in bytes. It needs the
// rights of the token's holder. After an error what was written is of no use.
func (c *Client) Backup(ctx context.Context, w io.Writer) (int64, error) {
	return c.download(ctx, http.MethodPost, "/api/backup", "backup", w)
}
