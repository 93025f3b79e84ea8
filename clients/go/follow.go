package leat

import (
	"context"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Update is the state of a conversation after a change.
type Update struct {
	// Transcript is the current state. The callback must not change it, nor keep it after it returns.
	Transcript *transcript.Transcript
	// Cursor is the transcript's position. A later call that gets it in [StreamOptions] continues there.
	Cursor string
	// Reset is true if a snapshot has replaced the transcript: for the first update, and if the gateway couldn't resume from the last
	// cursor. Events is then empty.
	Reset bool
	// Events are the events since the last update. A renderer that draws Transcript can ignore them.
	Events []event.Event
	// Connected is true for the first update of a connection, whose transcript is unchanged.
	Connected bool

	epoch string
	seq   int64 // of the cursor
}

// FollowOptions are the options of [Client.FollowWith].
type FollowOptions = StreamOptions

// Follow keeps a transcript of the conversation and calls fn after each change, until fn returns an error. It returns that error, or nil for
// ErrStop. See [Client.Stream] for the other errors.
func (c *Client) Follow(ctx context.Context, id string, fn func(Update) error) error {
	return c.FollowWith(ctx, id, FollowOptions{}, fn)
}

// FollowWith is Follow with options. It ignores the cursor in o, because a transcript must begin with a snapshot.
func (c *Client) FollowWith(ctx context.Context, id string, o FollowOptions, fn func(Update) error) error {
	o.Cursor = ""
	u := Update{Transcript: &transcript.Transcript{}}
	return c.Stream(ctx, id, o, func(f *Frame) error {
		u.Connected, u.Reset, u.Events = false, false, nil
		switch f.Type {
		case "hello":
			u.Connected = true
		case "snapshot":
			u.Transcript.Reset(f.Transcript)
			u.Reset, u.Cursor, u.epoch, u.seq = true, f.Cursor, f.Epoch, f.Transcript.Seq
		case "batch":
			if u.Cursor == "" {
				return errResync
			}
			for i := range f.Events {
				if err := u.Transcript.Apply(&f.Events[i]); err != nil {
					// The transcript may be wrong, and later events can't correct it: start again from a snapshot.
					c.report(ctx, id, u.Transcript, &f.Events[i], err)
					u.Cursor = ""
					return errResync
				}
			}
			u.Events, u.Cursor, u.seq = f.Events, f.Cursor, f.Seq
		default:
			return nil // a frame type of a newer gateway
		}
		return fn(u)
	})
}

// AddPage puts a page before the transcript's first message. before is the id that the page was requested with. It returns false if the
// page doesn't fit, because the conversation has changed since; then request the page again.
func (u Update) AddPage(p *Page, before string) bool {
	return u.epoch != "" && u.epoch == p.Epoch && u.Transcript.AddPage(p.Transcript, before, u.seq)
}
