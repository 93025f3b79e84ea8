package leat

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// Backup writes a copy of the gateway's whole store, as of one moment, to w, and returns its length in bytes. It needs the
// rights of the token's holder. After an error what was written is of no use.
func (c *Client) Backup(ctx context.Context, w io.Writer) (int64, error) {
	req, err := c.request(ctx, http.MethodGet, "/api/backup", nil)
	if err != nil {
		return 0, err
	}
	res, err := c.client().Do(req)
	if err != nil {
		return 0, fmt.Errorf("leat: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return 0, errorOf(res)
	}
	n, err := io.Copy(w, res.Body)
	if err != nil {
		return n, fmt.Errorf("leat: backup cut after %d bytes: %w", n, err)
	}
	return n, nil
}
