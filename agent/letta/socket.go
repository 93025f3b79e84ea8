// The agent over the WebSocket of a Letta App Server.

package letta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/leat-dev/leat/agent"
)

// socketAgent is an agent of the App Server. Each turn and each followed session has a separate connection. Run, Resume, Observe,
// Follow, Steer and Probe may be called at the same time.
type socketAgent struct {
	base
	client *http.Client

	mu          sync.Mutex
	activeTurns map[string]*socketTurn   // by turn id; the turns that read a connection
	watches     map[string]*socketWatch  // by conversation; the sessions that are followed
	runOrder    map[string][]*socketTurn // by conversation; the runs that are being shown, in the order in which the server started them
	logger      *slog.Logger             // for messages that belong to no turn
}

var (
	_ agent.Agent   = (*socketAgent)(nil)
	_ agent.Drainer = (*socketAgent)(nil)
	_ agent.Steerer = (*socketAgent)(nil)
	_ agent.Checker = (*socketAgent)(nil)
	_ agent.Prober  = (*socketAgent)(nil)
)

// newSocket returns an agent of the App Server. It doesn't follow redirects, which would send the token to another address.
func newSocket(b base) *socketAgent {
	return &socketAgent{base: b, activeTurns: map[string]*socketTurn{}, runOrder: map[string][]*socketTurn{}, logger: slog.New(slog.DiscardHandler), client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// NeedsDrain implements [agent.Drainer]. The App Server cancels a turn when its last viewer disconnects, so a restart of Leat may end
// it.
func (k *socketAgent) NeedsDrain() bool { return true }

// request has the fields that all commands of the App Server share.
type request struct {
	Type    string   `json:"type"`
	ID      string   `json:"request_id,omitempty"`
	Runtime *runtime `json:"runtime,omitempty"`
}

// runtime is the protocol's name for the pair of ids that identifies a conversation.
type runtime struct {
	Agent        string `json:"agent_id"`
	Conversation string `json:"conversation_id"`
}

// runtimeStart subscribes to a conversation. If Conversation is empty the server creates one.
type runtimeStart struct {
	request
	Agent        string            `json:"agent_id"`
	Conversation string            `json:"conversation_id,omitempty"`
	Mode         string            `json:"mode,omitempty"`
	Recover      bool              `json:"recover_approvals"`
	Client       map[string]string `json:"client_info,omitempty"`
}

// newID returns an id for a request.
func newID() string { return uuid.NewString() }

// join connects, subscribes to the conversation of s, and retries both (see base.retry). If s has no conversation the server
// creates one; the returned session contains its id. Frames before the server's response are passed to other.
func (k *socketAgent) join(ctx context.Context, emitter *agent.Emitter, s session, other func([]byte) error) (*connection, session, error) {
	var l *connection
	err := k.retry(ctx, emitter, func() (err error) {
		if l, err = k.dial(ctx, emitter); err != nil {
			return err
		}
		if s, err = k.start(ctx, l, s, k.cfg.Mode, other); err != nil {
			l.close()
			if errors.Is(err, errBroken) {
				return &failure{code: codeUnreachable, message: "the Letta server closed the connection: " + err.Error(), retryable: true}
			}
		}
		return err
	})
	if err != nil {
		return nil, s, err
	}
	return l, s, nil
}

// start subscribes to the conversation of s, or creates one, and returns the session with the server's ids. If mode is empty
// the conversation's permission mode stays as it is. If the server has lost the conversation, the error is a *failure with the
// status 404.
func (k *socketAgent) start(ctx context.Context, l *connection, s session, mode string, other func([]byte) error) (session, error) {
	id := newID()
	b, err := l.call(ctx, k.times, id, runtimeStart{
		request: request{Type: "runtime_start", ID: id},
		Agent:   s.Agent, Conversation: s.Conversation, Mode: mode, Recover: true,
		Client: map[string]string{"name": "leat", "version": "1"},
	}, other)
	if err != nil {
		return s, err
	}
	var res struct {
		Success bool    `json:"success"`
		Error   string  `json:"error"`
		Runtime runtime `json:"runtime"`
	}
	if err := json.Unmarshal(b, &res); err != nil {
		return s, &failure{code: codeStatus, message: "the Letta server sent an invalid response; is the target an App Server?"}
	}
	if !res.Success {
		f := &failure{code: codeUnknown, message: "the Letta server refused the request: " + res.Error}
		if s.Conversation != "" && strings.Contains(strings.ToLower(res.Error), "conversation") {
			f.status = http.StatusNotFound
		}
		return s, f
	}
	s.Conversation = res.Runtime.Conversation
	if s.Conversation == "" {
		return s, &failure{code: codeStatus, message: "the Letta server started a conversation without an id"}
	}
	return s, nil
}

// Check implements [agent.Checker]: it succeeds if an App Server answers with protocol 1 and, if all conversations use the same
// agent, knows that agent. It starts the agent's default conversation, which always exists, so it creates and changes nothing.
func (k *socketAgent) Check(ctx context.Context) error {
	l, err := k.dial(ctx, nil)
	if err != nil {
		return err
	}
	defer l.close()
	id := newID()
	b, err := l.call(ctx, k.times, id, request{Type: "app_server_info", ID: id}, func([]byte) error { return nil })
	if err != nil {
		return err
	}
	var info struct {
		Version  string `json:"letta_code_version"`
		Protocol int    `json:"protocol_version"`
	}
	if err := json.Unmarshal(b, &info); err != nil {
		return fmt.Errorf("the target is not an App Server: %w", err)
	}
	if info.Protocol != 1 {
		return fmt.Errorf("the App Server (Letta Code %s) uses protocol %d; Leat supports protocol 1", info.Version, info.Protocol)
	}
	if strings.Contains(k.cfg.Agent, "{") {
		return nil // each conversation may have another agent
	}

	id = newID()
	b, err = l.call(ctx, k.times, id, runtimeStart{request: request{Type: "runtime_start", ID: id}, Agent: k.cfg.Agent, Conversation: ownConversation}, func([]byte) error { return nil })
	if err != nil {
		return err
	}
	var res struct {
		Success bool   `json:"success"`
		Error   string `json:"error"`
	}
	if err := json.Unmarshal(b, &res); err != nil {
		return fmt.Errorf("the target is not an App Server: %w", err)
	}
	if !res.Success {
		return fmt.Errorf("the Letta server doesn't know the agent %s: %s", k.cfg.Agent, res.Error)
	}
	return nil
}

// abort stops the turn at the server and waits, for at most times.abort, until the turn has ended there. Without the wait a
// message that follows at once would be queued behind the turn. It works although ctx is done, and only logs errors.
func (k *socketAgent) abort(ctx context.Context, t *turn, l *connection) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.times.abort)
	defer cancel()
	hasEnded := false
	handle := func(b []byte) error {
		var f envelope
		hasEnded = hasEnded || json.Unmarshal(b, &f) == nil && f.Type == "turn_finished" && f.Runtime != nil && *f.Runtime == *t.runtime()
		return nil
	}
	id := newID()
	b, err := l.call(ctx, k.times, id, request{Type: "abort_message", ID: id, Runtime: t.runtime()}, handle)
	var res struct {
		Aborted *bool `json:"aborted"`
	}
	if err == nil && json.Unmarshal(b, &res) == nil && res.Aborted != nil && !*res.Aborted {
		return // no turn is running
	}
	// The response says that the abort was received; turn_finished says that the turn has ended.
	for err == nil && !hasEnded {
		select {
		case b, ok := <-l.frames:
			if !ok {
				return
			}
			err = handle(b)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err != nil && !errors.Is(err, errBroken) {
		t.emitter.Log().Warn("the Letta server did not confirm the end of the stopped turn", "error", err)
	}
}

// runtime returns the ids of the turn's conversation.
func (t *turn) runtime() *runtime {
	s := t.snapshot().Session
	return s.runtime()
}
