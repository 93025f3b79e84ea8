package call

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/leat-dev/leat/agent"
)

// StoreSession stores an agent's session of the turn's conversation as JSON. Conversations that store no session
// ([agent.ErrNoSession]) are fine.
func StoreSession(ctx context.Context, emitter *agent.Emitter, session any) error {
	b, err := json.Marshal(session)
	if err != nil {
		return err
	}
	if err := emitter.KeepSession(ctx, b); !errors.Is(err, agent.ErrNoSession) {
		return err
	}
	return nil
}
