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
	// tenantPrefix begins the tenants of channels.
	tenantPrefix = "$plugin/"
	// maxState bounds what a channel keeps of a chat, in bytes.
	maxState = 64 << 10
	// maxJobs bounds what a channel may have asked for and not been answered; then it is not read.
	maxJobs = 64
)

// channel is one that is installed.
type channel struct {
	*plugin.Channel
	h    *Host
	name string
	log  *slog.Logger
	gw   *gateway.Gateway // set before it is started

	mu      sync.Mutex
	session *session // of the process that runs
}

// binding is a chat with its conversation, as it is kept.
type binding struct {
	Chat         string          `json:"chat"`
	Conversation string          `json:"conversation"`
	Cursor       feed.Cursor     `json:"cursor"` // the position that was kept last
	State        json.RawMessage `json:"state,omitempty"`
}

// ChannelOf names the channel whose chat a conversation is; empty where it is none's.
func ChannelOf(s *journal.Summary) string {
	name, ok := strings.CutPrefix(s.Tenant, tenantPrefix)
	if !ok {
		return ""
	}
	return name
}

// principal is the chat.
func (c *channel) principal(chat string) gateway.Principal {
	return gateway.Principal{Tenant: tenantPrefix + c.name, Subject: chat}
}

func (c *channel) key(chat string) string {
	sum := sha256.Sum256([]byte(chat)) // names stand in no key
	return "channel/" + c.name + "/" + hex.EncodeToString(sum[:16])
}

// keep writes a binding down.
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

// known reads what was kept of all chats.
func (c *channel) bindings(ctx context.Context) ([]binding, error) {
	entries, err := c.h.cfg.Journal.Keys(ctx, "channel/"+c.name+"/")
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

// bind makes a conversation for a chat. A repeat after a crash finds the one that was made.
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

// serve speaks with one process.
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

func (c *channel) committed(conversation string) {
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	if s != nil {
		s.committed(conversation)
	}
}

// gone reports whether a conversation is not there any more.
func isDeleted(err error) bool {
	return errors.Is(err, gateway.ErrNotFound) || errors.Is(err, feed.ErrDeleted)
}
