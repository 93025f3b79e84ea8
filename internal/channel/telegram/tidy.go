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
	for _, lost := range d.state.Lost {
		if err := d.findLost(ctx, lost); err != nil {
			return err
		}
	}
	return nil
}

// gap is where a message is whose creation got no answer: between two numbers of messages in the chat. Each is 0 if it is not
// known.
type gap struct {
	After  int64 `json:"after,omitempty"`
	Before int64 `json:"before,omitempty"`
}

// maxTries bounds the requests to change one message at the end.
const maxTries = 8

// remove deletes a message.
func (d *delivery) remove(ctx context.Context, id int64) error {
	err := d.insist(ctx, false, "deleteMessage", target{d.at.chat, id})
	if err != nil && !isMissing(err) && ctx.Err() == nil {
		d.log.Warn("a status message can't be deleted", "error", err)
	}
	return ctx.Err()
}

// insist repeats a request until it is answered. It waits out penalties and outages. The request must have the same effect if it is
// repeated. The result is a refusal, or the error of ctx.
func (d *delivery) insist(ctx context.Context, isMessage bool, method string, params any) error {
	for failed := 0; ; {
		err := d.request(ctx, d.gate, isMessage, method, params, nil)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case code(err) == http.StatusTooManyRequests: // the gate waits
		case isPassing(err), errors.Is(err, errUnknown):
			if failed++; failed > maxTries {
				return err
			}
			if err := retry.Sleep(ctx, sendAgain.Wait(failed)); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// findLost deletes a message whose number is not known. The numbers in the gap are tried: the Bot API edits only messages of the
// bot itself, so an edit that succeeds has found it. Numbers are shared with other chats, so in a busy bot the gap can be too
// long; then the message stays.
func (d *delivery) findLost(ctx context.Context, lost gap) error {
	from, before := lost.After+1, lost.Before
	switch {
	case before == 0 && lost.After == 0:
		return nil
	case before == 0:
		before = from + maxProbes
	}
	for id := max(from, before-maxProbes); id < before; id++ {
		err := d.insist(ctx, true, "editMessageText", outgoing{ChatID: d.at.chat, Message: id, Text: "…"})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil || isUnmodified(err):
			return d.remove(ctx, id)
		}
	}
	return nil
}

// target are the parameters of a request that names a message only.
type target struct {
	ChatID  int64 `json:"chat_id"`
	Message int64 `json:"message_id"`
}
