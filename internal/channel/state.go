package channel

import (
	"cmp"
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
	Penalized  int    `json:"penalized"`  // chats that the platform makes wait because of its limits
	// Link leads to the bot, if the channel knows it.
	Link string `json:"link,omitempty"`
	// Err is why the channel doesn't work, or nil. LastFailure is the newest failure of a delivery, and FailedAt its time.
	// PenaltyEnd is until when the platform makes chats wait.
	Err         error     `json:"-"`
	LastFailure error     `json:"-"`
	FailedAt    time.Time `json:"-"`
	PenaltyEnd  time.Time `json:"-"`
}

// linker is a channel that knows the address at which people find it. It returns "" while it doesn't.
type linker interface{ Link() string }

// limited is a channel that knows the limits in force.
type limited interface {
	Penalties() (chats int, end time.Time)
}

// States returns the conditions of all channels, by name.
func (p *Pipeline) States() []State {
	connectors := p.list()
	list := make([]State, len(connectors))
	for i, c := range connectors {
		list[i] = c.state()
	}
	return list
}

// state returns what operators see of the channel.
func (c *connector) state() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := c.newest.channel
	s := State{Name: c.name, Kind: ch.Platform(), Failures: c.failures, Err: c.runError, LastFailure: c.lastError, FailedAt: c.failedAt}
	if l, ok := ch.(linker); ok {
		s.Link = l.Link()
	}
	if l, ok := ch.(limited); ok {
		s.Penalized, s.PenaltyEnd = l.Penalties()
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
