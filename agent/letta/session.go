package letta

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/leat-dev/leat/agent"
)

// session is what the server calls the conversation.
type session struct {
	Agent        string `json:"agent"`
	Conversation string `json:"conversation,omitempty"` // empty: none is made yet
}

func (s session) runtime() *runtime { return &runtime{Agent: s.Agent, Conversation: s.Conversation} }

// ownConversation is the conversation that an agent has without one being made.
const ownConversation = "default"

// session returns the kept session, or what the templates say.
func (b *base) session(in agent.Input) (session, error) {
	var s session
	if len(in.Session) > 0 && json.Unmarshal(in.Session, &s) == nil && s.Agent != "" && s.Conversation != "" {
		return s, nil
	}
	var err error
	if s.Agent, err = agent.Expand(b.cfg.Agent, in); err != nil {
		return s, err
	}
	s.Conversation, err = agent.Expand(b.cfg.Conversation, in)
	return s, err
}

// storeSession stores the session. Whoever runs a turn without keeping sessions gets a conversation there for each turn.
func storeSession(ctx context.Context, emitter *agent.Emitter, s session) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := emitter.KeepSession(ctx, raw); err != nil && !errors.Is(err, agent.ErrNoSession) {
		return err
	}
	return nil
}
