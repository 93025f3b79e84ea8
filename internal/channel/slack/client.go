package slack

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// requestLimit limits a request. After it the outcome is unknown.
	requestLimit = 20 * time.Second
	// transferLimit limits the transfer of one file.
	transferLimit = 5 * time.Minute
	// maxAnswer limits the body of an answer, in bytes. The largest is a page of messages.
	maxAnswer = 8 << 20
)

// client calls the Web API. It may be used concurrently. The tokens have different rights: the app-level token only opens connections
// of Socket Mode, and the bot's token does everything else.
type client struct {
	base     string // ends with a slash
	token    string // of the bot
	appToken string // for Socket Mode, or empty
	limits   limits
	http     *http.Client
	files    *http.Client // for transfers of files, which take longer and are larger
	sockets  *http.Client // for connections of Socket Mode, which stay open
}

// newClient returns a client. allowPrivate permits addresses that are not public, for another server than Slack. A connection of
// Socket Mode needs a client whose responses can be written to, which outbound doesn't make.
func newClient(base, token, appToken string, allowPrivate bool) *client {
	return &client{
		base: base, token: token, appToken: appToken,
		http:    outbound.New(outbound.Options{AllowPrivate: allowPrivate, Timeout: requestLimit, MaxBody: maxAnswer}),
		files:   outbound.New(outbound.Options{AllowPrivate: allowPrivate, Timeout: transferLimit, MaxBody: maxFile}),
		sockets: &http.Client{},
	}
}

// params are the parameters of a method. All methods take them as a form; only some take JSON.
type params map[string]string

// with adds a parameter that is JSON.
func (p params) with(key string, value any) params {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err) // can't happen: the values are structs and maps of texts
	}
	p[key] = string(raw)
	return p
}

// call calls a method and decodes its answer into result, unless that is nil. An error is an *apiError, wraps live.ErrUnsent or
// live.ErrUnknown, or is that of ctx. No request is made during a penalty; then the error is that of the penalty.
func (c *client) call(ctx context.Context, method string, p params, result any) error {
	return c.request(ctx, method, p, result, false)
}

// callLive is call for an update of a running turn, which leaves a part of the method's limit to answers.
func (c *client) callLive(ctx context.Context, method string, p params) error {
	return c.request(ctx, method, p, nil, true)
}

// request waits for the limits, makes a request, and records a penalty.
func (c *client) request(ctx context.Context, method string, p params, result any, isLive bool) error {
	token := c.token
	if method == methodOpen {
		token = c.appToken
	}
	place := cmp.Or(p["channel"], p["channel_id"])
	if err := c.limits.enter(ctx, method, place, isLive); err != nil {
		return err
	}
	form := url.Values{}
	for key, value := range p {
		form.Set(key, value)
	}
	err := c.post(ctx, method, token, form, result)
	if wait := retryAfter(err); wait > 0 {
		c.limits.punish(method, place, wait)
	}
	return err
}

// post sends one request. The token is in a header: an address can appear in logs. The body is a form, which every method accepts.
// Some methods ignore JSON.
func (c *client) post(ctx context.Context, method, token string, form url.Values, result any) error {
	request, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	r, err := http.NewRequestWithContext(request, http.MethodPost, c.base+method, strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("slack: %s: the address of the API is invalid", method)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer "+token)
	response, raw, err := live.Exchange(ctx, c.http, r)
	if err != nil {
		return fmt.Errorf("slack: %s: %w", method, err)
	}
	return decode(method, response, raw, result)
}

// decode decodes an answer of the Web API. A refusal has the status 200, unless it is a penalty.
func decode(method string, response *http.Response, raw []byte, result any) error {
	if response.StatusCode == http.StatusTooManyRequests {
		wait := max(retry.After(response.Header.Get("Retry-After"), time.Now()), time.Second)
		return &apiError{Method: method, Reason: reasonLimited, RetryAfter: wait}
	}
	var a struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
		Scope string `json:"needed"`
	}
	switch {
	case json.Unmarshal(raw, &a) == nil && a.OK:
	case a.Error != "":
		return &apiError{Method: method, Reason: a.Error, Scope: a.Scope}
	default: // not the API, but something on the way to it, which may have passed the request on
		return fmt.Errorf("slack: %s: %w (HTTP %d without an answer of the API)", method, live.ErrUnknown, response.StatusCode)
	}
	return live.DecodeResult(raw, result, "slack: answer of "+method)
}

// upload sends the bytes of a file to the address that the API has given for it. The address is a secret for a short time and belongs
// to this file only.
func (c *client) upload(ctx context.Context, address string, content []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(content))
	if err != nil {
		return errors.New("slack: the address for a file is invalid")
	}
	r.Header.Set("Content-Type", "application/octet-stream")
	response, err := c.files.Do(r)
	if err != nil {
		return unsent("upload", outbound.Reason(err)) // the file doesn't appear before it is completed
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return unsent("upload", fmt.Errorf("HTTP %d", response.StatusCode))
	}
	return nil
}
