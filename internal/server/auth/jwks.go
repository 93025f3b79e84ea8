// Keys from a URL. They are fetched again when a token names an unknown key, but not more often than the limit allows.

package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// freshFor is how long fetched keys are used before they are fetched again. A revoked key is refused after this time at the
	// latest.
	freshFor = 5 * time.Minute
	// fetchEvery is the minimum interval between requests to the URL, whatever tokens arrive.
	fetchEvery = 10 * time.Second
	// fetchLimit is the timeout of a whole request.
	fetchLimit = 5 * time.Second
	// maxJWKS is the largest response in bytes.
	maxJWKS = 512 << 10
	// maxRedirects is the largest number of redirects.
	maxRedirects = 3
)

// remote is a source behind a URL.
//
// The first valid response is fetched for the first token. From then on, the keys are used while they are
// fresh, and also later if the URL does not answer: an outage of the identity service must not log
// everybody out.
type remote struct {
	url    string
	client *http.Client
	log    *slog.Logger

	mu        sync.Mutex
	keys      fixed
	fetched   time.Time     // time of the last successful request
	requested time.Time     // time of the last request
	pending   chan struct{} // closed when the running request ends; nil if none runs
}

// At most maxRedirects redirects are followed. One from https to plain HTTP is refused, because others on
// the network could replace the keys there.
func newRemote(address string, transport http.RoundTripper, log *slog.Logger) (*remote, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, fmt.Errorf("%w: invalid JWKS URL %q; use https://HOST/PATH", errConfig, address)
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		return nil, fmt.Errorf("%w: %q: keys fetched over plain HTTP could be replaced in transit; use https", errConfig, address)
	}
	secure := u.Scheme == "https"
	return &remote{url: address, log: log, client: &http.Client{
		Transport: transport, Timeout: fetchLimit,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			switch {
			case len(via) > maxRedirects:
				return errors.New("too many redirects")
			case secure && r.URL.Scheme != "https":
				return errors.New("a redirect away from https")
			}
			return nil
		},
	}}, nil
}

// A fetch is due if the keys are old or none fits the token, but at most once per fetchEvery, so tokens
// with invented key ids can't make the gateway flood the identity service. Callers without a fitting key
// wait for a running fetch; all others use the keys that they have.
func (r *remote) find(ctx context.Context, kid, alg string) ([]jwt.VerificationKey, error) {
	for {
		r.mu.Lock()
		keys, never, due := r.keys, r.fetched.IsZero(), time.Since(r.requested) >= fetchEvery
		fit, err := keys.find(ctx, kid, alg)
		pending := r.pending
		switch {
		case pending == nil && due && (err != nil || time.Since(r.fetched) >= freshFor):
			// This caller fetches the keys. The others use the current ones, or wait.
			finished := make(chan struct{})
			r.pending, r.requested = finished, time.Now()
			r.mu.Unlock()
			r.refresh(ctx, finished)
			continue
		case err == nil:
			r.mu.Unlock()
			return fit, nil
		}
		r.mu.Unlock()
		switch {
		case pending != nil:
			select {
			case <-pending:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		case never:
			return nil, errNoKeysRead
		default:
			return nil, err
		}
	}
}

// refresh fetches the keys. A valid response replaces all keys; otherwise the old ones stay.
func (r *remote) refresh(ctx context.Context, finished chan struct{}) {
	// Other callers wait for this response too, so it must not end with the request that happened to start it.
	keys, err := r.fetch(context.WithoutCancel(ctx))
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(finished)
	r.pending = nil
	if err != nil {
		r.log.Warn("the users' keys can't be fetched; the last valid keys stay in use", "url", redacted(r.url), "error", err)
		return
	}
	r.keys, r.fetched = keys, time.Now()
}

// A page instead of a JWKS is reported as such, because it usually means that a login page answers under
// the wrong URL.
func (r *remote) fetch(ctx context.Context) ([]key, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	res, err := r.client.Do(req)
	if err != nil {
		return nil, withoutURL(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is %s", res.Status)
	}
	if media, _, err := mime.ParseMediaType(res.Header.Get("Content-Type")); err == nil && media == "text/html" {
		return nil, errors.New("the answer is a page, not a JWKS")
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, maxJWKS+1))
	if err != nil {
		return nil, withoutURL(err)
	}
	if len(b) > maxJWKS {
		return nil, fmt.Errorf("the answer is larger than %d bytes", maxJWKS)
	}
	return parseJWKS(b)
}

// withoutURL removes the URL from net/http's errors, because it may contain a secret.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// redacted returns a URL without the parts that may be secret.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "-"
	}
	u.RawQuery, u.User, u.Fragment = "", nil, ""
	return u.String()
}

const (
	// lookEvery is the minimum interval between checks of a file, and so the delay until a change applies.
	lookEvery = 5 * time.Second
	// maxFile is the largest file of keys in bytes.
	maxFile = 1 << 20
)

// source provides keys.
//
// A source may block, for the network or a file, and respects the context. Several goroutines may call it.
type source interface {
	// find returns the keys that may have signed a token with this kid and algorithm. Without any, it returns an error.
	find(ctx context.Context, kid, alg string) ([]jwt.VerificationKey, error)
}

// fixed is a source that never changes.
type fixed []key

func (f fixed) find(_ context.Context, kid, alg string) ([]jwt.VerificationKey, error) {
	if fit := fitting(f, kid, alg); len(fit) > 0 {
		return fit, nil
	}
	return nil, errNoKey
}

// file is a source that reads its file again after a change. While the file is unreadable or invalid, because it is being
// written, the previous keys apply.
type file struct {
	path  string
	parse func([]byte) ([]key, error)
	log   *slog.Logger

	mu     sync.Mutex
	looked time.Time
	have   []byte
	keys   fixed
}

// openFile returns a source for a file. It fails if the file can't be read or parsed now, so that a wrong
// configuration is found at the start. Later failures are only logged.
func openFile(path string, parse func([]byte) ([]key, error), log *slog.Logger) (*file, error) {
	f := &file{path: path, parse: parse, log: log}
	return f, f.load()
}

// load loads the file. The caller must hold mu, unless it created f. Changes are detected by the content: a mounted secret is
// replaced by a link, and modification times are too coarse.
func (f *file) load() error {
	f.looked = time.Now()
	r, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	defer func() { _ = r.Close() }()
	b, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	if len(b) > maxFile {
		return fmt.Errorf("read keys: %s is larger than %d bytes", f.path, maxFile)
	}
	if f.keys != nil && bytes.Equal(b, f.have) {
		return nil
	}
	keys, err := f.parse(b)
	if err != nil {
		return fmt.Errorf("read keys of %s: %w", f.path, err)
	}
	f.have, f.keys = b, keys
	return nil
}

// The mutex is locked while the file is read, so other tokens wait for it. Files are small and local.
func (f *file) find(ctx context.Context, kid, alg string) ([]jwt.VerificationKey, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.looked) >= lookEvery {
		if err := f.load(); err != nil {
			f.log.Warn("the users' keys can't be read; the last valid keys stay in use", "error", err)
		}
	}
	return f.keys.find(ctx, kid, alg)
}
