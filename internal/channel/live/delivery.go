package live

import (
	"context"
	"time"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel"
)

// maxLost is how many messages with an unknown outcome a turn may have before nothing more is shown of it while it runs.
const maxLost = 3

// delivery is one call of Deliver. Only the goroutine of Deliver uses it, so it needs no locks. Data that has to survive the process
// is in state.
type delivery struct {
	sender
	// An answer that is shown as a draft needs no message until it is complete.
	drafts   DraftChat // nil if the chat has no drafts
	metadata channel.StreamMetadata
	stream   *channel.Stream
	state    state
	// The view and the stream are rebuilt from the events of every delivery. Only state comes from the one before.
	view      view
	status    *Status // of the card
	startedAt time.Time
	// It is extended by what the text has gained, because parsing the whole of a long answer for every edit would take longer each
	// time.
	doc     *markup.Document // the text as it was rendered last
	visible []string         // what the messages of state.Texts show; shorter if that is not known
	// A success of any kind resets it, and each failure lengthens the pause before the next live update.
	failed int       // consecutive failures of live updates
	pause  time.Time // no live update before
	// isFinishing means that an earlier delivery had begun to send the answer. Then nothing of the running turn is shown again: it
	// would replace parts of the answer that are complete.
	isFinishing bool
}

// follow shows the running turn until it has ended. One loop does everything, so at most one request is in flight; while it is,
// events wait, and the next request shows the newest state.
func (d *delivery) follow(ctx context.Context, events <-chan channel.StreamEvent) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		// With too many lost messages the connection is so bad that showing more would only litter the chat.
		do, at := noAction, time.Time{}
		if len(d.state.Gaps) < maxLost && !d.isFinishing {
			do, at = d.view.next(latest(d.gate.free(), d.pause), latest(d.gate.unblocked(), d.pause))
		}
		wait := time.Until(at)
		if do == noAction {
			wait = heartbeat // nothing is due before the next event
		}
		timer.Reset(max(0, wait))
		select {
		case e, ok := <-events:
			if !ok {
				return d.checkEnd(ctx)
			}
			if err := d.stream.Apply(e); err != nil {
				return err
			}
			d.update()
			continue
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		switch {
		case do == noAction:
		// Nothing is sent, but the state is not lost: the next round after the pause shows the newest one.
		case do != askQuestion && d.bot.gates.isCrowded():
			d.pause = time.Now().Add(crowded)
		default:
			if err := d.perform(ctx, do); err != nil {
				return err
			}
		}
	}
}

// update tells the view what should be seen now. Rendering the card here and not in the view makes two states with the same card
// equal, so an event that changes nothing visible causes no request.
func (d *delivery) update() {
	text, card := d.stream.Iteration(), ""
	if d.bot.rules.InPlace {
		text = d.stream.Text()
	}
	if d.status = newStatus(d.stream); d.status != nil {
		card = d.status.Markdown()
	}
	d.view.update(time.Now(), text, card)
	d.view.asks, d.view.closes = d.unasked() != nil, d.closed() != nil
}

// checkEnd returns nil if the events ended because the turn did. If the source of the events broke off, the turn may still be
// running. Finishing then would present half an answer as the whole.
func (d *delivery) checkEnd(ctx context.Context) error {
	if turn := d.stream.Turn(); d.stream.IsRemoved() || turn != nil && !turn.Unfinished() {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errCut
}
