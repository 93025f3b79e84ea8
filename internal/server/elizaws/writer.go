package elizaws

import (
	"context"
	"encoding/json"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/service/signals"
)

// write is the socket's one writer: the greeting, the status, the replay, and what happens then. Its error is why it ends.
func (c *socket) write(greeting []byte) error {
	if len(greeting) > 0 {
		if err := c.put(greeting); err != nil {
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
			return context.Cause(c.ctx)
		case b := <-c.answers:
			if err := c.put(b); err != nil {
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
func (c *socket) replay() error {
	log := c.s.opt.Signals
	if c.after >= 0 && c.after <= log.Head() {
		return c.signals()
	}
	told, head := c.after, log.Head()
	all, _ := log.After(0)
	var mine []signals.Entry
	seen := map[string]bool{}
	for i := len(all) - 1; i >= 0 && len(mine) < replay; i-- {
		may, asked := seen[all[i].Conversation]
		if !asked {
			var err error
			if may, err = c.s.sees(c.ctx, c.who(), all[i].Conversation); err != nil {
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
		if err := c.put(mine[i].JSON); err != nil {
			return err
		}
	}
	c.after = head // what came before it and is not held is no gap to who has told of none
	if len(all) > 0 {
		c.after = max(head, all[len(all)-1].N)
	}
	return c.signals()
}

func (c *socket) gap(after int64, next []signals.Entry) error {
	f := gapFrame{Type: "replay-gap", After: signals.ID(after)}
	if len(next) > 0 {
		f.First = signals.ID(next[0].N)
	}
	return c.send(f)
}

// signals sends what came after the last one that was sent, as far as the user may see it.
func (c *socket) signals() error {
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
		for _, e := range all[:min(len(all), replay)] {
			may, err := c.s.sees(c.ctx, c.who(), e.Conversation)
			if err != nil {
				return err
			}
			if may {
				if err := c.put(e.JSON); err != nil {
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
func (c *socket) live() error {
	for {
		b, missed, err := c.frames.Next(c.ctx, c.who(), c.client)
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
		if err := c.put(b); err != nil {
			return err
		}
	}
}

// send writes a frame that is made here.
func (c *socket) send(frame any) error {
	b, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	return c.put(b)
}

// put writes one frame. It blocks while the client takes nothing, up to the stall limit. Its context is not the socket's, whose
// end is told to the client first.
func (c *socket) put(b []byte) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.s.srv.Options().Stall)
	defer cancel()
	c.writing.Store(true)
	defer c.writing.Store(false)
	if err := c.conn.Write(ctx, websocket.MessageText, b); err != nil {
		return errGone
	}
	return nil
}
