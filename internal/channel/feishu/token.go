package feishu

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/channel/live"
)

// tokenMargin is how long before its end an access token is renewed.
const tokenMargin = time.Minute

// tokenSource gives access tokens. One caller fetches a token, and the others wait for it.
type tokenSource struct {
	client     *client
	id, secret string

	lock  chan struct{} // protects the fields below; a channel, so that a wait ends with its context
	token string
	end   time.Time
}

// get returns a valid token.
func (s *tokenSource) get(ctx context.Context) (string, error) {
	select {
	case s.lock <- struct{}{}:
		defer func() { <-s.lock }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if s.token != "" && time.Now().Before(s.end) {
		return s.token, nil
	}
	params, err := marshal(map[string]string{"app_id": s.id, "app_secret": s.secret})
	if err != nil {
		return "", err
	}
	response, err := s.client.do(ctx, request{
		method: http.MethodPost, path: "/auth/v3/tenant_access_token/internal", body: params, contentType: "application/json; charset=utf-8",
	}, "")
	if err != nil {
		return "", unsent(err)
	}
	defer response.Body.Close()
	var result struct {
		Token  string `json:"tenant_access_token"`
		Expire int    `json:"expire"` // seconds
	}
	if err := s.client.decode(ctx, response, &result); err != nil {
		return "", unsent(err)
	}
	if result.Token == "" {
		return "", errors.New("feishu: an answer has no access token")
	}
	s.token, s.end = result.Token, time.Now().Add(time.Duration(result.Expire)*time.Second-tokenMargin)
	return s.token, nil
}

// unsent returns the error of a request for a token: the request that needs the token was not sent.
func unsent(err error) error {
	if errors.Is(err, live.ErrUnknown) {
		return live.ErrUnsent
	}
	return err
}

// drop forgets a token that the platform has refused, unless ctx ends before.
func (s *tokenSource) drop(ctx context.Context, token string) {
	select {
	case s.lock <- struct{}{}:
		defer func() { <-s.lock }()
	case <-ctx.Done():
		return
	}
	if s.token == token {
		s.token = ""
	}
}
