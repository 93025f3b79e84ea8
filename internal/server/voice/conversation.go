package voice

import (
	"context"
	"errors"
	"net/http"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/voice"
	"github.com/leat-dev/leat/internal/voice/wire"
	"github.com/leat-dev/leat/transcript"
)

// conversation is a conversation of the gateway as one user talks in it. The gateway decides about access at each
// call, so it follows changes of the principal's rights.
type conversation struct {
	gateway   *gateway.Gateway
	principal gateway.Principal
	id        string
}

var _ wire.Conversation = (*conversation)(nil)

// Send implements [wire.Conversation]. A refusal is shown in the words of the API, which are written for people. Faults of the gateway are
// only logged. A repeated key returns the first delivery, so a client may send an utterance again after a lost
// connection.
func (c *conversation) Send(ctx context.Context, key, text string) (wire.Delivery, error) {
	ack, err := c.gateway.Do(ctx, c.principal, c.id, gateway.Command{
		Type: gateway.CommandSend, Key: key, Message: &gateway.CommandMessage{Text: text},
	})
	if err != nil {
		if d := server.Describe(err); d.Status < http.StatusInternalServerError || d.Status == http.StatusServiceUnavailable {
			return wire.Delivery{}, &wire.Refusal{Message: "Your message was refused: " + d.Message + ".", Action: "Say it again later, or write it in the conversation."}
		}
		return wire.Delivery{}, err
	}
	if ack.State == event.MessageSteered {
		return wire.Delivery{SteeredTurn: ack.Turn}, nil
	}
	return wire.Delivery{}, nil
}

// Stop implements [wire.Conversation]. A user who may only read ends the speech and not the turn.
func (c *conversation) Stop(ctx context.Context, turn string) error {
	_, err := c.gateway.Do(ctx, c.principal, c.id, gateway.Command{Type: gateway.CommandStop, Turn: turn})
	if errors.Is(err, gateway.ErrForbidden) {
		return nil
	}
	return err
}

// MarkHeard implements [wire.Conversation].
func (c *conversation) MarkHeard(ctx context.Context, h voice.HeardMark) error {
	return c.gateway.MarkHeard(ctx, c.principal, c.id, gateway.HeardMark{Turn: h.Turn, Offset: h.Offset, IsWhole: h.IsWhole})
}

// HasOtherViewers implements [wire.Conversation].
func (c *conversation) HasOtherViewers() bool { return c.gateway.HasOtherReaders(c.principal, c.id) }

// batchBudget is the size of the batches that a follower polls, in bytes. It uses them only to learn of changes and
// of its loss of access. Their content is dropped.
const batchBudget = 64 << 10

// follower passes the answers of a conversation to a session. One goroutine uses it.
type follower struct {
	// speech gets the whole visible text at each change, not deltas. The session compares it with what it has already
	// spoken.
	speech wire.Speech
	// isOver has the turns in the feed's memory that need no further update: they were passed as ended, or had ended
	// before the connection began.
	isOver map[string]bool
	// open has the turns that were passed and have not ended, in the order of their beginning. If one disappears from
	// the transcript, it still has to be ended in the session.
	open []string
}

// Follow implements [wire.Conversation].
//
// It reads texts from the feed's own fold, so it costs no memory for a second one. The batches that it polls show that something has
// changed, and Poll checks the access each time it was changed. A turn that has ended before the connection began is only passed if the
// client resumes it. It returns the cause of ctx, or the gateway's error when the principal loses access. If the feed
// is lost, it takes a new one and polls from the same cursor, so that no change is missed.
func (c *conversation) Follow(ctx context.Context, speech wire.Speech, resume string) error {
	r, err := c.gateway.Feed(ctx, c.principal, c.id)
	if err != nil {
		return err
	}
	defer func() { r.Release() }()
	f := &follower{speech: speech, isOver: map[string]bool{}}
	r.View(func(t *transcript.Transcript) {
		for _, turn := range t.Turns {
			f.isOver[turn.ID] = !turn.Unfinished() && turn.ID != resume
		}
	})
	cursor := r.Cursor()
	r.View(f.pass)
	for {
		changed := r.Notify()
		b, err := r.Poll(ctx, cursor, batchBudget)
		switch {
		case errors.Is(err, feed.ErrLost):
			next, err := c.gateway.Feed(ctx, c.principal, c.id)
			if err != nil {
				return err
			}
			r.Release()
			r = next
		case err != nil:
			return err
		case b != nil:
			cursor = b.Cursor
			r.View(f.pass)
		default:
			select {
			case <-changed:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// pass passes what has changed. It copies the texts of the running turns, which are as long as people can listen to.
func (f *follower) pass(t *transcript.Transcript) {
	for _, id := range f.open {
		if t.Turn(id) == nil { // it was removed, for example because its answer is made again
			f.speech.Update(id, "", true)
		}
	}
	f.open = f.open[:0]
	isOver := make(map[string]bool, len(t.Turns))
	for _, turn := range t.Turns {
		switch {
		case f.isOver[turn.ID]:
			isOver[turn.ID] = true
		case turn.State == transcript.TurnQueued, turn.Parent != "": // a turn inside of another one works for that, and its text isn't the answer
		case turn.Unfinished():
			f.speech.Update(turn.ID, t.Visible(turn.ID), false)
			f.open = append(f.open, turn.ID)
		default:
			isOver[turn.ID] = true
			if turn.Outcome != event.Completed && turn.Outcome != event.Cancelled && turn.Error != nil {
				f.speech.Post(wire.TurnFailed(turn.ID, turn.Error.Message))
			}
			f.speech.Update(turn.ID, t.Visible(turn.ID), true)
		}
	}
	f.isOver = isOver
}
