// Which conversation a session key names.

package openclaw

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// nameMain is the name of the session that clients open first.
	nameMain = "main"
	// prefixForeign marks the names of other users' conversations. Without it, a user who guesses a name could plant a conversation under it.
	prefixForeign = "@"
	// idPrefix is the prefix of conversation ids that are derived from keys.
	idPrefix = "oc-"
	// metadataKey is the entry of a conversation's metadata with the key that its id is derived from.
	metadataKey = "openclaw_key"
	// maxKey is the length in bytes of the longest key.
	maxKey = 512
	// maxLives is how many conversations of one key may have been deleted.
	maxLives = 32
)

// sessionKey is a parsed key.
type sessionKey struct {
	full  string // "agent:AGENT:NAME"
	agent string
	name  string
}

// keyOf returns the key of an agent's session.
func keyOf(agent, name string) string { return "agent:" + agent + ":" + name }

// parseKey parses a key. A client may leave the agent out.
func (c *connection) parseKey(key, agent string) (sessionKey, error) {
	key = strings.TrimSpace(key)
	if key == "" {
		return sessionKey{}, server.Invalid("sessionKey is missing")
	}
	if len(key) > maxKey {
		return sessionKey{}, server.Invalid("session key of %d bytes, at most %d", len(key), maxKey)
	}
	if err := event.CheckID("session key", key); err != nil {
		return sessionKey{}, err
	}
	path, hasAgent := strings.CutPrefix(key, "agent:")
	if !hasAgent {
		path = cmp.Or(agent, c.s.defaultAgent(c.principal())) + ":" + key
	}
	agent, name, ok := strings.Cut(path, ":")
	if !ok || agent == "" || name == "" {
		return sessionKey{}, server.Invalid("invalid session key %q; use agent:AGENT:NAME", key)
	}
	agent = c.agentName(agent)
	return sessionKey{keyOf(agent, name), agent, name}, nil
}

// keyParams name a session. Methods call the key differently.
type keyParams struct {
	Key        string `json:"key"`
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId"`
}

// key returns the key, whatever the method calls it.
func (p *keyParams) key() string { return cmp.Or(p.Key, p.SessionKey) }

// parse returns the key that p names, and its conversation, or nil.
func (c *connection) parse(p *keyParams) (k sessionKey, s *journal.Summary, err error) {
	if k, err = c.parseKey(p.key(), p.AgentID); err != nil {
		return k, nil, err
	}
	s, err = c.find(c.ctx, k)
	return k, s, err
}

// existing is parse for methods that need a conversation.
func (c *connection) existing(p *keyParams) (k sessionKey, s *journal.Summary, err error) {
	if k, s, err = c.parse(p); err == nil && s == nil {
		err = unknownSession(k.full)
	}
	return k, s, err
}

// unknownSession returns the error for a session that doesn't exist.
func unknownSession(key string) error {
	return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "unknown session %q", key)
}

// find returns the conversation of a key, or nil.
func (c *connection) find(ctx context.Context, k sessionKey) (conversation *journal.Summary, err error) {
	if id, ok := strings.CutPrefix(k.name, prefixForeign); ok {
		return c.lookUp(ctx, id, false)
	}
	if s, err := c.lookUp(ctx, k.name, true); s != nil || err != nil {
		return s, err
	}
	for life := range maxLives {
		id, err := derivedID(c.principal(), k.full, life)
		if err != nil {
			return nil, err
		}
		if s, err := c.lookUp(ctx, id, true); s != nil || err != nil {
			return s, err
		}
	}
	return nil, nil
}

// lookUp returns a conversation that the principal may read, or nil. With mustOwn set it must be the principal's own.
func (c *connection) lookUp(ctx context.Context, id string, mustOwn bool) (*journal.Summary, error) {
	if id == "" || strings.HasPrefix(id, "$") {
		return nil, nil
	}
	p := c.principal()
	s, err := c.s.gw.Conversation(ctx, p, gateway.ActionRead, id)
	switch {
	case errors.Is(err, gateway.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case mustOwn && !isOwn(p, &s):
		return nil, nil
	}
	return &s, nil
}

// isOwn reports whether a conversation belongs to a principal.
func isOwn(p gateway.Principal, s *journal.Summary) bool {
	return s.Tenant == p.Tenant && s.Owner == p.Subject
}

// open returns the conversation of a key, and creates it if the key is new.
func (c *connection) open(k sessionKey) (*journal.Summary, error) {
	ctx, cancel := server.CommandContext(c.ctx)
	defer cancel()
	if s, err := c.find(ctx, k); s != nil || err != nil {
		return s, err
	}
	if strings.HasPrefix(k.name, prefixForeign) {
		return nil, unknownSession(k.full)
	}
	if !c.hasAgent(k.agent) {
		return nil, server.Errorf(http.StatusNotFound, gateway.ReasonUnknownAgent, "unknown agent %q", k.agent)
	}
	if err := c.s.gw.Admits(k.agent); err != nil {
		return nil, err // refused, so don't create the conversation
	}
	key, err := json.Marshal(k.full)
	if err != nil {
		return nil, err
	}
	for life := range maxLives {
		id, err := derivedID(c.principal(), k.full, life)
		if err != nil {
			return nil, err
		}
		s, _, err := c.s.gw.Create(ctx, c.principal(), gateway.CreateOptions{
			ID: id, Agent: k.agent, Metadata: map[string]json.RawMessage{metadataKey: key},
		})
		if !errors.Is(err, gateway.ErrExists) {
			return &s, err
		}
		// Another request was faster, or the conversation was deleted.
		if s, err := c.lookUp(ctx, id, true); s != nil || err != nil {
			return s, err
		}
	}
	return nil, server.Errorf(http.StatusConflict, server.ReasonExists, "session %q was deleted too often; use another key", k.full)
}

// derivedID returns the conversation id for a key of a principal. life counts the earlier conversations of the key, which were deleted.
//
// The id is derived and not stored, so that two requests at the same time agree on it without a lock.
func derivedID(p gateway.Principal, key string, life int) (string, error) {
	h := sha256.New()
	for _, part := range []string{p.Tenant, p.Subject, key, strconv.Itoa(life)} {
		// The length separates parts that would otherwise be ambiguous.
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return gateway.ConversationID(p.Tenant, idPrefix+hex.EncodeToString(h.Sum(nil)[:16]))
}

// keyFor returns the key of a conversation. The key in its metadata counts only if the id is derived from it, because any client can change
// metadata.
func (c *connection) keyFor(s *journal.Summary) sessionKey {
	p := c.principal()
	agent := cmp.Or(s.Agent, c.s.defaultAgent(p))
	if !isOwn(p, s) {
		name := prefixForeign + s.ID
		return sessionKey{keyOf(agent, name), agent, name}
	}
	var key string
	if raw := s.Metadata[metadataKey]; raw != nil && json.Unmarshal(raw, &key) == nil {
		for life := range maxLives {
			if id, err := derivedID(p, key, life); err == nil && id == s.ID {
				if k, err := c.parseKey(key, ""); err == nil {
					return k
				}
			}
		}
	}
	return sessionKey{keyOf(agent, s.ID), agent, s.ID}
}
