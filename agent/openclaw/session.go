package openclaw

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/leat-dev/leat/agent"
)

// kept is what a conversation keeps of its session.
type storedSession struct {
	Session string `json:"session"`
}

// maxSession is the longest key that the gateway takes, in bytes.
const maxSession = 512

// session returns the key of a conversation's session in canonical form: the one that was kept, else the template's. Agent
// is the gateway's default, where it is known.
func (a *gatewayAgent) sessionKey(in agent.Input, h *hello) (string, error) {
	var k storedSession
	if len(in.Session) > 0 {
		if err := json.Unmarshal(in.Session, &k); err != nil {
			return "", fmt.Errorf("kept session: %w", err)
		}
	}
	if k.Session != "" {
		return k.Session, nil
	}
	name, err := agent.Expand(a.config.Session, in)
	if err != nil {
		return "", fmt.Errorf("session: %w", err)
	}
	if a.config.Session == defaultSession {
		// Once all was taken out of the conversation no session may go on that remembers it.
		sum := sha256.Sum256([]byte(in.Turn))
		name += "-" + hex.EncodeToString(sum[:4])
	}
	owner := a.config.gatewayAgent
	if owner == "" && h != nil {
		owner = h.Snapshot.Defaults.Agent
	}
	key := canonicalKey(owner, name)
	if len(key) > maxSession {
		return "", fmt.Errorf("session: the key has %d bytes; OpenClaw takes %d", len(key), maxSession)
	}
	return key, nil
}

// canonical gives a session's key as the gateway itself writes it in its frames: agent:<agent>:<name>, in lower case.
func canonicalKey(owner, name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	if strings.HasPrefix(name, "agent:") {
		return name
	}
	if owner == "" {
		owner = "main"
	}
	return "agent:" + strings.ToLower(owner) + ":" + name
}

// keep makes durable which session the conversation has.
func storeSession(ctx context.Context, emitter *agent.Emitter, session string) error {
	b, err := json.Marshal(storedSession{session})
	if err != nil {
		return err
	}
	if err := emitter.KeepSession(ctx, b); err != nil && !errors.Is(err, agent.ErrNoSession) {
		return fmt.Errorf("keep session: %w", err)
	}
	return nil
}
