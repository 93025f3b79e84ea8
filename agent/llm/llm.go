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
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/dialect"
)

// goodbye is how long a provider whose stream has ended may take to end its body too.
const goodbye = 2 * time.Second

// Config says which model answers, and how.
type config struct {
	Model string
	// BaseURL is where the API is; empty is the provider's own address.
	BaseURL string
	// Key is the API key. If it is empty, the provider's own environment variable is read for each call to the provider's own address;
	// calls to other addresses have no key.
	Key     string
	KeyFrom string // where Key comes from, for error texts
	System  string // the prompt
	// MaxTokens bounds an answer; 0 is the provider's default.
	MaxTokens   int
	Temperature *float64
	// Thinking says how much the model may think, in the provider's own words; empty is its default.
	Thinking string
	// HistoryBytes bounds the texts of the history; 0 is all that the gateway gives.
	HistoryBytes int
	// Background runs responses so that they go on without their connection; of the Responses API alone.
	Background bool
}

// Agent is a model. Several turns may run at the same time.
type modelAgent struct {
	cfg    config
	api    api
	name   string // of the provider, for readers: no address
	place  string // of the provider, for operators
	base   string
	env    string // the environment variable with the key, if cfg.Key is empty; "" if there is none
	client *http.Client

	mu          sync.Mutex
	responseIDs map[string]string // of turns in the background: the ids of their responses
}

// api is what one provider's API has of its own.
type api struct {
	title   string
	base    string // its own address
	env     string // the variable that holds its key
	needKey bool   // at its own address
	dialect func() dialect.Dialect
	// path of a call that streams.
	path    func(c *config) string
	auth    func(h http.Header, key string)
	headers map[string]string // of every call
	// body is what is sent.
	body func(a *modelAgent, turns []turn) any
	// model is where it tells of a model; where it lists them all, listed is set.
	model  func(c *config) (method, path string, body any)
	isList bool
	list   string // path of the list of models
	// reads says which attachments it takes beside pictures and texts.
	reads func(mime string) bool
	// check refuses options that don't go together.
	check func(c *config) error
}

var (
	_ agent.Agent   = (*modelAgent)(nil)
	_ agent.Checker = (*modelAgent)(nil)
)

func newAgent(p api, c config) (*modelAgent, error) {
	if p.check != nil {
		if err := p.check(&c); err != nil {
			return nil, err
		}
	}
	a := &modelAgent{cfg: c, api: p, name: p.title, place: p.title, base: p.base, responseIDs: map[string]string{}}
	switch {
	case c.BaseURL != "":
		u, err := url.Parse(c.BaseURL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return nil, errors.New("base_url is no address of an API; write it as http://127.0.0.1:11434/v1, the key apart from it")
		}
		a.base, a.name, a.place = strings.TrimRight(c.BaseURL, "/"), "the provider", u.Host
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

// Close closes the connections that are kept for further turns. Turns that run go on.
func (a *modelAgent) Close() { a.client.CloseIdleConnections() }

func (a *modelAgent) key() string {
	if a.cfg.Key != "" || a.env == "" {
		return a.cfg.Key
	}
	return strings.TrimSpace(os.Getenv(a.env))
}

// keyed returns an error if the provider needs a key and there is none.
func (a *modelAgent) checkKey() error {
	if a.key() != "" || a.env == "" || !a.api.needKey {
		return nil
	}
	return &agent.Error{Code: codeKeyMissing, Message: "the key for " + a.name + " is missing", Detail: "set " + a.env}
}

// Run makes the call and hands the answer's stream on.
func (a *modelAgent) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	return a.run(ctx, in, nil, emitter)
}

// run answers the turn; from is where a response stands that is followed, nil at the beginning.
func (a *modelAgent) run(ctx context.Context, in agent.Input, from *backgroundState, emitter *agent.Emitter) error {
	if err := a.checkKey(); err != nil {
		return err
	}
	t := &attempt{a: a, in: in, emitter: emitter, from: from}
	if from == nil {
		turns, err := a.turns(ctx, in, emitter)
		if err != nil {
			return err
		}
		t.request = a.api.body(a, turns)
		if t.body, err = json.Marshal(t.request); err != nil {
			return fmt.Errorf("request: %w", err)
		}
	}
	var err error
	if from != nil {
		err = t.restoreApprovals()
	}
	if err == nil && len(t.approvals) == 0 {
		err = call.Repeat(ctx, emitter, func() error { return t.call(ctx) })
	}
	for err == nil && len(t.approvals) > 0 {
		if err = t.answer(ctx); err == nil {
			err = call.Repeat(ctx, emitter, func() error { return t.call(ctx) })
		}
	}
	if err == nil || ctx.Err() == nil { // else Stop has to end it
		a.forget(in.Turn)
	}
	return err
}

// do sends a request. body may be nil.
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
