package host

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/leat-dev/leat/agent/plugin"
	"github.com/leat-dev/leat/internal/service/plugins"
)

// ChannelState is the condition of one channel, for operators.
type ChannelState struct {
	Name         string
	IsReady      bool
	Err          error               // if it isn't ready: why, if that is known
	Capabilities plugin.Capabilities // of the newest process
	Chats        int                 // with a conversation
	Deliveries   int                 // chats to which something is being delivered
	Failures     int                 // deliveries that the channel gave up since the start
	LastFailure  error               // the newest of them, at FailedAt
	FailedAt     time.Time
}

// Channels returns the conditions of all channels, by name, including those that could not be run.
func (h *Host) Channels(ctx context.Context) ([]ChannelState, error) {
	h.mu.Lock()
	channels := maps.Clone(h.channels)
	states := map[string]ChannelState{}
	for name, f := range h.failures {
		if f.kind == plugins.KindChannel {
			states[name] = ChannelState{Name: name, Err: f.err}
		}
	}
	h.mu.Unlock()
	for name, c := range channels {
		s, err := c.state(ctx)
		if err != nil {
			return nil, err
		}
		states[name] = s
	}
	list := make([]ChannelState, 0, len(states))
	for _, name := range slices.Sorted(maps.Keys(states)) {
		list = append(list, states[name])
	}
	return list, nil
}

// state returns the condition of a channel. While no process runs, its chats are counted in the journal.
func (c *channel) state(ctx context.Context) (ChannelState, error) {
	s := ChannelState{Name: c.name}
	s.IsReady, s.Err = c.State()
	s.Failures, s.FailedAt, s.LastFailure = c.record.read()
	c.mu.Lock()
	session := c.session
	s.Capabilities = c.capabilities
	c.mu.Unlock()
	if session != nil {
		s.Chats, s.Deliveries = session.count()
		return s, nil
	}
	bindings, err := c.bindings(ctx)
	s.Chats = len(bindings)
	return s, err
}
