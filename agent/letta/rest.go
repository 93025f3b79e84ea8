package letta

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
)

// restAgent is an agent on the V1 API.
type restAgent struct {
	base
	client *http.Client

	mu          sync.Mutex
	activeTurns map[string]*turn  // by turn
	turnByRun   map[string]string // turns by run
	logger      *slog.Logger
}

var (
	_ agent.Agent   = (*restAgent)(nil)
	_ agent.Tied    = (*restAgent)(nil)
	_ agent.Checker = (*restAgent)(nil)
	_ agent.Prober  = (*restAgent)(nil)
	_ agent.Keeper  = (*restAgent)(nil)
)

func newREST(b base) *restAgent {
	u := *b.url
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1")
	u.RawQuery, u.Fragment = "", ""
	b.url = &u
	return &restAgent{base: b, activeTurns: map[string]*turn{}, turnByRun: map[string]string{}, logger: slog.New(slog.DiscardHandler), client: &http.Client{
		Transport: call.Decoding{Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: b.times.dial}).DialContext,
			TLSHandshakeTimeout: b.times.dial,
			ForceAttemptHTTP2:   true,
			MaxIdleConns:        64, MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second,
			DisableCompression: true, // a compressor holds text back
		}},
		// The token is for one address, not for another.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Start implements [agent.Keeper].
func (r *restAgent) Start(log *slog.Logger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logger = log
}

func (r *restAgent) log() *slog.Logger {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.logger
}

// Close closes the connections that are kept for further turns. Turns that run go on.
func (r *restAgent) Close() { r.client.CloseIdleConnections() }

// Tied implements [agent.Tied]: only a background run goes on when nobody reads it.
func (r *restAgent) Tied() bool { return !r.cfg.Background }

// query is for the paths of a conversation: that of the agent itself is found by the agent's id.
func (s session) query() url.Values {
	if s.Conversation == ownConversation {
		return url.Values{"agent_id": {s.Agent}}
	}
	return nil
}

// call makes a request; its answer is a success, and the caller's to close.
func (r *restAgent) call(ctx context.Context, method string, query url.Values, body any, path ...string) (*http.Response, error) {
	u := r.url.JoinPath(append([]string{"v1"}, path...)...)
	u.RawQuery = query.Encode()
	var reader io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), reader)
	if err != nil {
		return nil, err
	}
	h := req.Header
	h.Set("User-Agent", "Leat")
	h.Set("Accept", "application/json, text/event-stream")
	if body != nil {
		h.Set("Content-Type", "application/json")
	}
	if r.cfg.Token != "" {
		h.Set("Authorization", "Bearer "+r.cfg.Token)
	}
	if tp := agent.TraceParent(ctx); tp != "" {
		h.Set("Traceparent", tp)
	}
	res, err := r.client.Do(req)
	if err != nil {
		return nil, connectFailure(err)
	}
	if res.StatusCode/100 != 2 {
		defer res.Body.Close()
		return nil, statusFailure(res)
	}
	return res, nil
}

// maxAnswer bounds the body of a short answer, in bytes: a page of a history may hold long outputs of tools.
const maxAnswer = 32 << 20

// callJSON makes a request whose answer takes the server no time, and reads it into v, which may be nil.
func (r *restAgent) callJSON(ctx context.Context, v any, method string, query url.Values, body any, path ...string) error {
	ctx, cancel := context.WithTimeout(ctx, r.times.answer)
	defer cancel()
	res, err := r.call(ctx, method, query, body, path...)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return connectFailure(err)
	}
	if v == nil {
		return nil
	}
	if err := json.Unmarshal(b, v); err != nil {
		return &failure{code: codeStatus, message: "the Letta server's answer is not what its API says; is it one?"}
	}
	return nil
}

// ensureConversation sees to it that there is a conversation.
func (r *restAgent) ensureConversation(ctx context.Context, t *turn, s session) (session, error) {
	if s.Conversation != "" {
		return s, nil
	}
	var created struct {
		ID string `json:"id"`
	}
	err := r.retry(ctx, t.emitter, func() error {
		return r.callJSON(ctx, &created, http.MethodPost, url.Values{"agent_id": {s.Agent}}, struct{}{}, "conversations/")
	})
	if err != nil {
		return s, err
	}
	if created.ID == "" {
		return s, &failure{code: codeStatus, message: "the Letta server made a conversation without an id"}
	}
	s.Conversation = created.ID
	return s, nil
}

// Check implements [agent.Checker]: the server takes the token and, where there is one for all, knows the agent.
func (r *restAgent) Check(ctx context.Context) error {
	if strings.Contains(r.cfg.Agent, "{") { // there is one for each of many; the list wants the token as each of them does
		return r.callJSON(ctx, nil, http.MethodGet, url.Values{"limit": {"1"}}, nil, "agents/")
	}
	err := r.callJSON(ctx, nil, http.MethodGet, nil, nil, "agents", r.cfg.Agent)
	var f *failure
	if errors.As(err, &f) && f.status == http.StatusNotFound {
		return fmt.Errorf("the Letta server does not know the agent %s", r.cfg.Agent)
	}
	return err
}

// abort cancels the run of a turn that was stopped. The server doesn't end it when its reader leaves.
func (r *restAgent) abort(ctx context.Context, t *turn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.times.abort)
	defer cancel()
	s, run := t.snapshot().Session, t.currentRun()
	if run == "" {
		run, _ = t.position() // a turn that was resumed to wait for an answer has no stream
	}
	var err error
	switch {
	case run != "":
		states := map[string]string{}
		err = r.callJSON(ctx, &states, http.MethodPost, nil, map[string]any{"run_ids": []string{run}}, "agents", s.Agent, "messages", "cancel")
		if err == nil && states[run] == "failed" {
			err = errNotCancelled
		}
	case t.isRejected:
		return // what runs in the conversation is somebody else's
	default:
		err = r.callJSON(ctx, nil, http.MethodPost, s.query(), nil, "conversations", s.Conversation, "cancel")
	}
	if err != nil {
		t.emitter.Log().Warn("run not cancelled at the Letta server", "run", run, "error", err)
	}
}

var errNotCancelled = errors.New("letta: the server did not cancel the run")
