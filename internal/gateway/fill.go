package gateway

import (
	"context"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/transcript"
)

// sourceImport is the source of messages that were said elsewhere.
const sourceImport = "import"

// Past is a message that was said elsewhere.
type Past struct {
	Role event.Role
	Text string
	At   int64 // epoch milliseconds; 0: now
}

// Fill brings messages from elsewhere into a conversation of the principal's in which nothing was said yet, and gives it the
// title if it has none. filled is false where something was said: then nothing is changed, so that a repeat is harmless.
func (g *Gateway) Fill(ctx context.Context, p Principal, conversation, title string, messages []Past) (filled bool, err error) {
	o, err := g.owner(ctx, conversation)
	if err != nil {
		return false, err
	}
	defer o.release()
	s := o.info()
	if err := Decide(p, ActionWrite, &s); err != nil {
		return false, err
	}
	if !p.Admin && p.Subject != s.Owner {
		return false, ErrForbidden // a guest speaks for nobody else
	}
	if g.Draining() {
		return false, reject(ReasonDraining, "the gateway is stopping; try again in a moment")
	}
	if err := checkMeta(&title, nil); err != nil {
		return false, err
	}
	events, err := g.past(messages)
	if err != nil {
		return false, err
	}
	if title == "" && g.cfg.Titles {
		title = firstTitle(events)
	}
	err = o.submit(ctx, true, func(t *tx) error {
		said := len(t.current().Open) > 0
		o.feed.View(func(tr *transcript.Transcript) { said = said || len(tr.Messages) > 0 || tr.Earlier })
		if said {
			return nil
		}
		if err := t.take(p, quota.Need{Bytes: g.sizeOf(events...)}); err != nil {
			return err
		}
		t.past = true
		ack := Ack{}
		if title != "" && t.current().Title == "" {
			ack.Seq = t.add(event.Event{Type: event.ConversationUpdate, Body: &event.Body{Title: &title}})
			setMeta(t.edit(), &title, nil)
		}
		for _, e := range events {
			ack.Seq = t.add(e)
		}
		t.edit().Updated = now()
		filled = true
		return o.note(t, Command{Type: "import", by: by(ctx, p)}, ack)
	})
	if err != nil {
		return false, commandError(err)
	}
	return filled, nil
}

// past makes the events of messages, whose times do not fall and are not to come.
func (g *Gateway) past(messages []Past) ([]event.Event, error) {
	all := make([]CommandMessage, len(messages))
	for i, m := range messages {
		all[i] = CommandMessage{Role: m.Role, Text: m.Text, Source: sourceImport}
	}
	events, err := g.seed(all)
	if err != nil {
		return nil, err
	}
	latest, at := now(), int64(0)
	for i, m := range messages {
		if at = max(at, min(m.At, latest)); m.At == 0 {
			at = latest
		}
		events[i].At = at
	}
	return events, nil
}
