package speech

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/voice"
)

const (
	// requestLimit limits a request to its last byte. Readers take audio at the speed at which it is heard, so it exceeds the longest
	// utterance by far.
	requestLimit = 30 * time.Minute
	// maxBody limits an answer in bytes: 20 minutes at 48,000 Hz.
	maxBody = 128 << 20
)

// client sends requests to one service. It is safe for concurrent use.
type client struct {
	engine string
	// base has no slash at the end.
	base string
	// key is empty for servers that need none.
	key string
	// stall limits the wait for the header of a response and for each piece of its audio.
	stall time.Duration
	http  *http.Client
}

// newClient checks the address and the key of options.
func newClient(o Options) (*client, error) {
	k := kindOf(o.Engine)
	if o.Key == "" && o.URL == "" {
		return nil, fmt.Errorf("speech: %s: the API key is missing; %s usually has it", o.Engine, k.KeyVariable)
	}
	if strings.ContainsFunc(o.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fmt.Errorf("speech: %s: the API key contains a character that keys don't have", o.Engine)
	}
	base := cmp.Or(o.URL, k.URL)
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("speech: %s: invalid URL; use one such as %s", o.Engine, k.URL) // it may contain a password
	}
	return &client{
		engine: o.Engine, base: strings.TrimRight(base, "/"), key: o.Key, stall: o.stall,
		http: outbound.New(outbound.Options{AllowPrivate: o.URL != "", Timeout: requestLimit, MaxBody: maxBody}),
	}, nil
}

// Close ends idle connections.
func (c *client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// kindOf returns the kind of a name that New has checked.
func kindOf(name string) Kind {
	for _, k := range Kinds() {
		if k.Name == name {
			return k
		}
	}
	return Kind{}
}

// speak posts a request and returns the audio of the response. A header whose value is empty isn't sent.
func (c *client) speak(ctx context.Context, path string, header map[string]string, request any) (io.ReadCloser, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("speech: %s: %w", c.engine, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	resp, err := c.post(ctx, cancel, path, header, body)
	if err != nil {
		cancel(err)
		return nil, err
	}
	src := &source{ctx: ctx, cancel: cancel, body: resp.Body, stall: c.stall}
	return newStream(c.engine, src, resp.Header.Get("Content-Type")), nil
}

// post returns a response with status 200. An error is a Failure or the cause of ctx.
func (c *client) post(ctx context.Context, cancel context.CancelCauseFunc, path string, header map[string]string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("speech: %s: invalid request", c.engine) // the error contains the URL
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	// The client's own timeout is for the whole answer. This one is for its beginning.
	timer := time.AfterFunc(c.stall, func() { cancel(errStalled) })
	resp, err := c.http.Do(req)
	timer.Stop()
	if err != nil {
		cause := context.Cause(ctx)
		if cause != nil && !errors.Is(cause, errStalled) {
			return nil, cause
		}
		return nil, &voice.Failure{Service: "speech", Engine: c.engine, Reason: voice.Unavailable, Err: cmp.Or(cause, outbound.Reason(err))}
	}
	if resp.StatusCode != http.StatusOK {
		err = voice.Refusal("speech", c.engine, c.key, resp)
		_ = resp.Body.Close()
		return nil, err
	}
	// Over HTTP/1.0 the end of the connection is the only end of such an answer, also if the server crashed.
	if resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 && resp.ProtoMajor < 2 {
		_ = resp.Body.Close()
		return nil, &voice.Failure{Service: "speech", Engine: c.engine, Reason: voice.Format, Status: resp.StatusCode, Detail: "the response has neither a length nor chunks, so its end looks like an interruption"}
	}
	return resp, nil
}

// bearer returns the usual authorization for a key.
func bearer(key string) string {
	if key == "" {
		return ""
	}
	return "Bearer " + key
}

// language returns the primary subtag of a language, in lower case.
func language(u voice.Utterance, o Options) string {
	primary, _, _ := strings.Cut(strings.ToLower(cmp.Or(u.Language, o.Language)), "-")
	return primary
}
