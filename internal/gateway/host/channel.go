package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/leat-dev/leat/agent/plugin"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// tenantPrefix is the prefix of the tenants of channels.
	tenantPrefix = "$plugin/"
	// maxState bounds the state that a channel stores for a chat, in bytes.
	maxState = 64 << 10
	// maxJobs bounds the unanswered lines of a process. At the limit the session stops reading until a line is answered.
	maxJobs = 64
)

// channel is an installed channel. It outlives its processes, each of which has a separate session.
type channel struct {
	*plugin.Channel
	name    string
	journal Journal
	log     *slog.Logger
	gw      *gateway.Gateway // set before Start

	mu      sync.Mutex
	session *session // session of the running process; nil if none runs
}

// binding is the stored link between a chat and its conversation. Its JSON is the value of the journal key that channel.key returns, so
// the names of the fields must not change.
type binding struct {
	Chat         string          `json:"chat"`
	Conversation string          `json:"conversation"`
	Cursor       feed.Cursor     `json:"cursor"` // last stored position
	State        json.RawMessage `json:"state,omitempty"`
}

// ChannelOf returns the name of the channel that a conversation belongs to, or "" if it isn't a chat of a channel.
func ChannelOf(s *journal.Summary) string {
	if name, ok := strings.CutPrefix(s.Tenant, tenantPrefix); ok {
		return name
	}
	return ""
}

// start lets the channel run processes, which use gw. It is called once for a channel.
func (c *channel) start(gw *gateway.Gateway) {
	c.gw = gw
	c.Start(c.log)
}

// principal returns the principal of a chat, which owns the chat's conversation.
func (c *channel) principal(chat string) gateway.Principal {
	return gateway.Principal{Tenant: tenantPrefix + c.name, Subject: chat}
}

// key returns the journal key of a chat's binding. It is hashed, because the names of chats can be personal data, which keys
// must not contain.
func (c *channel) key(chat string) string {
	sum := sha256.Sum256([]byte(chat))
	return "channel/" + c.name + "/" + hex.EncodeToString(sum[:16])
}

// store writes a binding in a transaction of its conversation, so that it is deleted with the conversation. When it returns without an error,
// the binding is durable, and the channel may get its confirmation.
func (c *channel) store(ctx context.Context, b binding) error {
	v, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return c.gw.Update(ctx, c.principal(b.Chat), gateway.ActionWrite, b.Conversation, func(t gateway.Tx) error {
		t.Set(c.key(b.Chat), v, 0)
		return nil
	})
}

// bindings reads the bindings of all chats of the channel. They are read once per process, into memory: a session keeps them up to date.
func (c *channel) bindings(ctx context.Context) ([]binding, error) {
	entries, err := c.journal.Keys(ctx, "channel/"+c.name+"/")
	if err != nil {
		return nil, fmt.Errorf("chats of channel %s: %w", c.name, err)
	}
	list := make([]binding, 0, len(entries))
	for _, kv := range entries {
		var b binding
		if err := json.Unmarshal(kv.Value, &b); err != nil {
			return nil, fmt.Errorf("chats of channel %s: %w", c.name, err)
		}
		list = append(list, b)
	}
	return list, nil
}

// bind creates the conversation of a chat and stores the binding. The two are separate commits. If the gateway crashed between them, the
// idempotency key makes the next call find the conversation instead of creating a second one. The cursor is that of the head, so the
// channel gets only what is committed from then on.
func (c *channel) bind(ctx context.Context, chat string) (binding, error) {
	p := c.principal(chat)
	s, _, err := c.gw.Create(ctx, p, gateway.CreateOptions{Key: "chat"})
	if err != nil {
		return binding{}, err
	}
	f, err := c.gw.Feed(ctx, p, s.ID)
	if err != nil {
		return binding{}, err
	}
	defer f.Release()
	b := binding{Chat: chat, Conversation: s.ID, Cursor: f.Cursor()}
	return b, c.store(ctx, b)
}

// serve runs a session with one process until the process ends, breaks the protocol or stops reading. The plugin package calls
// it for each new process, one at a time. When it returns, all goroutines of the session have ended.
//
// The session is published before the chats are queued for their first delivery. So every commit is either in the feed that this delivery
// reads, or queues its chat again.
func (c *channel) serve(ctx context.Context, conn *plugin.Conn) error {
	bindings, err := c.bindings(ctx)
	if err != nil {
		c.log.Error("channel can't be served", "error", err)
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	s := newSession(c, conn, bindings)
	c.mu.Lock()
	c.session = s
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.session = nil
		c.mu.Unlock()
		cancel()
		s.tasks.Wait()
	}()
	s.tasks.Go(func() { s.pump(ctx) })
	for _, b := range bindings {
		s.enqueue(b.Chat)
	}
	for {
		select {
		case l, ok := <-conn.Lines():
			if !ok {
				return nil
			}
			if err := s.take(ctx, l); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return conn.Refuse(l.N, err)
			}
		case err := <-s.stuck:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// committed marks the chat of a conversation for delivery, if a process is running. It must not block, because the
// conversation's writer calls it. Without a process nothing is lost: the next session delivers from the stored position.
func (c *channel) committed(conversation string) {
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	if s != nil {
		s.committed(conversation)
	}
}

// isDeleted reports whether an error means that the conversation no longer exists. Depending on the moment, the gateway or an open feed
// reports the deletion.
func isDeleted(err error) bool {
	return errors.Is(err, gateway.ErrNotFound) || errors.Is(err, feed.ErrDeleted)
}
