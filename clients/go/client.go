package leat

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client calls one gateway. Its methods may be called from several goroutines; set its fields before the first call.
type Client struct {
	// URL is the gateway's address, such as http://127.0.0.1:31337. A path before /api is kept.
	URL string
	// Token is the gateway's API token or a user's token. A gateway that listens on loopback only may need none.
	Token string
	// TokenSource, if set, returns the token for each request instead of Token, so that tokens can expire: a request that is refused
	// for its token is made once more, with the token that the source returns then. TokenSource may be called from several goroutines
	// and should cache a token that is still valid. Its errors are wrapped in ErrToken and retried like a lost connection.
	TokenSource func() (string, error)
	// Subject and Tenant name the user for whom the holder of the token acts. If both are empty, it acts for itself.
	Subject, Tenant string
	// HTTP sends the requests. If it is nil, http.DefaultClient is used. It must have no Timeout, which would end streams.
	HTTP *http.Client
}

const (
	// callLimit is the timeout of one attempt of an ordinary call. It is longer than the gateway's own limit for a commit.
	callLimit = 40 * time.Second
	// tries is the number of attempts of a call that fails for a temporary reason.
	tries = 4
	// maxAnswer is the limit of a response body, in bytes.
	maxAnswer = 256 << 20
)

// request returns a request with the client's credentials. The token is requested from TokenSource for every request. path begins
// with a slash and may contain a query. A URL without a scheme gets http://.
func (c *Client) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	base := strings.TrimRight(c.URL, "/")
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, base+path, r)
	if err != nil {
		return nil, fmt.Errorf("leat: %w", err)
	}
	setParam := func(name, value string) {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	token := c.Token
	if c.TokenSource != nil {
		if token, err = c.TokenSource(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrToken, err)
		}
	}
	if token != "" {
		setParam("Authorization", "Bearer "+token)
	}
	setParam("Leat-Subject", c.Subject)
	setParam("Leat-Tenant", c.Tenant)
	if body != nil {
		setParam("Content-Type", "application/json")
	}
	return req, nil
}

func (c *Client) client() *http.Client { return cmp.Or(c.HTTP, http.DefaultClient) }

// call sends a request with in as JSON, if it isn't nil, and decodes the response into result, if that isn't nil. If repeat is true, the
// request is idempotent, and call retries temporary failures, unless the gateway asks for a long wait. A failed retry returns the error of
// the last attempt.
//
// A refused token is renewed once per call, in addition to the retries. Each attempt has its own timeout, so ctx is the only limit of the
// whole call.
func (c *Client) call(ctx context.Context, repeat bool, method, path string, header http.Header, in, result any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("leat: encode request: %w", err)
		}
	}
	var wait backoff
	renewed := false
	for try := 1; ; try++ {
		err := c.attempt(ctx, method, path, header, body, result)
		if c.renews(err) && !renewed {
			renewed = true // a request with a refused token had no effect, so any request may be sent again
			continue
		}
		if err == nil || !repeat || try == tries || !temporary(err) || asksLongWait(err) || ctx.Err() != nil {
			return err
		}
		if wait.sleep(ctx, err) != nil {
			return err
		}
	}
}

// renews reports whether the gateway refused the token and TokenSource may return another one.
func (c *Client) renews(err error) bool {
	var e *Error
	return c.TokenSource != nil && errors.As(err, &e) && (e.Status == http.StatusUnauthorized || e.Status == 0 && e.Reason == reasonExpired)
}

// reasonExpired is the gateway's error reason for streams whose token has expired.
const reasonExpired = "expired"

// attempt sends a request once, within callLimit. The error is an [*Error] if the gateway responded with another status than 2xx, and wraps
// ErrProtocol if the response isn't the expected JSON.
func (c *Client) attempt(ctx context.Context, method, path string, header http.Header, body []byte, result any) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	maps.Copy(req.Header, header)
	res, err := c.client().Do(req)
	if err != nil {
		return fmt.Errorf("leat: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return errorOf(res)
	}
	if result == nil {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("leat: read response: %w", err)
	}
	if err := json.Unmarshal(b, result); err != nil {
		return fmt.Errorf("%w: %s %s: %w", ErrProtocol, method, path, err)
	}
	return nil
}

// query returns parameters as a query of a URL. Empty ones are left out.
func query(params map[string]string) url.Values {
	q := url.Values{}
	for name, value := range params {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

// conversation returns the path of a conversation's resources.
func conversation(id, suffix string) string {
	return "/api/conversations/" + url.PathEscape(id) + suffix
}
