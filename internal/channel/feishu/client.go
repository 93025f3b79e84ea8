package feishu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// requestLimit limits a request. After it the outcome is unknown.
	requestLimit = 20 * time.Second
	// transferLimit limits the transfer of one file.
	transferLimit = 5 * time.Minute
	// maxAnswer limits the body of an answer, in bytes.
	maxAnswer = 1 << 20
	// maxDownload is the largest file in a message that the platform gives to bots, in bytes.
	maxDownload = 100 << 20
)

// client calls the platform. It may be used concurrently.
type client struct {
	base  string // without a slash at its end
	token tokenSource
	http  *http.Client
	files *http.Client // for transfers of files, which take longer and are larger
	// limitedUntil is the end of the newest penalty for the app, in nanoseconds of the epoch.
	limitedUntil atomic.Int64
}

// newClient returns a client. allowPrivate permits private addresses, for an address that the operator has configured.
func newClient(base, appID, secret string, allowPrivate bool) *client {
	c := &client{
		base:  base,
		http:  outbound.New(outbound.Options{AllowPrivate: allowPrivate, Timeout: requestLimit, MaxBody: maxAnswer}),
		files: outbound.New(outbound.Options{AllowPrivate: allowPrivate, Timeout: transferLimit, MaxBody: maxDownload}),
	}
	c.token = tokenSource{client: c, id: appID, secret: secret, lock: make(chan struct{}, 1)}
	return c
}

// request is a request to the platform.
type request struct {
	method, path string
	// params is the body as JSON. If it is nil, body and contentType are set, or the body is empty.
	params      any
	body        []byte
	contentType string
	isTransfer  bool // of a file
}

// call sends a request with an access token and decodes the data of the answer into result, unless that is nil. An error is an
// *apiError, wraps live.ErrUnsent or live.ErrUnknown, or is that of ctx.
func (c *client) call(ctx context.Context, r request, result any) error {
	if r.params != nil {
		raw, err := marshal(r.params)
		if err != nil {
			return fmt.Errorf("feishu: %w", err)
		}
		r.body, r.contentType = raw, "application/json; charset=utf-8"
	}
	response, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return c.decode(ctx, response, &struct {
		Data any `json:"data"`
	}{result})
}

// send sends a request with an access token. If the platform refuses the token, it is sent once more with a new one: a request
// without a valid token has no effect. During a penalty for the app nothing is sent.
func (c *client) send(ctx context.Context, r request) (*http.Response, error) {
	if wait := time.Until(time.Unix(0, c.limitedUntil.Load())); wait > 0 {
		return nil, &live.Penalty{Wait: wait, IsGlobal: true, Err: errLimited}
	}
	for isRetry := false; ; isRetry = true {
		token, err := c.token.get(ctx)
		if err != nil {
			return nil, err
		}
		response, err := c.do(ctx, r, token)
		if err != nil || isRetry || r.isTransfer && response.StatusCode == http.StatusOK {
			return response, err
		}
		raw, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			return nil, live.RequestError(ctx, err)
		}
		response.Body = io.NopCloser(bytes.NewReader(raw))
		var e apiError
		if json.Unmarshal(raw, &e) != nil || !e.isToken() {
			return response, nil
		}
		c.token.drop(ctx, token)
	}
}

// do sends a request.
func (c *client) do(ctx context.Context, r request, token string) (*http.Response, error) {
	h, err := http.NewRequestWithContext(ctx, r.method, c.base+"/open-apis"+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, errors.New("feishu: the address of the platform is invalid")
	}
	if r.contentType != "" {
		h.Header.Set("Content-Type", r.contentType)
	}
	if token != "" {
		h.Header.Set("Authorization", "Bearer "+token)
	}
	with := c.http
	if r.isTransfer {
		with = c.files
	}
	response, err := with.Do(h)
	if err != nil {
		return nil, live.RequestError(ctx, err)
	}
	return response, nil
}

// decode decodes an answer of the platform, and begins a penalty for the app if the answer demands one.
func (c *client) decode(ctx context.Context, response *http.Response, result any) error {
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return live.RequestError(ctx, err)
	}
	e := &apiError{Status: response.StatusCode}
	isJSON := json.Unmarshal(raw, e) == nil
	if e.isLimit() {
		seconds, _ := strconv.Atoi(response.Header.Get("X-Ogw-Ratelimit-Reset")) // 0 if it is missing
		e.RetryAfter = max(time.Duration(seconds)*time.Second, time.Second)
		c.limitedUntil.Store(time.Now().Add(e.RetryAfter).UnixNano())
		return e
	}
	if !isJSON || e.Code == 0 && e.Status != http.StatusOK {
		// Not the platform, but something on the way to it, which may have passed the request on.
		return fmt.Errorf("feishu: HTTP %d without an answer of the platform: %w", e.Status, live.ErrUnknown)
	}
	if e.Code != 0 {
		return e
	}
	if err := json.Unmarshal(raw, result); err != nil {
		return fmt.Errorf("feishu: answer of the platform: %w", err)
	}
	return nil
}

// marshal returns a value as JSON. Angle brackets stay as they are, because the platform limits the bytes of a card.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}
