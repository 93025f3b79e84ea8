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
	// idPrefix begins the ids of conversations that keys lead to.
	idPrefix = "v1-"
	// maxKey bounds a key, in bytes. Clients make some of an account and a session, which are longer than the 120 of Eliza.
	maxKey = 512
	// maxLives is how many conversations of one key may have been deleted.
	maxLives = 1000
)

// conversation returns the id of the conversation that a request goes to, which is made where it is a new one. fresh says
// that it is known to no other request.
func (s *surface) conversation(r *http.Request, p gateway.Principal, rq *request) (id string, fresh bool, err error) {
	if id := r.Header.Get(HeaderConversation); id != "" {
		_, err := s.gw.Conversation(r.Context(), p, gateway.ActionWrite, id)
		return id, false, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), commandLimit)
	defer cancel()
	opt := gateway.CreateOptions{Agent: rq.model, Messages: rq.before, Key: r.Header.Get("Idempotency-Key")}
	if rq.key == "" {
		opt.Unlisted = r.Header.Get(HeaderListed) != "true"
		c, _, err := s.gw.Create(ctx, p, opt)
		return c.ID, opt.Key == "", err
	}
	id, err = s.keyed(ctx, p, rq.key, opt)
	return id, false, err
}

// keyed returns the id of the conversation that a key of somebody's names: one of theirs that has it for its id, or the
// one that it leads to.
func (s *surface) keyed(ctx context.Context, p gateway.Principal, key string, opt gateway.CreateOptions) (string, error) {
	if mine, err := s.mine(ctx, p, key); mine || err != nil {
		return key, err
	}
	opt.Key = "" // the id says it all
	for life := range maxLives {
		id, err := gateway.ConversationID(p.Tenant, derived(p, key, life))
		if err != nil {
			return "", err
		}
		opt.ID = id
		if mine, err := s.mine(ctx, p, opt.ID); mine || err != nil {
			return opt.ID, err
		}
		if err := s.gw.Admits(opt.Agent); err != nil {
			return "", err // it would be made for nothing
		}
		_, _, err = s.gw.Create(ctx, p, opt)
		if err == nil || !errors.Is(err, gateway.ErrExists) {
			return opt.ID, err
		}
		// Somebody was faster, or it was deleted, or somebody else made one of this id.
		if mine, err := s.mine(ctx, p, opt.ID); mine || err != nil {
			return opt.ID, err
		}
	}
	return "", server.Errorf(http.StatusConflict, server.ReasonExists, "too many conversations of this key were deleted; take another key")
}

// mine reports whether a conversation is there and belongs to who asks. What others own counts for nothing, even where it
// is shared or the admin asks: whoever guesses a key must not be able to plant a conversation under it.
func (s *surface) mine(ctx context.Context, p gateway.Principal, id string) (bool, error) {
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

// derived is the id that a key leads to, for one principal; life counts those before it that were deleted.
func derived(p gateway.Principal, key string, life int) string {
	h := sha256.New()
	for _, part := range []string{p.Tenant, p.Subject, key, strconv.Itoa(life)} {
		// The length keeps apart what would be the same one after another.
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return idPrefix + hex.EncodeToString(h.Sum(nil)[:16])
}
