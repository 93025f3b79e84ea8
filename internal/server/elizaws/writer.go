package elizaws

import (
	"encoding/json"
	"time"

	"github.com/leat-dev/leat/internal/server/internal/socket"
	"github.com/leat-dev/leat/internal/service/signals"
)

// write is the socket's one writer: the greeting, the status, the replay, and what happens then. Its error is why it ends.
func (c *webSocket) write(greeting []byte) error {
	if len(greeting) > 0 {
		if err := c.conn.Write(greeting); err != nil {
			return err
		}
	}
	changed := c.s.opt.Agent.Changed()
	if err := c.send(c.s.now(true, true, false)); err != nil {
		return err
	}
	more := c.s.opt.Signals.Changed()
	if err := c.replay(); err != nil {
		return err
	}
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for {
		// The channels are taken before what they tell of is looked at, so that nothing comes in between.
		frames := c.s.opt.Hub.Changed()
		if err := c.live(); err != nil {
			return err
		}
		select {
		case <-c.ctx.Done():
			return socket.ErrDisconnected
		case b := <-c.answers:
			if err := c.conn.Write(b); err != nil {
				return err
			}
		case <-frames:
		case <-more:
			more = c.s.opt.Signals.Changed()
			if err := c.signals(); err != nil {
				return err
			}
		case <-changed:
			changed = c.s.opt.Agent.Changed()
			if err := c.send(c.s.now(true, false, true)); err != nil {
				return err
			}
		case <-tick.C:
			if err := c.send(c.s.now(true, false, true)); err != nil {
				return err
			}
		}
	}
}

// gapFrame says that signals which the client has not had are kept no more. It is Leat's own; Eliza's clients ignore it.
type gapFrame struct {
	Type  string `json:"type"`
	After string `json:"after"`           // the last that the client had
	First string `json:"first,omitempty"` // the next that there is
}

// replay shows what a client that comes is to know: the last signals, or all after the one that it had.
func (c *webSocket) replay() error {
	log := c.s.opt.Signals
	if c.after >= 0 && c.after <= log.Head() {
		return c.signals()
	}
	told, head := c.after, log.Head()
	all, _ := log.After(0)
	var mine []signals.Entry
	seen := map[string]bool{}
	for i := len(all) - 1; i >= 0 && len(mine) < replayLimit; i-- {
		may, asked := seen[all[i].Conversation]
		if !asked {
			var err error
			if may, err = c.s.sees(c.ctx, c.principal(), all[i].Conversation); err != nil {
				return err
			}
			seen[all[i].Conversation] = may
		}
		if may {
			mine = append(mine, all[i])
		}
	}
	if told >= 0 { // it had signals that there never were here: of another gateway, perhaps
		if err := c.gap(told, mine[max(len(mine)-1, 0):]); err != nil {
			return err
		}
	}
	for i := len(mine) - 1; i >= 0; i-- {
		if err := c.conn.Write(mine[i].JSON); err != nil {
			return err
		}
	}
	c.after = head // what came before it and is not held is no gap to who has told of none
	if len(all) > 0 {
		c.after = max(head, all[len(all)-1].N)
	}
	return c.signals()
}

func (c *webSocket) gap(after int64, next []signals.Entry) error {
	f := gapFrame{Type: "replay-gap", After: signals.ID(after)}
	if len(next) > 0 {
		f.First = signals.ID(next[0].N)
	}
	return c.send(f)
}

// signals sends what came after the last one that was sent, as far as the user may see it.
func (c *webSocket) signals() error {
	for {
		head := c.s.opt.Signals.Head()
		all, gap := c.s.opt.Signals.After(c.after)
		if gap {
			if err := c.gap(c.after, all); err != nil {
				return err
			}
		}
		if len(all) == 0 {
			if gap {
				c.after = head // it is told once
			}
			return nil
		}
		// Not all at once: while they are written, the log goes on, and a slow client is to be told of what it has lost.
		for _, e := range all[:min(len(all), replayLimit)] {
			may, err := c.s.sees(c.ctx, c.principal(), e.Conversation)
			if err != nil {
				return err
			}
			if may {
				if err := c.conn.Write(e.JSON); err != nil {
					return err
				}
			}
			c.after = e.N
		}
	}
}

// lostFrame says that the client was too slow for live frames, and should read again what it shows.
type lostFrame struct {
	Type   string `json:"type"`
	Missed int64  `json:"missed"`
}

// live sends the frames that wait in the hub.
func (c *webSocket) live() error {
	for {
		b, missed, err := c.frames.Next(c.ctx, c.principal(), c.client)
		if err != nil {
			return err
		}
		if missed > 0 {
			if err := c.send(lostFrame{"resync", missed}); err != nil {
				return err
			}
		}
		if b == nil {
			return nil
		}
		if err := c.conn.Write(b); err != nil {
			return err
		}
	}
}

// send writes a frame that is made here.
func (c *webSocket) send(frame any) error {
	b, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	return c.conn.Write(b)
}
