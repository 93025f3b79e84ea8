// Which conversation a chat is.

package chats

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

// idPrefix is the prefix of conversation ids that are derived from the ids of chats.
const idPrefix = "chat-"

// Find returns the conversation of a principal's chat: its own conversation with that id, or the one whose id is derived from the chat's.
func (c Chats) Find(ctx context.Context, p gateway.Principal, chat string) (id string, isFound bool, err error) {
	if isFound, err := c.isOwn(ctx, p, chat); isFound || err != nil {
		return chat, isFound, err
	}
	if id, err = derivedID(p, chat); err != nil {
		return "", false, err
	}
	isFound, err = c.isOwn(ctx, p, id)
	return id, isFound, err
}

// Open returns the conversation of a chat, and creates it if the chat is new. A chat that was deleted isn't created again, because a page that
// still shows it would bring it back without its messages.
func (c Chats) Open(ctx context.Context, p gateway.Principal, chat, agent string) (string, error) {
	id, _, err := c.Create(ctx, p, chat, gateway.CreateOptions{Agent: agent})
	return id, err
}

// Create is Open for a conversation with more than an agent. It reports whether the chat is new. The id of the options is not used.
func (c Chats) Create(ctx context.Context, p gateway.Principal, chat string, o gateway.CreateOptions) (id string, isNew bool, err error) {
	id, isFound, err := c.Find(ctx, p, chat)
	if isFound || err != nil {
		return id, false, err
	}
	if err := c.Gateway.Admits(o.Agent); err != nil {
		return "", false, err // refused, so don't create the conversation
	}
	ctx, cancel := server.CommandContext(ctx)
	defer cancel()
	o.ID = id
	_, isNew, err = c.Gateway.Create(ctx, p, o)
	if !errors.Is(err, gateway.ErrExists) {
		return id, isNew, err
	}
	// Another request was faster, or the conversation was deleted.
	if isFound, err := c.isOwn(ctx, p, id); isFound || err != nil {
		return id, false, err
	}
	return "", false, server.Errorf(http.StatusGone, gateway.ReasonDeleted, "this chat was deleted; start a new one")
}

// isOwn reports whether a conversation exists and belongs to the caller. Conversations of others don't count, even if they are shared:
// otherwise a user who guesses the id of a chat could plant a conversation under it.
func (c Chats) isOwn(ctx context.Context, p gateway.Principal, id string) (bool, error) {
	if id == "" || strings.HasPrefix(id, "$") {
		return false, nil
	}
	s, err := c.Gateway.Conversation(ctx, p, gateway.ActionRead, id)
	switch {
	case errors.Is(err, gateway.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	return s.Tenant == p.Tenant && s.Owner == p.Subject, nil
}

// derivedID returns the conversation id for a chat of a principal.
//
// The id is derived and not stored, so that two requests at the same time agree on it without a lock: one of them creates the conversation, and
// the other one finds it.
func derivedID(p gateway.Principal, chat string) (string, error) {
	h := sha256.New()
	for _, part := range []string{p.Tenant, p.Subject, chat} {
		// The length separates parts that would otherwise be ambiguous.
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return gateway.ConversationID(p.Tenant, idPrefix+hex.EncodeToString(h.Sum(nil)[:16]))
}
