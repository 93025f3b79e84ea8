// The agent over the REST API of a Letta server, and its requests.

package letta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
)

// restAgent is an agent of the V1 API. Run, Resume, Observe, Follow and Probe may be called at the same time.
type restAgent struct {
	base
	client *http.Client

	mu          sync.Mutex
	activeTurns map[string]*turn  // by turn id
	turnByRun   map[string]string // ids of the turns that show runs or have shown them, by run id
	logger      *slog.Logger      // for messages that belong to no turn
}

var (
	_ agent.Agent   = (*restAgent)(nil)
	_ agent.Drainer = (*restAgent)(nil)
	_ agent.Checker = (*restAgent)(nil)
	_ agent.Prober  = (*restAgent)(nil)
	_ agent.Keeper  = (*restAgent)(nil)
)

// newREST returns an agent of the V1 API. The URL may end in /v1 or not. Limits on time are set per request, since a stream has none.
func newREST(b base) *restAgent {
	u := *b.url
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1")
	u.RawQuery, u.Fragment = "", ""
	b.url = &u
	return &restAgent{base: b, activeTurns: map[string]*turn{}, turnByRun: map[string]string{}, logger: slog.New(slog.DiscardHandler), client: call.ClientWithin(b.times.dial)}
}

// Start implements [agent.Keeper]. It only sets the logger.
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

// Close closes idle connections. Turns that run are not affected.
func (r *restAgent) Close() { r.client.CloseIdleConnections() }

// NeedsDrain implements [agent.Drainer]. The server continues a run without a reader only if it is a background run.
func (r *restAgent) NeedsDrain() bool { return !r.cfg.Background }

// query returns the parameters that the paths of a conversation need. All agents' default conversations have the same path, so
// the agent's id selects one.
func (s session) query() url.Values {
	if s.Conversation == ownConversation {
		return url.Values{"agent_id": {s.Agent}}
	}
	return nil
}

// call sends a request. An error is a *failure: the server was not reached, or its status is not a success. On success the
// caller closes the response's body. Redirects count as failures. The elements of path are escaped, see [call.Path]. Lists have
// paths that end in a slash.
func (r *restAgent) call(ctx context.Context, method string, query url.Values, body any, path ...string) (*http.Response, error) {
	last := len(path) - 1
	name, isList := strings.CutSuffix(path[last], "/")
	u := call.Path(r.url.JoinPath("v1"), append(slices.Clone(path[:last]), name)...)
	if isList {
		u = u.JoinPath("/")
	}
	u.RawQuery = query.Encode()
	req, err := call.JSON(ctx, method, u, r.cfg.Token, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
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

// maxAnswer limits the body of a response that is not a stream, in bytes. A page of a history may contain long outputs of
// tools.
const maxAnswer = 32 << 20

// callJSON sends a request that the server answers without calling a model, within times.answer, and decodes the response into
// v unless v is nil.
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
		return &failure{code: codeStatus, message: "the Letta server sent an invalid response; is the target a Letta server with the V1 API?"}
	}
	return nil
}

// ensureConversation creates a conversation unless the session has one. Creating isn't idempotent: after a lost response the
// server keeps an empty conversation that nothing uses.
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
		return s, &failure{code: codeStatus, message: "the Letta server created a conversation without an id"}
	}
	s.Conversation = created.ID
	return s, nil
}

// Check implements [agent.Checker]: it succeeds if the server accepts the token and, if all conversations use the same agent,
// knows that agent.
func (r *restAgent) Check(ctx context.Context) error {
	if strings.Contains(r.cfg.Agent, "{") { // no single agent to check; the list needs the token too
		return r.callJSON(ctx, nil, http.MethodGet, url.Values{"limit": {"1"}}, nil, "agents/")
	}
	err := r.callJSON(ctx, nil, http.MethodGet, nil, nil, "agents", r.cfg.Agent)
	if f, ok := errors.AsType[*failure](err); ok && f.status == http.StatusNotFound {
		return fmt.Errorf("the Letta server doesn't know the agent %s", r.cfg.Agent)
	}
	return err
}

// abort cancels the run of a turn that was stopped, since the server continues a run whose reader leaves. If the run is not
// known it cancels whatever the conversation runs, unless the last request was rejected: then the run is another client's. It
// works although ctx is done, and only logs errors.
func (r *restAgent) abort(ctx context.Context, t *turn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.times.abort)
	defer cancel()
	s, run := t.snapshot().Session, t.currentRun()
	if run == "" {
		run, _ = t.position() // a turn that only waits for an approval after a restart has no stream
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
		return // the conversation's run belongs to another client
	default:
		err = r.callJSON(ctx, nil, http.MethodPost, s.query(), nil, "conversations", s.Conversation, "cancel")
	}
	if err != nil {
		t.emitter.Log().Warn("the run could not be cancelled at the Letta server", "run", run, "error", err)
	}
}

// errNotCancelled is the error if the server answers a cancellation with the state "failed".
var errNotCancelled = errors.New("letta: the server did not cancel the run")
