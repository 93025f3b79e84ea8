package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// requestLimit limits a request other than a poll. After it the outcome is unknown.
	requestLimit = 20 * time.Second
	// maxAnswer limits the body of an answer, in bytes. The largest is a page of updates.
	maxAnswer = 8 << 20
)

// client calls the Bot API (core.telegram.org/bots/api). It may be used concurrently.
type client struct {
	base  string // without a slash at its end
	token string
	http  *http.Client
	files *http.Client // for transfers of files, which take longer and are larger
}

// newClient returns a client. The timeout has to be longer than a poll, and single calls limit themselves. Files have another limit
// of size.
func newClient(base, token string, allowPrivate bool) *client {
	return &client{
		base: base, token: token,
		http:  outbound.New(outbound.Options{AllowPrivate: allowPrivate, Timeout: pollTime + requestLimit, MaxBody: maxAnswer}),
		files: outbound.New(outbound.Options{AllowPrivate: allowPrivate, Timeout: transferLimit, MaxBody: maxDownload}),
	}
}

// answer is the form of every response.
type answer struct {
	// OK distinguishes results from refusals. The HTTP status does too, but a proxy may change that.
	OK     bool            `json:"ok"`
	Result json.RawMessage `json:"result"`
	Code   int             `json:"error_code"`
	// Description is the only place in which the reason of a 400 appears.
	Description string `json:"description"`
	Parameters  struct {
		RetryAfter float64 `json:"retry_after"` // seconds
		// MigrateToChatID is set when a group has become a supergroup, which has another id.
		MigrateToChatID int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// call calls a method and decodes its result into result, unless that is nil. An error is an *apiError, wraps live.ErrUnsent or
// live.ErrUnknown, or is that of ctx.
func (c *client) call(ctx context.Context, limit time.Duration, method string, params, result any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("telegram: %s: %w", method, err)
	}
	return c.post(ctx, limit, c.http, method, "application/json", body, result)
}

// post sends a request. The address contains the token, so errors of the HTTP client are returned without it.
func (c *client) post(ctx context.Context, limit time.Duration, transport *http.Client, method, contentType string, body []byte, result any) error {
	request, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := http.NewRequestWithContext(request, http.MethodPost, c.base+"/bot"+c.token+"/"+method, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("telegram: %s: the address of the API is invalid", method)
	}
	r.Header.Set("Content-Type", contentType)
	response, raw, err := live.Exchange(ctx, transport, r)
	if err != nil {
		return fmt.Errorf("telegram: %s: %w", method, err)
	}
	return decode(method, response.StatusCode, raw, result)
}

// decode decodes a response of the Bot API.
func decode(method string, status int, raw []byte, result any) error {
	var a answer
	if json.Unmarshal(raw, &a) != nil || !a.OK && a.Code == 0 {
		// Not the Bot API, but something on the way to it, which may have passed the request on.
		return fmt.Errorf("telegram: %s: HTTP %d without an answer of the Bot API: %w", method, status, live.ErrUnknown)
	}
	if !a.OK {
		return &apiError{
			Method: method, Code: a.Code, Description: a.Description, MigratedTo: a.Parameters.MigrateToChatID,
			RetryAfter: time.Duration(a.Parameters.RetryAfter * float64(time.Second)),
		}
	}
	return live.DecodeResult(a.Result, result, "telegram: result of "+method)
}
