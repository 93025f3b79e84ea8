package leat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client calls one gateway. Its methods may be called from several goroutines; its fields are set before the first call.
type Client struct {
	// URL is the gateway's address, such as http://127.0.0.1:31337. A path before /api is kept.
	URL string
	// Token is the API token or a user's own, where one is needed.
	Token string
	// TokenSource, where it is set, is asked for the token of each request in place of Token. It renews tokens that run out:
	// a request whose token is refused is made once more, with what the source returns then. It may be called from several
	// goroutines, and keeps by itself what is still good. An error of it is wrapped in ErrToken; what is repeated after a lost
	// connection is repeated after that too.
	TokenSource func() (string, error)
	// Subject and Tenant say for whom the holder of the token acts; empty: for itself.
	Subject, Tenant string
	// HTTP makes the calls; nil is http.DefaultClient. It must have no timeout of its own: streams go on.
	HTTP *http.Client
}

const (
	// callLimit bounds one try of an ordinary call: longer than a gateway tries to commit.
	callLimit = 40 * time.Second
	// tries is how often a call is made whose first tries failed for a reason that may pass.
	tries = 4
	// maxAnswer bounds the body of an answer, in bytes.
	maxAnswer = 256 << 20
)

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

func (c *Client) client() *http.Client {
	if c.HTTP != nil {
		return c.HTTP
	}
	return http.DefaultClient
}

// call makes a request, with some repeats where repeat says that one does no harm and the gateway does not ask to stay away, and reads its answer into out.
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
			renewed = true // nothing was carried out, so that this is no repeat
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

// renews reports whether a request was refused because of its token, and another one may be had.
func (c *Client) renews(err error) bool {
	var e *Error
	return c.TokenSource != nil && errors.As(err, &e) && (e.Status == http.StatusUnauthorized || e.Status == 0 && e.Reason == reasonExpired)
}

// reasonExpired is why the gateway ends streams whose token is too old.
const reasonExpired = "expired"

func (c *Client) attempt(ctx context.Context, method, path string, header http.Header, body []byte, result any) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	for k, v := range header {
		req.Header[k] = v
	}
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
		return fmt.Errorf("leat: read answer: %w", err)
	}
	if err := json.Unmarshal(b, result); err != nil {
		return fmt.Errorf("%w: %s %s: %w", ErrProtocol, method, path, err)
	}
	return nil
}

// conversation is the path of one.
func conversation(id, suffix string) string {
	return "/api/conversations/" + url.PathEscape(id) + suffix
}
