package openclaw

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
)

// storedSession is what Leat stores with a conversation, so that later turns use the same session even if the template in the
// configuration has changed.
type storedSession struct {
	Session string `json:"session"`
}

// maxSession is the length of the longest session key that the gateway accepts, in bytes.
const maxSession = 512

// sessionKey returns the canonical key of a conversation's session: the stored one, or else one made from the template. h,
// which may be nil, has the gateway's default agent.
func (a *gatewayAgent) sessionKey(in agent.Input, h *hello) (string, error) {
	var k storedSession
	if len(in.Session) > 0 {
		if err := json.Unmarshal(in.Session, &k); err != nil {
			return "", fmt.Errorf("stored session: %w", err)
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
		// A conversation whose messages were all deleted has no stored session. Its next turn must not continue the old upstream
		// session, which still contains the deleted messages, so the key depends on the turn as well.
		sum := sha256.Sum256([]byte(in.Turn))
		name += "-" + hex.EncodeToString(sum[:4])
	}
	agentID := a.config.Agent
	if agentID == "" && h != nil {
		agentID = h.Snapshot.Defaults.Agent
	}
	key := canonicalKey(agentID, name)
	if len(key) > maxSession {
		return "", fmt.Errorf("session: the key has %d bytes; OpenClaw accepts at most %d", len(key), maxSession)
	}
	return key, nil
}

// canonicalKey returns a session key in the form that the gateway uses in its frames, agent:<agent>:<name> in lower case.
// Frames are matched to turns by this key, so any other form would never match. A name that begins with "agent:" is already
// complete. An empty agentID is "main", the gateway's own default.
func canonicalKey(agentID, name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	if strings.HasPrefix(name, "agent:") {
		return name
	}
	agentID = cmp.Or(agentID, "main")
	return "agent:" + strings.ToLower(agentID) + ":" + name
}

// storeSession makes the key of the conversation's session durable. Conversations that store no session ([agent.ErrNoSession])
// are fine.
func storeSession(ctx context.Context, emitter *agent.Emitter, session string) error {
	if err := call.StoreSession(ctx, emitter, storedSession{session}); err != nil {
		return fmt.Errorf("store session: %w", err)
	}
	return nil
}
