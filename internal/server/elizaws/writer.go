// What a socket sends: first the missed events, or a frame that says that there are too many, then the live ones.

package elizaws

import (
	"encoding/json"
	"time"

	"github.com/leat-dev/leat/internal/server/internal/socket"
	"github.com/leat-dev/leat/internal/service/signals"
)

// write sends the socket's frames: the greeting, the status, the replay, and then live frames. Only its goroutine writes. It
// returns when the connection ends or a write fails.
//
// The order at the start is: auth-ok, the status, the stored signals. After that, frames of all sources
// are written as they arrive, and the status again every statusEvery.
func (c *webSocket) write(greeting []byte) error {
	if len(greeting) > 0 {
		if err := c.conn.Write(greeting); err != nil {
			return err
		}
	}
	changed := c.s.Agent.Changed()
	if err := c.send(c.s.currentStatus(true, true, false)); err != nil {
		return err
	}
	newSignals := c.s.Signals.Changed()
	if err := c.replay(); err != nil {
		return err
	}
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for {
		// Each channel is taken before its source is read, so that no change in between is missed.
		frames := c.s.Hub.Changed()
		if err := c.sendLive(); err != nil {
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
		case <-newSignals:
			newSignals = c.s.Signals.Changed()
			if err := c.signals(); err != nil {
				return err
			}
		case <-changed:
			changed = c.s.Agent.Changed()
			if err := c.send(c.s.currentStatus(true, false, true)); err != nil {
				return err
			}
		case <-tick.C:
			if err := c.send(c.s.currentStatus(true, false, true)); err != nil {
				return err
			}
		}
	}
}

// gapFrame reports that signals after the client's last one are no longer stored. It is Leat's addition; Eliza's clients ignore
// it.
type gapFrame struct {
	Type  string `json:"type"`
	After string `json:"after"`           // the client's last signal
	Next  string `json:"first,omitempty"` // the next stored one
}

// replay sends the stored signals after the client's cursor, or without one the newest signals.
//
// A cursor inside the log continues there, with a gap frame if signals after it are no longer stored. A
// cursor above the head can't be of this log, so the client gets a gap frame and then the newest signals.
// The entries are collected from the newest to the oldest, so only as many permissions are checked as
// signals are sent.
func (c *webSocket) replay() error {
	log := c.s.Signals
	if c.after >= 0 && c.after <= log.Head() {
		return c.signals()
	}
	cursor, head := c.after, log.Head()
	entries, _ := log.After(0)
	var selected []signals.Entry
	visible := c.s.visibility(c.ctx, c.principal())
	for i := len(entries) - 1; i >= 0 && len(selected) < replayLimit; i-- {
		may, err := visible(entries[i].Conversation)
		if err != nil {
			return err
		}
		if may {
			selected = append(selected, entries[i])
		}
	}
	if cursor >= 0 { // the cursor is of another gateway, or of data that was deleted
		if err := c.gap(cursor, selected[max(len(selected)-1, 0):]); err != nil {
			return err
		}
	}
	for i := len(selected) - 1; i >= 0; i-- {
		if err := c.conn.Write(selected[i].JSON); err != nil {
			return err
		}
	}
	c.after = head // the client had no cursor, so older signals are not a gap
	if len(entries) > 0 {
		c.after = max(head, entries[len(entries)-1].N)
	}
	return c.signals()
}

// gap sends a gap frame. next is the first signal that follows, if there is one.
func (c *webSocket) gap(after int64, next []signals.Entry) error {
	f := gapFrame{Type: "replay-gap", After: signals.ID(after)}
	if len(next) > 0 {
		f.Next = signals.ID(next[0].N)
	}
	return c.send(f)
}

// signals sends the signals after the last sent one that the user may see.
func (c *webSocket) signals() error {
	for {
		head := c.s.Signals.Head()
		entries, gap := c.s.Signals.After(c.after)
		if gap {
			if err := c.gap(c.after, entries); err != nil {
				return err
			}
		}
		if len(entries) == 0 {
			if gap {
				c.after = head // report the gap once
			}
			return nil
		}
		// Send a limited number at a time. The log continues meanwhile, and a slow client must get a gap frame for what it
		// lost.
		for _, e := range entries[:min(len(entries), replayLimit)] {
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

// resyncFrame reports that the client was too slow for live frames and must reload its view.
type resyncFrame struct {
	Type   string `json:"type"`
	Frames int64  `json:"missed"`
}

// sendLive sends the frames that are queued in the hub.
//
// The hub drops frames for a socket that is far behind, and reports their number once. The
// client then reloads its view.
func (c *webSocket) sendLive() error {
	for {
		b, drops, err := c.frames.Next(c.ctx, c.principal(), c.client)
		if err != nil {
			return err
		}
		if drops > 0 {
			if err := c.send(resyncFrame{"resync", drops}); err != nil {
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

// send writes a frame.
func (c *webSocket) send(frame any) error {
	b, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	return c.conn.Write(b)
}
