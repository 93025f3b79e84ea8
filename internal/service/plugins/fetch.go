// Downloading an archive within a size limit, with its checksum, and from public addresses unless others are allowed.

package plugins

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/leat-dev/leat/internal/base/outbound"
)

const (
	// fetchLimit limits the download of an archive.
	fetchLimit = 5 * time.Minute
	// maxHops limits redirects. Each target is checked against the same address rules as the first.
	maxHops = 5
)

// client returns the client that downloads archives. It refuses private addresses unless allowPrivate is set, and never follows
// a redirect from https to http.
func client(allowPrivate bool) *http.Client {
	c := outbound.New(outbound.Options{AllowPrivate: allowPrivate, Timeout: fetchLimit, MaxBody: maxArchive})
	c.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxHops:
			return errors.New("too many redirects")
		case r.URL.Scheme != "https" && r.URL.Scheme != via[0].URL.Scheme:
			return errors.New("redirect to an address without TLS refused")
		}
		return nil
	}
	return c
}

// download fetches an archive into a file and returns its SHA-256 in hex. The size is limited by the client and again in save,
// because a compressed transfer may expand.
func download(ctx context.Context, c *http.Client, address string, to *os.File) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", bare(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		return "", bare(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the archive's server answered %s", resp.Status)
	}
	return save(resp.Body, to)
}

// bare removes the URL from an error of the client, because the URL may contain a secret, and the error is logged and shown to clients.
func bare(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// save copies an archive to a file and returns its SHA-256 in hex. It fails above maxArchive, after reading one byte more. The checksum is
// computed from the bytes that are written, so a source that changes meanwhile can't pass a check with other bytes.
func save(from io.Reader, to *os.File) (string, error) {
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(from, maxArchive+1))
	switch {
	case errors.Is(err, outbound.ErrTooLarge) || err == nil && n > maxArchive:
		return "", fmt.Errorf("the archive is larger than %d MiB", maxArchive>>20)
	case err != nil:
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
