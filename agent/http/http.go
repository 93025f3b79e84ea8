package http

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/signature"
)

// Config is the configuration of an [Agent].
type Config struct {
	// URL is the address to which turns are posted. Its query may contain a secret.
	URL     string
	Dialect dialect.Dialect
	// Secret is the key that signs requests. If it is empty, they aren't signed.
	Secret string
	// Stop is the URL that is called after a turn was stopped. If it is empty, the agent only sees that the request was canceled.
	Stop string
}

// Agent posts turns to a URL. Any number of turns may run at the same time. They share the client and its idle
// connections.
type Agent struct {
	cfg       Config
	url, stop *url.URL
	client    *http.Client
}

var (
	_ agent.Agent   = (*Agent)(nil)
	_ agent.Pusher  = (*Agent)(nil)
	_ agent.Stopper = (*Agent)(nil)
	_ agent.Checker = (*Agent)(nil)
)

// New returns an agent. It validates the URLs, but doesn't connect.
func New(c Config) (*Agent, error) {
	a := &Agent{cfg: c}
	var err error
	if a.url, err = call.Address("the target", c.URL); err != nil {
		return nil, err
	}
	if c.Stop != "" {
		if a.stop, err = call.Address("stop", c.Stop); err != nil {
			return nil, err
		}
	}
	a.client = call.Client()
	return a, nil
}

// Close closes idle connections. Running turns continue.
func (a *Agent) Close() { a.client.CloseIdleConnections() }

// MayPush implements [agent.Pusher]. The gateway then puts an address and a token for pushing into every input,
// because only the response shows whether the program uses them.
func (a *Agent) MayPush() {}

// Run implements [agent.Agent]. It posts the turn and emits the stream of the response. Attachments are
// inlined, since the program has no credentials to fetch them. The body is encoded once, so all attempts send the
// same bytes.
func (a *Agent) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	in, err := emitter.Inline(ctx, in)
	if err != nil {
		return err
	}
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("input: %w", err)
	}
	return call.Repeat(ctx, emitter, func() error { return a.attempt(ctx, in, body, emitter) })
}

// attempt sends one request and emits its stream. A [*call.Failure] says whether it may be retried. Before a
// retry the stream is dropped, so that the decoder's buffer isn't emitted at the turn's end.
//
// The status 202 means that the program will push the stream. Then the turn continues without this request,
// until the push ends or the limit on silence is exceeded. Any other 2xx has the stream as its body. The
// Content-Type is used only to explain errors, since many programs don't set it.
func (a *Agent) attempt(ctx context.Context, in agent.Input, body []byte, emitter *agent.Emitter) error {
	s := agent.NewStream(emitter, a.cfg.Dialect)
	hasRequest := false
	s.Filter = func(ops []event.Event) ([]event.Event, json.RawMessage, error) {
		hasRequest = hasRequest || slices.ContainsFunc(ops, func(op event.Event) bool { return op.Type == event.TurnWait })
		return ops, nil, nil
	}
	life, stop := call.Life(ctx, s.HasEnded)
	defer stop()
	emitter.CaptureSent(body)
	res, err := a.post(life, a.url, in, body)
	if err != nil {
		s.Drop()
		return call.Unreachable(err)
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusAccepted:
		s.Drop()
		return &agent.PushPending{Dialect: a.cfg.Dialect.Name}
	case res.StatusCode/100 != 2:
		s.Drop()
		return call.StatusFailure(res)
	}
	emitter.Trouble(nil)
	_, err = s.ReadFrom(res.Body)
	switch {
	case err == nil:
		call.Drain(res.Body)
		return nil
	case errors.Is(err, agent.ErrBroken):
		f := call.BrokenStream(s.HasBegun())
		if f.Retry {
			s.Drop()
		}
		return f
	case errors.Is(err, agent.ErrTooLarge):
		return &call.Failure{Code: call.CodeTooLarge, Message: err.Error()}
	case errors.Is(err, dialect.ErrCutShort):
		return &call.Failure{Code: call.CodeCutShort, Message: a.cutMessage(res, s, hasRequest), Retryable: true}
	case errors.Is(err, agent.ErrTurnOver):
		return err
	}
	return a.undecodable(res, err)
}

