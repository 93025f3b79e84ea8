package leat

import (
	"context"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Update is a conversation after something has happened in it.
type Update struct {
	// Transcript is how it stands now. It is live: it may be read, not changed, until the function that got it returns.
	Transcript *transcript.Transcript
	// Cursor is the position of the transcript.
	Cursor string
	// Reset says that the transcript was replaced by a snapshot, at the beginning and where the gateway could not go on
	// from the last position; Events is empty then.
	Reset bool
	// Events are what led here. Renderers that draw the state need not look at them.
	Events []event.Event
	// Connected is a new connection's first update before anything came: nothing has changed.
	Connected bool

	epoch string
	seq   int64 // of the cursor
}

// FollowOptions say who is told of interruptions.
type FollowOptions = StreamOptions

// Follow keeps a transcript of the conversation and calls fn each time it has changed, until fn returns an error: ErrStop
// ends it without one. See [Client.Stream] for how it ends otherwise.
func (c *Client) Follow(ctx context.Context, id string, fn func(Update) error) error {
	return c.FollowWith(ctx, id, FollowOptions{}, fn)
}

// FollowWith is Follow with options. A cursor among them is not used: a transcript begins with a snapshot.
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
					// What was shown may be wrong, and what comes can't mend it.
					c.report(ctx, id, u.Transcript, &f.Events[i], err)
					u.Cursor = ""
					return errResync
				}
			}
			u.Events, u.Cursor, u.seq = f.Events, f.Cursor, f.Seq
		default:
			return nil // a kind of frame that came after this client
		}
		return fn(u)
	})
}

// AddPage puts a page before what the transcript holds. It reports false where the page does not fit, because the
// conversation has moved on since it was made: get it again. before is the id that the page was asked with.
func (u Update) AddPage(p *Page, before string) bool {
	return u.epoch != "" && u.epoch == p.Epoch && u.Transcript.AddPage(p.Transcript, before, u.seq)
}
