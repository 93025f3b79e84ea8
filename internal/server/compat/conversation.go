// Which conversation a request belongs to. These APIs have none: a header or a key in the body names it, and otherwise each request
// gets a new one.

package compat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

const (
	// idPrefix is the prefix of conversation ids that are derived from keys.
	idPrefix = "v1-"
	// maxKey is the longest key in bytes. Some clients combine an account and a session, which exceeds the 120 bytes of Eliza.
	maxKey = 512
	// maxLives is how many conversations of one key may have been deleted.
	maxLives = 1000
)

// conversation returns the id of a request's conversation and creates it if it is new. If isNew is true, no other request can
// know it.
//
// The header Leat-Conversation names a conversation that must exist. Without it, a key in the body finds
// or creates the conversation of that key. Without both, each request gets a new conversation, which is
// unlisted unless Leat-Listed asks otherwise: clients of these APIs resend their whole history, so a list
// would have one entry per request.
func (s *surface) conversation(r *http.Request, p gateway.Principal, rq *request) (id string, isNew bool, err error) {
	if id := r.Header.Get(headerConversation); id != "" {
		_, err := s.gw.Conversation(r.Context(), p, gateway.ActionWrite, id)
		return id, false, err
	}
	ctx, cancel := server.CommandContext(r.Context())
	defer cancel()
	opt := gateway.CreateOptions{Agent: rq.model, Messages: rq.before, Key: r.Header.Get("Idempotency-Key")}
	if rq.key == "" {
		opt.Unlisted = r.Header.Get(headerListed) != "true"
		c, _, err := s.gw.Create(ctx, p, opt)
		return c.ID, opt.Key == "", err
	}
	id, err = s.keyed(ctx, p, rq.key, opt)
	return id, false, err
}

// keyed returns the id of the conversation for a user's key: the user's conversation with that id, or the one whose id is
// derived from the key.
//
// The id is derived from the key, so that two requests at the same time agree on it without a lock: one of
// them creates the conversation and the other gets ErrExists. A deleted id can't be used again, so after a
// deletion the next life of the key has another id.
func (s *surface) keyed(ctx context.Context, p gateway.Principal, key string, opt gateway.CreateOptions) (string, error) {
	if exists, err := s.isOwn(ctx, p, key); exists || err != nil {
		return key, err
	}
	opt.Key = "" // the id already makes the request idempotent
	for life := range maxLives {
		id, err := gateway.ConversationID(p.Tenant, derivedID(p, key, life))
		if err != nil {
			return "", err
		}
		opt.ID = id
		if exists, err := s.isOwn(ctx, p, opt.ID); exists || err != nil {
			return opt.ID, err
		}
		if err := s.gw.Admits(opt.Agent); err != nil {
			return "", err // refused, so don't create the conversation
		}
		_, _, err = s.gw.Create(ctx, p, opt)
		if err == nil || !errors.Is(err, gateway.ErrExists) {
			return opt.ID, err
		}
		// Another request was faster, the conversation was deleted, or another user has created one with this id.
		if exists, err := s.isOwn(ctx, p, opt.ID); exists || err != nil {
			return opt.ID, err
		}
	}
	return "", server.Errorf(http.StatusConflict, server.ReasonExists, "too many conversations with this key were deleted; use another key")
}

// isOwn reports whether a conversation exists and belongs to the caller. Conversations of others do not count, even if they are
// shared or the caller is the admin. Otherwise a user who guesses a key could plant a conversation under it.
func (s *surface) isOwn(ctx context.Context, p gateway.Principal, id string) (bool, error) {
	if strings.HasPrefix(id, "$") {
		return false, nil
	}
	c, err := s.gw.Conversation(ctx, p, gateway.ActionRead, id)
	switch {
	case errors.Is(err, gateway.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	return c.Tenant == p.Tenant && c.Owner == p.Subject, nil
}

// derivedID returns the conversation id for a key of a principal. life counts the earlier conversations of the key, which were
// deleted.
func derivedID(p gateway.Principal, key string, life int) string {
	h := sha256.New()
	for _, part := range []string{p.Tenant, p.Subject, key, strconv.Itoa(life)} {
		// The length separates parts that would otherwise be ambiguous.
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return idPrefix + hex.EncodeToString(h.Sum(nil)[:16])
}
