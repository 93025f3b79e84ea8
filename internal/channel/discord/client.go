package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// requestLimit limits a request. After it the outcome is unknown.
	requestLimit = 20 * time.Second
	// maxAnswer limits the body of an answer, in bytes. The largest is a list of messages.
	maxAnswer = 8 << 20
	// dialLimit limits the TCP connection and the TLS handshake of the gateway, each.
	dialLimit = 10 * time.Second
	// userAgent has the form that the platform demands; it refuses others.
	userAgent = "DiscordBot (https://github.com/leat-dev/leat, 1)"
)

// client calls the API. It may be used concurrently. It has three HTTP clients, because a limit of time or size that suits messages
// is wrong for files and for a connection that stays open.
type client struct {
	base string // without a slash at its end
	// token is the bot's. It is sent to the API and the gateway only, never to the host of a file.
	token string
	// allowPrivate permits addresses in private networks and connections without TLS, for a server that the operator has named.
	allowPrivate bool
	http         *http.Client
	files        *http.Client // for transfers of files, which take longer and are larger
	socket       *http.Client // for the gateway
	// limits is asked before each request and learns from each answer.
	limits limiter
}

// newClient returns a client. Only a server that the operator has named may be in a private network.
func newClient(base, token string, allowPrivate bool) *client {
	return &client{
		base: base, token: token, allowPrivate: allowPrivate,
		http:   outbound.New(outbound.Options{AllowPrivate: allowPrivate, Timeout: requestLimit, MaxBody: maxAnswer}),
		files:  outbound.New(outbound.Options{AllowPrivate: allowPrivate, Timeout: transferLimit, MaxBody: maxDownload + 1}),
		socket: outbound.NewForSockets(allowPrivate, dialLimit),
		limits: limiter{buckets: map[string]string{}, windows: map[string]window{}},
	}
}

// endpoint is a method and a path. The major parameter is a part of the name of its limit. The template is the path with
// placeholders. Limits and errors use it, because a path contains ids and perhaps a token.
type endpoint struct {
	method, template, path, major string
}

// at returns an endpoint. Each %s of the template is replaced by an id; the first one is the major parameter.
func at(method, template string, ids ...string) endpoint {
	e := endpoint{method: method, template: template}
	escaped := make([]any, len(ids))
	for i, id := range ids {
		escaped[i] = url.PathEscape(id)
	}
	if len(ids) > 0 {
		e.major = ids[0]
	}
	e.path = fmt.Sprintf(template, escaped...)
	return e
}

// route names an endpoint in errors. The path may contain the token of an interaction.
func (e endpoint) route() string { return e.method + " " + e.template }

// isInteraction reports whether the endpoint belongs to an interaction. Those don't count against the global limit.
func (e endpoint) isInteraction() bool {
	return strings.HasPrefix(e.template, "/interactions/") || strings.HasPrefix(e.template, "/webhooks/")
}

// call makes a request and decodes the answer into result, unless that is nil. An error is an *apiError, wraps live.ErrUnsent or
// live.ErrUnknown, or is that of ctx.
func (c *client) call(ctx context.Context, e endpoint, body, result any) error {
	if body == nil {
		return c.send(ctx, e, c.http, requestLimit, "", nil, result)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("discord: %s: %w", e.route(), err)
	}
	return c.send(ctx, e, c.http, requestLimit, "application/json", raw, result)
}

// send makes a request, unless its limit is reached: then the error is the one that the server would return. The answer's headers are
// recorded even if the request was refused: they say how long the refusal lasts.
func (c *client) send(
	ctx context.Context, e endpoint, transport *http.Client, limit time.Duration, contentType string, body []byte, result any,
) error {
	if wait, isGlobal := c.limits.take(e); wait > 0 {
		return &apiError{Route: e.route(), Status: http.StatusTooManyRequests, Message: "the limit is reached", RetryAfter: wait, Global: isGlobal}
	}
	request, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := http.NewRequestWithContext(request, e.method, c.base+"/api/v10"+e.path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("discord: %s: the address of the API is invalid", e.route())
	}
	r.Header.Set("User-Agent", userAgent)
	// Routes of interactions don't need it, but accept it.
	r.Header.Set("Authorization", "Bot "+c.token)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	response, raw, err := live.Exchange(ctx, transport, r)
	if err != nil {
		return fmt.Errorf("discord: %s: %w", e.route(), err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		err = decodeError(e.route(), response.StatusCode, response.Header, raw)
	}
	c.limits.update(e, response.Header, refusal(err))
	if err != nil || result == nil {
		return err
	}
	if err := json.Unmarshal(raw, result); err != nil {
		return fmt.Errorf("discord: result of %s: %w: %w", e.route(), live.ErrUnknown, err)
	}
	return nil
}