// post sends a request, signed if the agent has a secret. The signature covers the time and the body, so each attempt
// has another one. The Idempotency-Key is the same in all attempts of a turn, so that a program can recognize a
// repeated one. The caller closes the body of the response.
func (a *Agent) post(ctx context.Context, to *url.URL, in agent.Input, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	h := req.Header
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "text/event-stream, application/x-ndjson")
	h.Set("User-Agent", "Leat")
	h.Set("Idempotency-Key", in.Key)
	if tp := agent.TraceParent(ctx); tp != "" {
		h.Set("Traceparent", tp)
	}
	if a.cfg.Secret != "" {
		h.Set(signature.Header, signature.Sign(a.cfg.Secret, time.Now(), body))
	}
	return a.client.Do(req)
}

// Stop implements [agent.Stopper]. It posts the ids of the turn to the stop URL, if one is configured. A
// program that only watches its connection doesn't need one: the request of a stopped turn is canceled.
func (a *Agent) Stop(ctx context.Context, in agent.Input) error {
	if a.stop == nil {
		return nil
	}
	status, err := a.notify(ctx, "stop", a.stop, in, map[string]string{"conversation": in.Conversation, "turn": in.Turn, "key": in.Key})
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("the stop URL answered %d %s", status, http.StatusText(status))
	}
	return err
}

// notify posts v as JSON to the stop or control URL, as name says, and returns the status of the response, whose body
// is ignored. It makes one attempt, and the caller decides what the status means. The error has no URL, since its
// query may contain a secret.
func (a *Agent) notify(ctx context.Context, name string, to *url.URL, in agent.Input, v any) (status int, err error) {
	body, err := json.Marshal(v)
	if err != nil {
		return 0, err
	}
	res, err := a.post(ctx, to, in, body)
	if err != nil {
		return 0, errors.New("the " + name + " URL can't be reached: " + call.Reason(err))
	}
	return res.StatusCode, res.Body.Close()
}

// Check implements [agent.Checker]. It sends HEAD and accepts any response: the address need not support that method, and a POST would
// start a turn.
func (a *Agent) Check(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, a.url.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "Leat")
	res, err := a.client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // its text has no URL, which may contain secrets
		}
		return fmt.Errorf("%s doesn't respond: %w", a.url.Host, err)
	}
	return res.Body.Close()
}

// cutMessage describes a body that ended before the end of the turn that its dialect requires. hasRequest means
// that the body has a request to the user, which a program often sends before it ends its response by mistake.
// A body without any operation is probably in another format, so the message names its type instead.
func (a *Agent) cutMessage(res *http.Response, s *agent.Stream, hasRequest bool) string {
	if hasRequest {
		return "the agent asked the user and ended its response; to get the answer it must keep the response open, or respond 202 and push the turn"
	}
	if kind := res.Header.Get("Content-Type"); !s.HasBegun() && kind != "" {
		return fmt.Sprintf("the agent's response (%d, %s) contains nothing in the dialect %s", res.StatusCode, kind, a.cfg.Dialect.Name)
	}
	return fmt.Sprintf("the agent's answer ended before the end of the turn that %s requires", a.cfg.Dialect.Name)
}

// undecodable adds the likely cause to a decoder's error: server-sent events in a response that should have lines of JSON.
func (a *Agent) undecodable(res *http.Response, err error) error {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	_, isInvalid := errors.AsType[*dialect.Error](err)
	if isInvalid && kind == "text/event-stream" && a.cfg.Dialect.Framing == dialect.Lines {
		return fmt.Errorf("%w; the response is %s, but the dialect has lines of JSON", err, kind)
	}
	return err
}

// defaultDialect is the default of the option dialect. It has an explicit end, so a stream that was cut off never looks complete.
const defaultDialect = "eliza-actions"

// Kind returns the kind http. The registry has the dialects that its option can name.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "http",
		Summary: "a program behind a URL: gets each turn as JSON and answers with a stream in any dialect",
		Target:  "URL",
		Options: append([]agent.Option{
			{Name: "dialect", Help: "the dialect of the answer", Default: defaultDialect},
			{Name: "stop", Help: "URL that is called after a turn was stopped"},
			{Name: "control", Help: "URL that gets answers to the agent's requests, and messages sent while a turn runs"},
		}, agent.SecretOptions("secret", "key that signs the requests, in the header Leat-Signature", "")...),
		New: func(s agent.Spec) (agent.Agent, error) {
			d, err := dialects.Lookup(cmp.Or(s.Options["dialect"], defaultDialect))
			if err != nil {
				return nil, err
			}
			c := Config{URL: s.Target, Dialect: d, Stop: s.Options["stop"]}
			if c.Secret, err = s.Secret("secret"); err != nil {
				return nil, err
			}
			if control := s.Options["control"]; control != "" {
				return newControlled(c, control)
			}
			return New(c)
		},
	}
}
