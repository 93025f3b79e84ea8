package call

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/leat-dev/leat/agent"
)

// maxReply is the maximum size of a JSON response, in bytes.
const maxReply = 4 << 20

// JSON returns a request with a JSON body, or without a body if body is nil. If token isn't empty, it is sent as a bearer token. The
// request continues the trace of ctx (see [agent.TraceParent]).
func JSON(ctx context.Context, method string, to *url.URL, token string, body any) (*http.Request, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("request: %w", err)
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, to.String(), r)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", "Leat")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if tp := agent.TraceParent(ctx); tp != "" {
		req.Header.Set("Traceparent", tp)
	}
	return req, nil
}

// Stream returns a POST request for server-sent events. If key isn't empty, it is sent as the idempotency key, so that an upstream that
// supports it starts a run only once.
func Stream(ctx context.Context, to *url.URL, token, key string, body any) (*http.Request, error) {
	req, err := JSON(ctx, http.MethodPost, to, token, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return req, nil
}

// DoJSON sends the request that [JSON] returns, and decodes the response as [Do] does.
func DoJSON(ctx context.Context, c *http.Client, method string, to *url.URL, token string, body, v any) error {
	req, err := JSON(ctx, method, to, token, body)
	if err != nil {
		return err
	}
	return Do(c, req, v)
}

// Do sends a request and decodes the JSON response into v. If v is nil, the body is ignored. Its errors are of
// type [*Failure]; it doesn't retry. It is for requests with a short response, which may have at most maxReply
// bytes.
func Do(c *http.Client, req *http.Request, v any) error {
	res, err := c.Do(req)
	if err != nil {
		return Unreachable(err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return StatusFailure(res)
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, maxReply))
	if err != nil {
		return Unreachable(err)
	}
	if v == nil {
		return nil
	}
	if err := json.Unmarshal(b, v); err != nil {
		return &Failure{Code: CodeAnswer, Message: "the agent sent an invalid response: " + err.Error()}
	}
	return nil
}
