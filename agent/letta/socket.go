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

// socketAgent is an agent on the App Server. Each turn has a connection of its own.
type socketAgent struct {
	base
	client *http.Client

	mu          sync.Mutex
	activeTurns map[string]*socketTurn   // by turn
	watches     map[string]*socketWatch  // by conversation; those that are followed
	runOrder    map[string][]*socketTurn // by conversation; the runs that are shown, in the order in which the server began them
	logger      *slog.Logger             // for what belongs to no turn
}

var (
	_ agent.Agent   = (*socketAgent)(nil)
	_ agent.Tied    = (*socketAgent)(nil)
	_ agent.Steerer = (*socketAgent)(nil)
	_ agent.Checker = (*socketAgent)(nil)
	_ agent.Prober  = (*socketAgent)(nil)
)

func newSocket(b base) *socketAgent {
	return &socketAgent{base: b, activeTurns: map[string]*socketTurn{}, runOrder: map[string][]*socketTurn{}, logger: slog.New(slog.DiscardHandler), client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Tied implements [agent.Tied]: the App Server cancels a turn with its last viewer.
func (k *socketAgent) Tied() bool { return true }

// request is what every command has.
type request struct {
	Type    string   `json:"type"`
	ID      string   `json:"request_id,omitempty"`
	Runtime *runtime `json:"runtime,omitempty"`
}

type runtime struct {
	Agent        string `json:"agent_id"`
	Conversation string `json:"conversation_id"`
}

type runtimeStart struct {
	request
	Agent        string            `json:"agent_id"`
	Conversation string            `json:"conversation_id,omitempty"`
	Mode         string            `json:"mode,omitempty"`
	Recover      bool              `json:"recover_approvals"`
	Client       map[string]string `json:"client_info,omitempty"`
}

func newID() string { return uuid.NewString() }

// join connects and subscribes to the conversation, which is made where there is none. What comes before the answer is
// handed to other. The session is what the server calls it.
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

// start subscribes to the conversation. An empty mode leaves its permission mode as it is.
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
		return s, &failure{code: codeStatus, message: "the Letta server's answer is not what its protocol says; is it an App Server?"}
	}
	if !res.Success {
		f := &failure{code: codeUnknown, message: "the Letta server refuses: " + res.Error}
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

// Check implements [agent.Checker]: an App Server answers, in a protocol that is known, and knows the agent where there is one for all.
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
		return fmt.Errorf("what answers is no App Server: %w", err)
	}
	if info.Protocol != 1 {
		return fmt.Errorf("the App Server (Letta Code %s) speaks protocol %d; protocol 1 is known here", info.Version, info.Protocol)
	}
	if strings.Contains(k.cfg.Agent, "{") {
		return nil // there is one for each of many
	}
	// The agent's own conversation is there with it: nothing is made, and nothing is changed.
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
		return fmt.Errorf("what answers is no App Server: %w", err)
	}
	if !res.Success {
		return fmt.Errorf("the Letta server does not know the agent %s: %s", k.cfg.Agent, res.Error)
	}
	return nil
}

// abort tells the server that the turn was stopped, and waits until it has ended there: what is sent before that waits in a queue.
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
		return // nothing runs there that would have to end
	}
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
		t.emitter.Log().Warn("the Letta server did not tell that the turn has ended", "error", err)
	}
}

func (t *turn) runtime() *runtime {
	s := t.snapshot().Session
	return s.runtime()
}
