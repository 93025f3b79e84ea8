package channel

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/store/journal"
)

// binding links a chat to a conversation and says how far the conversation has been delivered to the chat. It is a key of the
// conversation, so both are deleted together. A chat can have several bindings: messages of people go to the newest, and the
// older ones remain until their turns are delivered.
type binding struct {
	Chat         string `json:"chat"`
	Conversation string `json:"conversation"`
	// Bound is when the chat was linked, in milliseconds of the epoch.
	BoundAt int64 `json:"bound"`
	// Cursor is a position before which nothing is left to deliver.
	Cursor feed.Cursor `json:"cursor"`
	// Owner is set if the conversation was not begun in the chat but attached to it: then it is the conversation's owner.
	Owner *owner `json:"owner,omitempty"`
	// Delivered are the turns and messages with events after Cursor that have been delivered.
	Delivered []string `json:"delivered,omitempty"`
	// Turn is the turn or the message whose delivery has begun, and State what the channel saved for it.
	Turn  string          `json:"turn,omitempty"`
	State json.RawMessage `json:"state,omitempty"`

	isDetached atomic.Bool // it must not be stored again
}

// owner is the owner of a conversation.
type owner struct {
	Tenant  string `json:"tenant"`
	Subject string `json:"subject"`
}

// principal returns the principal of a chat, which owns the conversations that are begun in the chat.
func principal(channel, chat string) gateway.Principal {
	return gateway.Principal{Tenant: TenantOf(channel), Subject: chat}
}

// principalOf returns the principal with which a chat uses a conversation. An attached one is used with the rights of its owner, not
// with those of the operator who attached it: an operator may also read the files of other users, which people in the chat must not. If
// it has no owner, only the operator may use it.
func (c *connector) principalOf(b *binding) gateway.Principal {
	if b.Owner != nil {
		return gateway.Principal{Tenant: b.Owner.Tenant, Subject: b.Owner.Subject, Admin: b.Owner.Subject == ""}
	}
	return principal(c.name, b.Chat)
}

// save stores a binding in a transaction of its conversation.
func (c *connector) save(ctx context.Context, b *binding) error {
	v, err := json.Marshal(b)
	if err != nil || b.isDetached.Load() {
		return err
	}
	return c.pipeline.gateway.Update(ctx, c.principalOf(b), gateway.ActionWrite, b.Conversation, func(t gateway.Tx) error {
		t.Set(bindingKey(c.name, b.Chat, b.Conversation), v, 0)
		return nil
	})
}

// remove deletes a binding.
func (c *connector) remove(ctx context.Context, b *binding) error {
	return c.pipeline.gateway.Update(ctx, c.principalOf(b), gateway.ActionWrite, b.Conversation, func(t gateway.Tx) error {
		t.Set(bindingKey(c.name, b.Chat, b.Conversation), nil, 0)
		return nil
	})
}

// bindings returns the stored bindings of all chats, by chat, each in the order in which they were bound.
func (c *connector) bindings(ctx context.Context) (map[string][]*binding, error) {
	byChat := map[string][]*binding{}
	err := list(ctx, c.pipeline.store, bindingPrefix(c.name), func(_ string, b *binding) {
		byChat[b.Chat] = append(byChat[b.Chat], b)
	})
	for _, byChat := range byChat {
		slices.SortFunc(byChat, func(a, b *binding) int { return int(a.BoundAt - b.BoundAt) })
	}
	return byChat, err
}

// create creates a conversation for a chat. key makes a repeated call return the same conversation. The binding is not stored yet.
func (c *connector) create(ctx context.Context, chat, key, agent string) (*binding, error) {
	p := principal(c.name, chat)
	s, _, err := c.pipeline.gateway.Create(ctx, p, gateway.CreateOptions{Key: key, Agent: agent})
	if err != nil {
		return nil, err
	}
	f, err := c.pipeline.gateway.Feed(ctx, p, s.ID)
	if err != nil {
		return nil, err
	}
	defer f.Release()
	return &binding{Chat: chat, Conversation: s.ID, BoundAt: s.Created, Cursor: f.CursorAt(0)}, nil
}

// ChannelOf returns the name of the channel in whose chat a conversation was begun, or "".
func ChannelOf(s *journal.Summary) string {
	name, ok := strings.CutPrefix(s.Tenant, tenantPrefix)
	if !ok {
		return ""
	}
	return name
}
