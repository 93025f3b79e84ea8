package agentsdk

import (
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

// DefaultSession is the template of the sessions of specs that give none.
const DefaultSession = "leat-{conversation}"

// maxPrompt is what the runtime's server takes, in bytes of the request, less what stands around the prompt.
const maxPrompt = 1<<20 - 4<<10

// Config says where the runtime is.
type Config struct {
	URL     string
	Session string // template
	Token   string
	Dialect dialect.Dialect
}

// Agent sends turns to a runtime's server.
type Agent struct {
	cfg    Config
	base   *url.URL
	client *http.Client

	mu   sync.Mutex
	busy map[string]chan struct{} // by session; closed when its turn is over
}

var (
	_ agent.Agent   = (*Agent)(nil)
	_ agent.Checker = (*Agent)(nil)
)

// New returns the agent. It does not connect.
func New(c Config) (*Agent, error) {
	a := &Agent{cfg: c, client: call.Client(), busy: map[string]chan struct{}{}}
	if a.cfg.Session == "" {
		a.cfg.Session = DefaultSession
	}
	if _, err := agent.Expand(a.cfg.Session, agent.Input{}); err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	var err error
	a.base, err = call.Address("the target", c.URL)
	return a, err
}

// Close closes the connections that are kept for further turns.
func (a *Agent) Close() { a.client.CloseIdleConnections() }

// Run sends the message and hands the runtime's stream on.
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
		return &agent.Error{Code: "too_large", Message: fmt.Sprintf("the message has more than the %d KiB that the agent takes", maxPrompt>>10)}
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

// waitSign is how often a turn that waits for its session says that it is there.
const waitSign = 10 * time.Second

// take waits until a session runs no other turn, which readers see.
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

// Check implements [agent.Checker].
func (a *Agent) Check(ctx context.Context) error {
	req, err := call.JSON(ctx, http.MethodGet, a.base.JoinPath("health"), a.cfg.Token, nil)
	if err != nil {
		return err
	}
	var health struct {
		Status string `json:"status"`
	}
	if err := call.Do(a.client, req, &health); err != nil {
		return err
	}
	if health.Status != "ok" {
		return fmt.Errorf("the runtime says that it is %q", health.Status)
	}
	return nil
}
