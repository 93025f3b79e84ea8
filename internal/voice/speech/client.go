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

// service speaks with one request of an HTTP service for each utterance. It is safe for concurrent use.
type service struct {
	options Options
	http    *http.Client
	// request returns the request for an utterance.
	request func(Options, voice.Utterance) request
}

var _ voice.Engine = (*service)(nil)

// request is a request to a service. A header whose value is empty isn't sent.
type request struct {
	path   string
	header map[string]string
	body   any
}

// newService returns what makes an engine from checked options.
func newService(request func(Options, voice.Utterance) request) func(Options) (voice.Engine, error) {
	return func(o Options) (voice.Engine, error) {
		client := outbound.New(outbound.Options{AllowPrivate: o.URL != "", Timeout: requestLimit, MaxBody: maxBody})
		return &service{options: o, http: client, request: request}, nil
	}
}

// Close ends idle connections.
func (s *service) Close() error {
	s.http.CloseIdleConnections()
	return nil
}

// Speak implements [voice.Engine]. It posts a request and returns the audio of the response.
func (s *service) Speak(ctx context.Context, u voice.Utterance) (io.ReadCloser, error) {
	r := s.request(s.options, u)
	body, err := json.Marshal(r.body)
	if err != nil {
		return nil, fmt.Errorf("speech: %s: %w", s.options.Engine, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	resp, err := s.post(ctx, cancel, r.path, r.header, body)
	if err != nil {
		cancel(err)
		return nil, err
	}
	src := &source{ctx: ctx, cancel: cancel, body: resp.Body, stall: s.options.stall}
	return newStream(s.options.Engine, src, resp.Header.Get("Content-Type")), nil
}

// post returns a response with status 200. An error is a Failure or the cause of ctx.
func (s *service) post(ctx context.Context, cancel context.CancelCauseFunc, path string, header map[string]string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.options.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("speech: %s: invalid request", s.options.Engine) // the error contains the URL
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	// The client's own timeout is for the whole answer. This one is for its beginning.
	timer := time.AfterFunc(s.options.stall, func() { cancel(errStalled) })
	resp, err := s.http.Do(req)
	timer.Stop()
	if err != nil {
		cause := context.Cause(ctx)
		if cause != nil && !errors.Is(cause, errStalled) {
			return nil, cause
		}
		return nil, &voice.Failure{Service: "speech", Engine: s.options.Engine, Reason: voice.Unavailable, Err: cmp.Or(cause, outbound.Reason(err))}
	}
	if resp.StatusCode != http.StatusOK {
		err = voice.Refusal("speech", s.options.Engine, s.options.Key, resp)
		_ = resp.Body.Close()
		return nil, err
	}
	// Over HTTP/1.0 the end of the connection is the only end of such an answer, also if the server crashed.
	if resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 && resp.ProtoMajor < 2 {
		_ = resp.Body.Close()
		return nil, &voice.Failure{Service: "speech", Engine: s.options.Engine, Reason: voice.Format, Status: resp.StatusCode, Detail: "the response has neither a length nor chunks, so its end looks like an interruption"}
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
