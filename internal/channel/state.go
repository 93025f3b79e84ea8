package channel

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// State is the condition of one channel, for operators.
type State struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	Chats      int    `json:"chats"`      // with a conversation
	Backlog    int    `json:"backlog"`    // messages of people that wait to be handled
	Deliveries int    `json:"deliveries"` // chats to which something is being delivered
	Failures   int    `json:"failures"`   // deliveries that failed for good since the start
	// Link leads to the bot, if the channel knows it.
	Link string `json:"link,omitempty"`
	// Err is why the channel doesn't work, or nil. LastFailure is the newest failure of a delivery, and FailedAt its time.
	Err         error     `json:"-"`
	LastFailure error     `json:"-"`
	FailedAt    time.Time `json:"-"`
}

// linker is a channel that knows the address at which people find it. It returns "" while it doesn't.
type linker interface{ Link() string }

// States returns the conditions of all channels, by name.
func (p *Pipeline) States() []State {
	list := make([]State, 0, len(p.connectors))
	for _, name := range slices.Sorted(maps.Keys(p.connectors)) {
		list = append(list, p.connectors[name].state())
	}
	return list
}

func (c *connector) state() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := State{Name: c.name, Kind: c.channel.Platform(), Failures: c.failures, Err: c.runError, LastFailure: c.lastError, FailedAt: c.failedAt}
	if l, ok := c.channel.(linker); ok {
		s.Link = l.Link()
	}
	for _, t := range c.chats {
		s.Chats += cmp.Compare(len(t.bindings), 0)
		if t.isRunning {
			s.Deliveries++
		}
	}
	bus := c.pipeline.bus
	s.Backlog = bus.inbound.backlog(c.name)
	return s
}
