package matrix

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// requestLimit limits a request other than a sync. After it the outcome is unknown.
	requestLimit = 30 * time.Second
	// transferLimit limits the transfer of one file.
	transferLimit = 5 * time.Minute
	// maxAnswer limits the body of an answer, in bytes. The largest is the first sync of an account with many rooms.
	maxAnswer = 64 << 20
)

// client calls the client-server API of a homeserver. It may be used concurrently.
type client struct {
	base string // without a slash at its end
	// token is sent to the homeserver only, in a header.
	token string
	// http has no shorter limit than a sync needs. Each call sets its limit by a context.
	http  *http.Client
	files *http.Client // for transfers of files, which take longer
}

// newClient returns a client. Many homeservers are in private networks, and the operator chooses the address.
func newClient(base, token string) *client {
	return &client{
		base: base, token: token,
		http:  outbound.New(outbound.Options{AllowPrivate: true, Timeout: syncTime + requestLimit, MaxBody: maxAnswer}),
		files: outbound.New(outbound.Options{AllowPrivate: true, Timeout: transferLimit, MaxBody: maxDownload}),
	}
}

// path returns a path of the API, in which each %s is replaced by an escaped argument.
func path(format string, args ...string) string {
	escaped := make([]any, len(args))
	for i, a := range args {
		escaped[i] = url.PathEscape(a)
	}
	return "/_matrix/" + fmt.Sprintf(format, escaped...)
}

// call makes a request and decodes the answer into result, unless that is nil. params is the JSON body, or nil. An error is an
// *apiError, wraps live.ErrUnsent or live.ErrUnknown, or is that of ctx.
func (c *client) call(ctx context.Context, limit time.Duration, method, path string, params, result any) error {
	var body io.Reader = http.NoBody
	if params != nil {
		raw, err := json.Marshal(params)
		if err != nil {
			return fmt.Errorf("matrix: %s: %w", route(path), err)
		}
		body = bytes.NewReader(raw)
	}
	return c.do(ctx, limit, c.http, method, path, "application/json", body, result)
}

// do makes a request whose answer is JSON.
func (c *client) do(
	ctx context.Context, limit time.Duration, transport *http.Client, method, path, contentType string, body io.Reader, result any,
) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := c.request(limited, method, path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", contentType)
	response, raw, err := live.Exchange(ctx, transport, r)
	if err != nil {
		return fmt.Errorf("matrix: %s: %w", route(path), err)
	}
	if response.StatusCode != http.StatusOK {
		return refusal(path, response, raw)
	}
	return live.DecodeResult(raw, result, "matrix: answer of "+route(path))
}

// request returns a request with the access token.
func (c *client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("matrix: %s: the address of the homeserver is invalid", route(path))
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	return r, nil
}

// refusal returns the error of a response that is not a success. A homeserver says how long to wait in the body or in a header; the
// longer of the two counts.
func refusal(path string, response *http.Response, raw []byte) error {
	var body struct {
		Code       string `json:"errcode"`
		Text       string `json:"error"`
		RetryAfter int64  `json:"retry_after_ms"`
	}
	// Every refusal of a homeserver has an errcode.
	if json.Unmarshal(raw, &body) != nil || body.Code == "" {
		if response.StatusCode == http.StatusTooManyRequests {
			body.Code = codeLimited // of a proxy in front of the homeserver
		} else {
			// Not the homeserver, but something in front of it, which may have passed the request on.
			return fmt.Errorf("matrix: %s: HTTP %d without an answer of the homeserver: %w", route(path), response.StatusCode, live.ErrUnknown)
		}
	}
	e := &apiError{Route: route(path), Status: response.StatusCode, Code: body.Code, Text: body.Text}
	if e.Code == codeLimited {
		e.RetryAfter = max(time.Duration(body.RetryAfter)*time.Millisecond, retry.After(response.Header.Get("Retry-After"), time.Now()))
		e.RetryAfter = cmp.Or(e.RetryAfter, slowGap)
	}
	return e
}

// route returns what a request does, for errors: the words of its path without the ids.
func route(path string) string {
	path, _, _ = strings.Cut(path, "?")
	words := []string{}
	for word := range strings.SplitSeq(strings.TrimPrefix(path, "/_matrix/"), "/") {
		if word != "" && !strings.ContainsAny(word, "%@!$:.") && len(word) < 20 && word != "client" && word != "v3" && word != "v1" {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}
