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
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/base/outbound"
)

const (
	// fetchLimit is how long an archive may take to come.
	fetchLimit = 5 * time.Minute
	// maxHops bounds redirects; each is dialled under the same rules as the first address.
	maxHops = 5
)

// client fetches archives.
func client(allowPrivate bool) *http.Client {
	c := outbound.New(outbound.Options{AllowPrivate: allowPrivate, Timeout: fetchLimit, MaxBody: maxArchive})
	c.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxHops:
			return errors.New("it redirects without end")
		case r.URL.Scheme != "https" && r.URL.Scheme != via[0].URL.Scheme:
			return errors.New("it redirects to an address without TLS")
		}
		return nil
	}
	return c
}

// download writes what an address gives to a file, and returns its checksum.
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

// bare takes the address out of an error: it may hold a secret.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// save writes an archive down and returns its checksum.
func save(from io.Reader, to *os.File) (string, error) {
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(from, maxArchive+1))
	switch {
	case errors.Is(err, outbound.ErrTooLarge) || err == nil && n > maxArchive:
		return "", fmt.Errorf("the archive has more than %d MiB", maxArchive>>20)
	case err != nil:
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// sameSum compares checksums in hex.
func sameSum(a, b string) bool { return strings.EqualFold(a, b) }
