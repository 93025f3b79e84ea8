package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/dialect"
)

// config describes the model and how to call it.
type config struct {
	Model string
	// BaseURL is the address of the API. If it is empty, it is the provider's own.
	BaseURL string
	// Key is the API key. If it is empty, the provider's own environment variable is read for each call to the provider's own address;
	// calls to other addresses have no key.
	Key     string
	KeyFrom string // where Key comes from, for error texts
	System  string // system prompt; may be empty
	// MaxTokens limits an answer. If it is 0, the provider's default applies.
	MaxTokens   int
	Temperature *float64
	// Thinking limits how much the model may think, in the provider's own terms. If it is empty, the model's default applies.
	Thinking string
	// HistoryBytes limits the texts of the history. If it is 0, the whole history that the gateway passes is sent.
	HistoryBytes int
	// Background runs responses that continue without their connection. Only the Responses API supports it.
	Background bool
}

// modelAgent is a model at a provider. All methods are safe for concurrent use. The fields except responseIDs
// are never changed after newAgent.
type modelAgent struct {
	cfg    config
	api    api
	name   string // the provider in errors for readers, without an address
	place  string // the provider in errors for operators: its name or host
	base   string
	env    string // the environment variable with the key, if cfg.Key is empty; may be empty itself
	client *http.Client

	responseIDs sync.Map // ids of the background responses of running turns (string), by turn; for Stop and Probe
}

// api describes what is specific to one provider's API. Its functions are called by several turns at the same
// time, so they must not keep state. To add a provider, write an api and its request types in a file, and add
// it to providers.
type api struct {
	title   string
	base    string // the provider's own address
	env     string // the environment variable with the key
	needKey bool   // the provider's own address requires a key
	dialect func() dialect.Dialect
	// path returns the path of a streaming call.
	path    func(c *config) string
	auth    func(h http.Header, key string)
	headers map[string]string // sent with every call
	// body returns the body of a streaming call, to be encoded as JSON. tools are those of the client.
	body func(a *modelAgent, turns []turn, tools []agent.ClientTool) any
	// reply returns an empty reply. Its method next gets requests that body or next has returned.
	reply func() reply
	// toolName matches the names of tools that the provider accepts. nil means that it accepts any.
	toolName *regexp.Regexp
	// model returns the request that checks whether the model exists. If isList is set, its response lists all models.
	model  func(c *config) (method, path string, body any)
	isList bool
	list   string // path of the list of models
	// reads reports whether the API accepts attachments of a type other than images and texts. nil means it accepts none.
	reads func(mime string) bool
	// check returns an error for invalid options. It may normalize them.
	check func(c *config) error
}

var (
	_ agent.Agent   = (*modelAgent)(nil)
	_ agent.Checker = (*modelAgent)(nil)
)

// newAgent checks the options and returns an agent. Only calls to the provider's own address get the key from
// its environment variable, and only they name the provider in errors. For any other address, errors for
// readers say "the provider", and operators get the host.
func newAgent(p api, c config) (*modelAgent, error) {
	if err := p.check(&c); err != nil {
		return nil, err
	}
	a := &modelAgent{cfg: c, api: p, name: p.title, place: p.title, base: p.base}
	switch {
	case c.BaseURL != "":
		// Credentials, a query or a fragment in the address would end up in errors and logs, or be lost when a path is appended.
		u, err := url.Parse(c.BaseURL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return nil, errors.New("base_url is not the address of an API; write it as http://127.0.0.1:11434/v1, without the key")
		}
		a.base, a.name, a.place = strings.TrimRight(c.BaseURL, "/"), "the provider", u.Host
		// The environment's key belongs to the provider, so no other host may get it. Other hosts get a key only from the options.
		if official, err := url.Parse(p.base); err == nil && official.Host == u.Host {
			a.name, a.place = p.title, p.title
			a.env = p.env
		}
	default:
		a.env = p.env
	}
	a.client = call.Client()
	return a, nil
}

