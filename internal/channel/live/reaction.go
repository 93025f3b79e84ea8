package live

import "context"

// workingReaction is the reaction to a message that is being answered. It has to be in the fixed set of emoji that Telegram permits.
const workingReaction = "👀"

// react reacts to the message that the turn answers. It is a courtesy: if it fails, the turn is delivered without it.
func (d *delivery) react(ctx context.Context) error {
	d.view.reacts = false
	ch, ok := d.chat.(ReactChat)
	if !ok {
		return nil
	}
	d.state.Reacted = true // stored with the next message, and if it is not, the reaction may stay
	if err := d.gate.try(ctx, false, func() error { return ch.React(ctx, d.state.ReplyTo, workingReaction) }); err != nil {
		d.bot.log.Debug("reaction to a message failed", "error", err)
	}
	return d.save(ctx)
}

// removeReaction removes the reaction when the turn was delivered.
func (d *delivery) removeReaction(ctx context.Context) error {
	ch, ok := d.chat.(ReactChat)
	if !ok || !d.state.Reacted {
		return nil
	}
	if err := d.insist(ctx, false, maxTries, func() error { return ch.React(ctx, d.state.ReplyTo, "") }); err != nil && ctx.Err() == nil {
		d.bot.log.Debug("reaction to a message can't be removed", "error", err)
	}
	return ctx.Err()
}
