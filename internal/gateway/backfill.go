package gateway

import (
	"context"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/transcript"
)

// sourceImport is the source of messages from outside this gateway.
const sourceImport = "import"

// BackfillMessage is an older message from outside this gateway.
type BackfillMessage struct {
	Role event.Role
	Text string
	At   int64 // epoch milliseconds; 0: now
}

// Backfill adds messages from outside this gateway to an empty conversation of the principal, and sets its title if it has
// none. If the conversation has a message or a turn already, nothing is changed and isAdded is false, so that a repetition does
// no harm. The messages count against the quota of stored bytes, but not as messages that were sent. They start no
// turn and trigger no webhook.
func (g *Gateway) Backfill(ctx context.Context, p Principal, conversation, title string, messages []BackfillMessage) (isAdded bool, err error) {
	w, err := g.writers.acquire(ctx, conversation)
	if err != nil {
		return false, err
	}
	defer w.release()
	s := w.info()
	if err := Decide(p, ActionWrite, &s); err != nil {
		return false, err
	}
	if !p.Admin && p.Subject != s.Owner {
		return false, ErrForbidden // a guest must not add messages in the owner's name
	}
	if g.Draining() {
		return false, reject(ReasonDraining, "the gateway is stopping; try again in a moment")
	}
	if err := checkMeta(&title, nil); err != nil {
		return false, err
	}
	events, err := backfillEvents(messages, g.settings().MaxMessage)
	if err != nil {
		return false, err
	}
	if title == "" && g.cfg.Titles {
		title = firstTitle(events)
	}
	err = w.submit(ctx, func(t *tx) error {
		// Checked in the writer's job, so that a message sent at the same time can't come between the check and the change.
		hasContent := len(t.current().Open) > 0
		w.feed.View(func(tr *transcript.Transcript) { hasContent = hasContent || len(tr.Messages) > 0 || tr.Earlier })
		if hasContent {
			return nil
		}
		if err := t.reserve(p, quota.Need{Bytes: g.limits.sizeOf(events...)}); err != nil {
			return err
		}
		// Old messages must not trigger webhooks or count as unread.
		t.isBackfill = true
		ack := Ack{}
		if title != "" && t.current().Title == "" {
			ack.Seq = t.add(event.Event{Type: event.ConversationUpdate, Body: &event.Body{Title: &title}})
			setMeta(t.edit(), &title, nil)
		}
		for _, e := range events {
			ack.Seq = t.add(e)
		}
		t.edit().Updated = nowMillis()
		isAdded = true
		return w.note(t, Command{Type: "import", actor: Actor(ctx, p)}, ack)
	})
	if err != nil {
		return false, commandError(err)
	}
	return isAdded, nil
}

// backfillEvents returns the events of messages. Their times never decrease and are never in the future. A message
// without a time gets the current one, and so do the messages after it.
func backfillEvents(messages []BackfillMessage, maxBytes int) ([]event.Event, error) {
	commandMessages := make([]CommandMessage, len(messages))
	for i, m := range messages {
		commandMessages[i] = CommandMessage{Role: m.Role, Text: m.Text, Source: sourceImport}
	}
	events, err := initialMessages(commandMessages, maxBytes)
	if err != nil {
		return nil, err
	}
	latest, at := nowMillis(), int64(0)
	for i, m := range messages {
		// Readers sort and group by time, so a time that goes back, or lies in the future, would mix up the messages.
		if at = max(at, min(m.At, latest)); m.At == 0 {
			at = latest
		}
		events[i].At = at
	}
	return events, nil
}