// Close closes idle connections. Running turns continue.
func (a *modelAgent) Close() { a.client.CloseIdleConnections() }

// key returns the API key, or "". It reads the environment for each call, so that a key can be replaced without a restart of
// the agent.
func (a *modelAgent) key() string {
	if a.cfg.Key != "" || a.env == "" {
		return a.cfg.Key
	}
	return strings.TrimSpace(os.Getenv(a.env))
}

// checkKey returns an error if the provider requires a key and none is configured.
func (a *modelAgent) checkKey() error {
	if a.key() != "" || a.env == "" || !a.api.needKey {
		return nil
	}
	return &agent.Error{Code: codeKeyMissing, Message: "the key for " + a.name + " is missing", Detail: "set " + a.env}
}

// Run implements [agent.Agent].
func (a *modelAgent) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	return a.run(ctx, in, nil, emitter)
}

// run answers a turn. from is the position in a background response to resume, or nil for a new turn.
//
// A resumed turn has no request body: the conversation was sent before the restart. So a resumed response that
// has failed can't be requested again, and its approvals and calls can be answered only because the provider has
// stored the response.
func (a *modelAgent) run(ctx context.Context, in agent.Input, from *backgroundState, emitter *agent.Emitter) error {
	if err := a.checkKey(); err != nil {
		return err
	}
	t := &attempt{a: a, in: in, emitter: emitter, from: from}
	if from == nil {
		if err := a.checkTools(in.Tools); err != nil {
			return err
		}
		turns, err := a.turns(ctx, in, emitter)
		if err != nil {
			return err
		}
		t.request = a.api.body(a, turns, in.Tools)
		if t.body, err = json.Marshal(t.request); err != nil {
			return fmt.Errorf("request: %w", err)
		}
	}
	var err error
	if from != nil {
		err = t.restore()
	}
	if err == nil && !t.waits() {
		err = call.Repeat(ctx, emitter, func() error { return t.call(ctx) })
	}
	// A response that asks for approvals or calls tools ends its stream. Each round answers them with another request, whose response may
	// ask again.
	for err == nil && t.waits() {
		if err = t.answer(ctx); err == nil {
			err = call.Repeat(ctx, emitter, func() error { return t.call(ctx) })
		}
	}
	if err == nil || ctx.Err() == nil { // if the turn was stopped, Stop needs the id to cancel the response
		a.responseIDs.Delete(in.Turn)
	}
	return err
}

// fetch sends a request without a stream and decodes the JSON of its response, at most limit bytes, into v. If v is nil, the body is
// ignored. mismatch is the start of the error for a response that isn't such JSON.
func (a *modelAgent) fetch(ctx context.Context, method, path string, body []byte, v any, mismatch string) error {
	res, err := a.do(ctx, method, path, "", body)
	if err != nil {
		return a.unreachable(err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return a.statusFailure(res)
	}
	if v == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxReply)).Decode(v); err != nil {
		return fmt.Errorf("%s: %w", mismatch, err)
	}
	return nil
}

// do sends a request. body may be nil. A request with an idempotency key streams its response. The caller
// closes the response's body. The key is only in the header that the API's auth sets.
func (a *modelAgent) do(ctx context.Context, method, path, idempotency string, body []byte) (*http.Response, error) {
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, r)
	if err != nil {
		return nil, err
	}
	h := req.Header
	if body != nil {
		h.Set("Content-Type", "application/json")
	}
	h.Set("User-Agent", "Leat")
	if idempotency != "" {
		h.Set("Accept", "text/event-stream, application/x-ndjson")
		h.Set("Idempotency-Key", idempotency)
	}
	// The provider's spans, if it has any, become children of the turn's.
	if tp := agent.TraceParent(ctx); tp != "" {
		h.Set("Traceparent", tp)
	}
	for name, value := range a.api.headers {
		h.Set(name, value)
	}
	if key := a.key(); key != "" {
		a.api.auth(h, key)
	}
	return a.client.Do(req)
}
