package gateway

import (
	"context"
	"errors"

	"github.com/leat-dev/leat/event"
)

// Do carries out a command. If the command is refused, the error is a *Rejection. Other errors are ErrNotFound, ErrForbidden,
// ErrUnavailable and the context's. After a context error the command may still take effect; a repetition with the same key
// returns its result. Commands of one conversation take effect one after another, in the order in which they reach
// its writer. Access is decided here, and again in the commit where it may have changed in between.
func (g *Gateway) Do(ctx context.Context, p Principal, conversation string, c Command) (Ack, error) {
	// The access that each command needs. What a command may do beyond that (a guest's send, an answer to another user's request)
	// is decided where it is carried out.
	action, ok := map[string]Action{
		CommandSend: ActionWrite, CommandStop: ActionWrite, CommandAnswer: ActionWrite, CommandTruncate: ActionWrite, CommandRestore: ActionWrite,
		CommandUpdate: ActionWrite, CommandInject: ActionAgent, CommandDelete: ActionDelete, CommandShare: ActionShare, CommandUnshare: ActionShare,
	}[c.Type]
	if !ok {
		return Ack{}, reject(ReasonInvalid, "unknown command type %q", c.Type)
	}
	if err := event.CheckID("key", c.Key); err != nil {
		return Ack{}, reject(ReasonInvalid, "%v", err)
	}
	w, err := g.writers.acquire(ctx, conversation)
	// The log can't be read, so there is no writer. A damaged conversation can only be deleted. Users who may not read it get the
	// same error as for one that doesn't exist.
	if errors.Is(err, ErrDamaged) {
		if c.Type == CommandDelete {
			return g.removals.deleteDamaged(ctx, p, conversation, c)
		}
		if _, serr := g.Conversation(ctx, p, action, conversation); serr != nil {
			err = serr
		}
	}
	if err != nil {
		return Ack{}, err
	}
	defer w.release()
	s := w.info()
	if err := Decide(p, action, &s); err != nil {
		return Ack{}, err
	}
	if g.Draining() && c.Type == CommandSend {
		return Ack{}, reject(ReasonDraining, "the gateway is stopping; try again in a moment")
	}
	c.actor = Actor(ctx, p)
	// Reading old ids and receiving files may take long, so both happen before the command is in the writer's queue.
	if c.isIDTaken, err = w.isOldMessageID(ctx, c.Message); err != nil {
		return Ack{}, err
	}
	if c.Message != nil {
		m, missing, err := g.attachments.Receive(ctx, w, p, *c.Message)
		if err != nil {
			return Ack{}, err
		}
		c.Message, c.missing = &m, missing
	}
	switch c.Type {
	case CommandSend:
		return commands{w}.send(ctx, p, asGuest(p, &s, c))
	case CommandStop:
		return w.keyed(ctx, c, func(t *tx) (Ack, error) { return commands{w}.stop(t, c.Turn, p) })
	case CommandAnswer:
		return commands{w}.answer(ctx, p, c)
	case CommandInject:
		return w.keyed(ctx, c, func(t *tx) (Ack, error) { return commands{w}.inject(ctx, t, p, c) })
	case CommandTruncate:
		return g.removals.run(ctx, s, c, func(func()) (Ack, error) { return commands{w}.truncate(ctx, c) })
	case CommandRestore:
		return g.removals.run(ctx, s, c, func(func()) (Ack, error) { return commands{w}.restore(ctx, p, c) })
	case CommandShare:
		return w.keyed(ctx, c, func(t *tx) (Ack, error) { return commands{w}.share(t, c) })
	case CommandUnshare:
		return w.keyed(ctx, c, func(t *tx) (Ack, error) { return commands{w}.unshare(t, c) })
	case CommandUpdate:
		return w.keyed(ctx, c, func(t *tx) (Ack, error) { return commands{w}.update(t, p, c) })
	}
	return g.removals.run(ctx, s, c, func(release func()) (Ack, error) { return commands{w}.delete(ctx, c, nil, release) })
}
