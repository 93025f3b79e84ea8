package agentsdk

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// defaultSession is the default template of session ids: one session for each conversation.
const defaultSession = "leat-{conversation}"

// maxPrompt is the maximum size of a prompt, in bytes. The runtime's server accepts requests of 1 MiB; 4 KiB are left for the rest of the
// JSON.
const maxPrompt = 1<<20 - 4<<10

// Config is the configuration of an [Agent].
type Config struct {
	URL     string // of the runtime's server
	Session string // template of session ids for [agent.Expand]; empty means [defaultSession]
	Token   string // bearer token; may be empty
	Dialect dialect.Dialect
}

// Agent sends turns to a runtime's server. All methods are safe for concurrent use. Close doesn't interrupt
// running turns.
type Agent struct {
	cfg    Config
	base   *url.URL
	client *http.Client

	mu   sync.Mutex
	busy map[string]chan struct{} // by session id; closed when the session's turn is over
}

var (
	_ agent.Agent   = (*Agent)(nil)
	_ agent.Checker = (*Agent)(nil)
)

// New returns an agent. It validates the configuration, but doesn't connect.
func New(c Config) (*Agent, error) {
	c.Session = cmp.Or(c.Session, defaultSession)
	if _, err := agent.Expand(c.Session, agent.Input{}); err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	base, err := call.Address("the target", c.URL)
	return &Agent{cfg: c, base: base, client: call.Client(), busy: map[string]chan struct{}{}}, err
}

// Close closes idle connections.
func (a *Agent) Close() { a.client.CloseIdleConnections() }

// Run implements [agent.Agent]. It posts the message and emits the runtime's stream. The server can't read
// files, so the prompt names them instead. The text with these names must fit the server's limit; the server
// would reject a larger request only after the wait for the session.
func (a *Agent) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	session, err := agent.Expand(a.cfg.Session, in)
	if err != nil {
		return err
	}
	text := in.Message.Text
	for _, p := range in.Message.Parts {
		if p.Media != nil {
			text = strings.TrimLeft(text+"\n\n"+call.UnreachableText(p.Media), "\n")
		}
	}
	if len(text) > maxPrompt {
		return &agent.Error{Code: "too_large", Message: fmt.Sprintf("the message is larger than %d KiB, the limit of the agent", maxPrompt>>10)}
	}
	free, err := a.acquire(ctx, session, emitter)
	if err != nil {
		return err
	}
	defer free()
	body := map[string]string{"prompt": text, "session_id": session}
	talk := call.Talk{
		Client: a.client, Dialect: a.cfg.Dialect, Emitter: emitter,
		Request: func(ctx context.Context, _ []event.Answer) (*http.Request, error) {
			return call.Stream(ctx, a.base.JoinPath("v1/run/stream"), a.cfg.Token, in.Key, body)
		},
	}
	return talk.Run(ctx)
}

// waitSign is how often a turn that waits for its session reports progress, so that it doesn't fail for its silence.
const waitSign = 10 * time.Second

// acquire waits until the session runs no other turn, and reserves it until free is called. While it waits,
// viewers see the phase "waiting".
//
// A session may belong to several conversations, if its template doesn't contain the conversation's id. Waiting
// turns have no order: when a turn ends, all of them try to reserve the session, and one succeeds. Reservations
// aren't shared between gateways.
func (a *Agent) acquire(ctx context.Context, session string, emitter *agent.Emitter) (free func(), err error) {
	released := make(chan struct{})
	ticker := time.NewTicker(waitSign)
	defer ticker.Stop()
	for hasWaited := false; ; {
		a.mu.Lock()
		other := a.busy[session]
		if other == nil {
			a.busy[session] = released
		}
		a.mu.Unlock()
		if other == nil {
			return func() {
				a.mu.Lock()
				defer a.mu.Unlock()
				delete(a.busy, session)
				close(released)
			}, nil
		}
		if !hasWaited {
			hasWaited = true
			if err := emitter.Phase("waiting"); err != nil {
				return nil, err
			}
		}
		select {
		case <-other:
		case <-ticker.C:
			emitter.ReportProgress()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Check implements [agent.Checker]. The request for the server's health needs no model, so the check is free of
// charge.
func (a *Agent) Check(ctx context.Context) error {
	var health struct {
		Status string `json:"status"`
	}
	if err := call.DoJSON(ctx, a.client, http.MethodGet, a.base.JoinPath("health"), a.cfg.Token, nil, &health); err != nil {
		return err
	}
	if health.Status != "ok" {
		return fmt.Errorf("the runtime reports the status %q", health.Status)
	}
	return nil
}

// Kind returns the kind agentsdk. The registry must have the dialect of the same name.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "agentsdk",
		Summary: "an agentsdk-go runtime behind its HTTP server",
		Target:  "URL",
		Options: append([]agent.Option{
			{Name: "session", Help: "template of the runtime's session ids, with {tenant}, {subject}, {conversation}", Default: defaultSession},
		}, agent.SecretOptions("token", "token of the server", "")...),
		New: func(s agent.Spec) (agent.Agent, error) {
			d, err := dialects.Lookup("agentsdk")
			if err != nil {
				return nil, err
			}
			token, err := s.Secret("token")
			if err != nil {
				return nil, err
			}
			return New(Config{URL: s.Target, Session: s.Options["session"], Token: token, Dialect: d})
		},
	}
}
