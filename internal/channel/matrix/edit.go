package matrix

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/leat-dev/leat/internal/channel/live"
)

// edit is the newest edit of a message.
type edit struct {
	// path contains the transaction id, so a repetition has to use it unchanged.
	path string
	// params is the body of the request, or nil if the message doesn't show it.
	params json.RawMessage
	// isOpen means that no answer has arrived.
	isOpen bool
	// revision counts the edits of the message in this delivery, and is a part of the transaction id.
	revision int
	at       time.Time // of the last request
	card     string    // what a status card shows apart from the elapsed time
}

// Edit implements [live.Chat]. A final edit also checks that the message still exists, because the answer would otherwise be lost
// without an error.
func (t *chat) Edit(ctx context.Context, id string, p live.Post) error {
	e := t.edits[id]
	if e == nil {
		e = &edit{at: time.Now()}
		t.edits[id] = e
	}
	params, err := json.Marshal(t.message(p).replacing(id))
	if err != nil {
		return fmt.Errorf("matrix: edit: %w", err)
	}
	isShown := bytes.Equal(params, e.params)
	if e.isOpen { // it could take effect after the new one
		if err := t.sendEdit(ctx, e); err != nil {
			return err
		}
	}
	if !isShown {
		card := ""
		if p.Kind == live.Card {
			if card = p.Status.Markdown(); card == e.card && time.Since(e.at) < timeGap {
				return nil
			}
		}
		if wait := t.slowness(e); p.IsLive && wait > 0 {
			return &live.Penalty{Wait: wait, Err: errSlow}
		}
		e.revision++
		e.path, e.params, e.card = t.sendPath(transaction(t.nonce, id, strconv.Itoa(e.revision))), params, card
		if err := t.sendEdit(ctx, e); err != nil {
			return err
		}
	}
	if p.IsLive {
		return nil
	}
	return t.checkExists(ctx, id)
}

// sendEdit sends an edit, perhaps once more. During a penalty a repetition stays open, because the first request may still take
// effect.
func (t *chat) sendEdit(ctx context.Context, e *edit) error {
	isRepeated := e.isOpen
	e.isOpen, e.at = true, time.Now()
	err := t.call(ctx, http.MethodPut, e.path, e.params, nil)
	_, isPenalty := errors.AsType[*live.Penalty](err)
	switch {
	case err == nil:
		e.isOpen = false
	case errors.Is(err, live.ErrUnknown), ctx.Err() != nil, isPenalty && isRepeated:
	default: // the message doesn't show it
		e.isOpen, e.params = false, nil
	}
	return err
}

// errSlow means that a request has to wait because the homeserver has refused others.
var errSlow = errors.New("matrix: the homeserver limits the rate of requests")

// slowness returns how long a live update has to wait because the homeserver has refused requests lately. Only live updates wait: the
// answer has the normal pace.
func (t *chat) slowness(last *edit) time.Duration {
	if limited := time.Unix(0, t.c.limitedUntil.Load()); time.Since(limited) > slowFor {
		return 0
	}
	return slowGap - time.Since(last.at)
}

// checkExists returns live.ErrMissing if a message was redacted. Homeservers accept edits of such a message, but clients don't show them.
func (t *chat) checkExists(ctx context.Context, id string) error {
	var e roomEvent
	err := t.call(ctx, http.MethodGet, path("client/v3/rooms/%s/event/%s", t.at.room, id), nil, &e)
	switch {
	case code(err) == codeNotFound, err == nil && e.isRedacted():
		return live.ErrMissing
	case isFinal(err): // it can't be checked
		return nil
	}
	return err
}
