package call

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/leat-dev/leat/agent"
)

// maxReply bounds an answer that is no stream, in bytes.
const maxReply = 4 << 20

// Token is a bearer token; the zero value is none.
type Token string

// TokenOptions are the options by which a kind is given a token.
func TokenOptions() []agent.Option {
	return []agent.Option{
		{Name: "token_env", Help: "environment variable that holds the token of the server"},
		{Name: "token_file", Help: "file that holds it"},
	}
}

// TokenOf reads the token that a spec names.
func TokenOf(s agent.Spec) (Token, error) {
	env, file := s.Options["token_env"], s.Options["token_file"]
	if env == "" {
		secret, err := Secret("", file)
		if err != nil {
			return "", fmt.Errorf("token_file: %w", err)
		}
		return Token(secret), nil
	}
	if file != "" {
		return "", fmt.Errorf("token_env and token_file are both given")
	}
	v := strings.TrimSpace(os.Getenv(env))
	if v == "" {
		return "", fmt.Errorf("token_env: the environment variable %s is not set", env)
	}
	return Token(v), nil
}

// JSON makes a request with a body of JSON; nil is none.
func JSON(ctx context.Context, method string, to *url.URL, t Token, body any) (*http.Request, error) {
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
	if t != "" {
		req.Header.Set("Authorization", "Bearer "+string(t))
	}
	if tp := agent.TraceParent(ctx); tp != "" {
		req.Header.Set("Traceparent", tp)
	}
	return req, nil
}

// Stream is JSON for a request that is answered by server-sent events.
func Stream(ctx context.Context, to *url.URL, t Token, key string, body any) (*http.Request, error) {
	req, err := JSON(ctx, http.MethodPost, to, t, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return req, nil
}

// Do makes a request and reads its answer, which is JSON, into v; nil: what it says does not matter. What goes wrong is a
// [*Failure].
func Do(c *http.Client, req *http.Request, v any) error {
	res, err := c.Do(req)
	if err != nil {
		return Unreachable(err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return Refused(res)
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, maxReply))
	if err != nil {
		return Unreachable(err)
	}
	if v == nil {
		return nil
	}
	if err := json.Unmarshal(b, v); err != nil {
		return &Failure{Code: CodeAnswer, Message: "the agent's answer can't be read: " + err.Error()}
	}
	return nil
}
