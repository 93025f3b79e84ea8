package telegram

import (
	"context"
	"errors"
	"net/http"

	"github.com/leat-dev/leat/internal/base/retry"
)

// maxProbes is how many numbers of messages are tried to find a lost one.
const maxProbes = 50

// tidy deletes the messages that showed the running turn, also those whose creation got no answer. It is not an error if one
// can't be deleted, unless ctx ends: then a later delivery continues.
func (d *delivery) tidy(ctx context.Context) error {
	for _, id := range []int64{d.state.Card, d.state.Text} {
		if id == 0 {
			continue
		}
		if err := d.remove(ctx, id); err != nil {
			return err
		}
	}
	for q := d.closed(); q != nil; q = d.closed() {
		if err := d.closeQuestion(ctx, q); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			q.Closed = true // its buttons have no effect any more
		}
	}
	for _, after := range d.state.LostAfter {
		if err := d.findLost(ctx, after); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes a message. It waits out penalties and outages until ctx ends.
func (d *delivery) remove(ctx context.Context, id int64) error {
	for failed := 0; ; {
		err := d.request(ctx, d.gate, false, "deleteMessage", target{d.at.chat, id}, nil)
		switch {
		case err == nil || isMissing(err):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case code(err) == http.StatusTooManyRequests: // the gate waits
		case isPassing(err), errors.Is(err, errUnknown): // deleting twice has the effect of deleting once
			if failed++; failed > maxTries {
				return nil
			}
			if err := retry.Sleep(ctx, sendAgain.Wait(failed)); err != nil {
				return err
			}
		default:
			d.log.Warn("a status message can't be deleted", "error", err)
			return nil
		}
	}
}

// maxTries bounds the requests to delete one message.
const maxTries = 5

// findLost deletes a message whose number is not known, because its creation got no answer. The numbers after a known one are
// tried: the Bot API edits only messages of the bot itself, so an edit that succeeds has found it.
func (d *delivery) findLost(ctx context.Context, after int64) error {
	if after == 0 || d.state.FirstID == 0 {
		return nil
	}
	for id := after + 1; id < d.state.FirstID && id <= after+maxProbes; id++ {
		if id == d.state.Card || id == d.state.Text {
			continue
		}
		err := d.edit(ctx, outgoing{Message: id, Text: "…"})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			return d.remove(ctx, id)
		}
	}
	return nil
}

// target are the parameters of deleteMessage.
type target struct {
	ChatID  int64 `json:"chat_id"`
	Message int64 `json:"message_id"`
}
