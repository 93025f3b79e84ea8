// What a client is informed of without a request: the messages of sessions, and changes in the list of sessions.

package openclaw

import (
	"fmt"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// subscribeMessages answers sessions.messages.subscribe: from then on the client gets the messages of a session, which it may not have begun
// yet.
func (c *connection) subscribeMessages(p *keyParams) (any, error) {
	k, conversation, err := c.parse(p)
	if err != nil {
		return nil, err
	}
	if !c.subscriptions[k.full] && len(c.subscriptions) >= maxSessions {
		return nil, server.Errorf(http.StatusTooManyRequests, server.ReasonBusy, "a connection can subscribe to the messages of %d sessions", maxSessions)
	}
	c.subscriptions[k.full] = true
	c.setMessages(k)
	if conversation != nil {
		_, err = c.attach(k, conversation.ID)
	}
	return map[string]any{"subscribed": true, "key": k.full}, err
}

// unsubscribeMessages answers sessions.messages.unsubscribe.
func (c *connection) unsubscribeMessages(p *keyParams) (any, error) {
	k, err := c.parseKey(p.key(), p.AgentID)
	if err != nil {
		return nil, err
	}
	delete(c.subscriptions, k.full)
	c.setMessages(k)
	return map[string]any{"subscribed": false, "key": k.full}, nil
}

// setMessages applies a changed subscription to the session, if it is open.
func (c *connection) setMessages(k sessionKey) {
	if s := c.sessions[k.full]; s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hasMessages = c.subscriptions[k.full]
	}
}

// subscribeSessions answers sessions.subscribe: from then on the client learns of changes in all sessions.
func (c *connection) subscribeSessions(_ *struct{}) (any, error) {
	if c.positions == nil {
		positions := c.s.gw.Positions(c.principal())
		c.positions = positions
		c.conn.Go(func() { c.followList(positions) })
	}
	return map[string]any{"subscribed": true}, nil
}

// unsubscribeSessions answers sessions.unsubscribe.
func (c *connection) unsubscribeSessions(_ *struct{}) (any, error) {
	if c.positions != nil {
		c.positions.Close()
		c.positions = nil
	}
	return map[string]any{"subscribed": false}, nil
}

// sessionUpdated is the payload of sessions.changed for a session that has changed in any way.
type sessionUpdated struct {
	sessionRow
	SessionKey string `json:"sessionKey"`
	Reason     string `json:"reason"`
	TS         int64  `json:"ts"` // epoch milliseconds
}

// followList sends an event for each session that has changed.
func (c *connection) followList(positions *gateway.Positions) {
	for {
		select {
		case <-c.ctx.Done():
			return
		case _, isOpen := <-positions.Changed():
			if !isOpen {
				return
			}
		}
		for _, id := range positions.Take() {
			if err := c.sendUpdate(id); err != nil {
				c.conn.End(fmt.Errorf("follow the list of sessions: %w", err))
				return
			}
		}
	}
}

// sendUpdate sends the event that a session has changed, unless it was deleted.
func (c *connection) sendUpdate(conversation string) error {
	s, err := c.lookUp(c.ctx, conversation, false)
	if err != nil || s == nil {
		return err
	}
	row := c.row(s)
	return c.send("sessions.changed", sessionUpdated{row, row.Key, "update", time.Now().UnixMilli()})
}
