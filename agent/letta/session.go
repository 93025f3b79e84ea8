package letta

import (
	"context"
	"encoding/json"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
)

// session is the identity of a conversation at the server. It is stored in the journal, next to the conversation.
type session struct {
	Agent        string `json:"agent"`
	Conversation string `json:"conversation,omitempty"` // empty until the server has created one
}

// runtime returns the ids in the form that the App Server's frames use.
func (s session) runtime() *runtime { return &runtime{Agent: s.Agent, Conversation: s.Conversation} }

// ownConversation is the name of an agent's default conversation, which exists without being created. V1 finds it by the
// agent's id (see session.query).
const ownConversation = "default"

// session returns the stored session of a conversation. Without a usable one it expands the templates of the settings,
// which need not name a conversation.
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

// storeSession stores the session with the conversation. A caller without session storage, such as a one-off command, is fine:
// each of its turns then gets a new conversation at the server.
func storeSession(ctx context.Context, emitter *agent.Emitter, s session) error {
	return call.StoreSession(ctx, emitter, s)
}
