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
	"github.com/leat-dev/leat/internal/base/keylock"
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
	record  *record          // of failures; that of the version that the channel has replaced
	report  func(context.Context, Failure) error
	binds   keylock.Locks // by chat: held while the stored binding of the chat is changed

	mu           sync.Mutex          // protects the fields below
	session      *session            // session of the running process; nil if none runs
	capabilities plugin.Capabilities // of the newest process
}

// binding is the stored link between a chat and its conversation. Its JSON is the value of the journal key that channel.key returns, so
// the names of the fields must not change. A chat has one binding: the key belongs to the conversation that was bound last, and is deleted
// with it.
type binding struct {
	Chat         string          `json:"chat"`
	Conversation string          `json:"conversation"`
	Cursor       feed.Cursor     `json:"cursor"` // last stored position
	State        json.RawMessage `json:"state,omitempty"`
	// Owner is set if the conversation was attached to the chat: then it is the conversation's owner.
	Owner *owner `json:"owner,omitempty"`
}

// owner is the owner of a conversation. Both fields are empty for one that the operator began.
type owner struct {
	Tenant  string `json:"tenant"`
	Subject string `json:"subject"`
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

// principal returns the principal of a chat, which owns the conversations that are begun in the chat.
func (c *channel) principal(chat string) gateway.Principal {
	return gateway.Principal{Tenant: tenantPrefix + c.name, Subject: chat}
}

// principalOf returns the principal with which a chat uses its conversation. An attached one is used with the rights of its owner, not
// with those of the operator who attached it: an operator may also read the files of other users, which people in the chat must not. If
// it has no owner, only the operator may use it.
func (c *channel) principalOf(b binding) gateway.Principal {
	if b.Owner != nil {
		return gateway.Principal{Tenant: b.Owner.Tenant, Subject: b.Owner.Subject, Admin: b.Owner.Subject == ""}
	}
	return c.principal(b.Chat)
}

// key returns the journal key of a chat's binding. It is hashed, because the names of chats can be personal data, which keys
// must not contain.
func (c *channel) key(chat string) string {
	return "channel/" + c.name + "/" + digest(chat)
}

// digest shortens a name to a fixed length that reveals nothing about it.
func digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// store writes a binding in a transaction of its conversation, so that it is deleted with the conversation. When it returns without an error,
// the binding is durable, and the channel may get its confirmation.
func (c *channel) store(ctx context.Context, b binding) error {
	v, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return c.write(ctx, b, v)
}

// write writes the key of a binding, or deletes it if value is nil. The caller holds the lock of the chat in binds.
func (c *channel) write(ctx context.Context, b binding, value []byte) error {
	return c.gw.Update(ctx, c.principalOf(b), gateway.ActionWrite, b.Conversation, func(t gateway.Tx) error {
		t.Set(c.key(b.Chat), value, 0)
		return nil
	})
}

// stored reads the binding of a chat. It is zero if the chat has none.
func (c *channel) stored(ctx context.Context, chat string) (binding, error) {
	list, err := c.read(ctx, c.key(chat))
	if err != nil || len(list) == 0 {
		return binding{}, err
	}
	return list[0], nil
}

// bindings reads the bindings of all chats of the channel. They are read once per process, into memory: a session keeps them up to date.
func (c *channel) bindings(ctx context.Context) ([]binding, error) {
	return c.read(ctx, "channel/"+c.name+"/")
}

// read reads the bindings whose keys have a prefix.
func (c *channel) read(ctx context.Context, prefix string) ([]binding, error) {
	entries, err := c.journal.Keys(ctx, prefix)
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

// bind creates a conversation for a chat and stores the binding. The two are separate commits. If the gateway crashed between them, the
// channel repeats the command, whose id makes the next call find the conversation instead of creating a second one. The cursor is that of
// the head, so the channel gets only what is committed from then on.
func (c *channel) bind(ctx context.Context, chat, command string) (binding, error) {
	p := c.principal(chat)
	s, _, err := c.gw.Create(ctx, p, gateway.CreateOptions{Key: "chat/" + digest(command)})
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
// The session is published before the bindings are read. So every commit is either in the feed that the first delivery of its chat
// reads, or queues the chat again, and every binding that changes meanwhile is either read or passed to the session.
func (c *channel) serve(ctx context.Context, conn *plugin.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	s := newSession(c, conn)
	c.mu.Lock()
	c.session, c.capabilities = s, conn.Capabilities()
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.session = nil
		c.mu.Unlock()
		cancel()
		s.tasks.Wait()
	}()
	bindings, err := c.bindings(ctx)
	if err != nil {
		c.log.Error("channel can't be served", "error", err)
		return err
	}
	s.load(bindings)
	s.tasks.Go(func() { s.pump(ctx) })
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

// current returns the session of the running process, or nil.
func (c *channel) current() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// committed marks the chats of a conversation for delivery, if a process is running. It must not block, because the
// conversation's writer calls it. Without a process nothing is lost: the next session delivers from the stored position.
func (c *channel) committed(conversation string) {
	if s := c.current(); s != nil {
		s.committed(conversation)
	}
}

// isDeleted reports whether an error means that the conversation no longer exists. Depending on the moment, the gateway or an open feed
// reports the deletion.
func isDeleted(err error) bool {
	return errors.Is(err, gateway.ErrNotFound) || errors.Is(err, feed.ErrDeleted)
}
