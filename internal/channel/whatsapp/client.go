package whatsapp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
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
	// maxDownload is the largest file that the platform takes from people, in bytes.
	maxDownload = 100 << 20
)

// client calls the Cloud API. It may be used concurrently.
type client struct {
	base  string // with the version, without a slash at its end
	token string
	http  *http.Client
	files *http.Client // for transfers of files, which take longer and are larger
}

// newClient returns a client. allowPrivate permits private addresses, for an address that the operator has configured.
func newClient(base, token string, allowPrivate bool) *client {
	return &client{
		base: base, token: token,
		http:  outbound.New(outbound.Options{AllowPrivate: allowPrivate, Timeout: requestLimit, MaxBody: maxAnswer}),
		files: outbound.New(outbound.Options{AllowPrivate: allowPrivate, Timeout: transferLimit, MaxBody: maxDownload}),
	}
}

// call sends a request whose body is JSON, or empty if params is nil, and decodes the answer into result, unless that is nil. An
// error is an *apiError, wraps live.ErrUnsent or live.ErrUnknown, or is that of ctx.
func (c *client) call(ctx context.Context, method, path string, params, result any) error {
	var body []byte
	if params != nil {
		var err error
		if body, err = json.Marshal(params); err != nil {
			return fmt.Errorf("whatsapp: %w", err)
		}
	}
	return c.send(ctx, c.http, method, path, "application/json", body, result)
}

// send sends a request. The access token is in a header, so that no log of addresses contains it.
func (c *client) send(ctx context.Context, with *http.Client, method, path, contentType string, body []byte, result any) error {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return errors.New("whatsapp: the address of the API is invalid")
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Authorization", "Bearer "+c.token)
	response, raw, err := live.Exchange(ctx, with, r)
	if err != nil {
		return err
	}
	return decode(response.StatusCode, raw, result)
}

// decode decodes an answer of the API.
func decode(status int, raw []byte, result any) error {
	var refusal struct {
		Error *apiError `json:"error"`
	}
	err := json.Unmarshal(raw, &refusal)
	if refusal.Error == nil && status == http.StatusTooManyRequests { // of something on the way to the API, which has not passed it on
		refusal.Error, err = &apiError{Message: http.StatusText(status)}, nil
	}
	if err != nil || refusal.Error == nil && status != http.StatusOK {
		// Not the API, but something on the way to it, which may have passed the request on.
		return fmt.Errorf("whatsapp: HTTP %d without an answer of the API: %w", status, live.ErrUnknown)
	}
	if refusal.Error != nil {
		refusal.Error.Status = status
		return refusal.Error
	}
	return live.DecodeResult(raw, result, "whatsapp: answer of the API")
}

// path returns the path of an object of the API.
func path(id string) string { return "/" + url.PathEscape(id) }
