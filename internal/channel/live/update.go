package live

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel"
)

// perform carries out one live update. It returns an error only if the delivery has to end: what an update fails to show, a later
// one or the final message shows. The text and the card are read at the beginning, so that what arrives during the request isn't
// recorded as shown.
func (d *delivery) perform(ctx context.Context, do action) error {
	text, card := d.view.text, d.view.card
	isSeen := true
	var err error
	switch do {
	case showTyping:
		err = d.gate.try(ctx, false, func() error { return d.chat.ShowTyping(ctx) })
	case showDraft:
		last := d.last(text)
		err = d.gate.try(ctx, false, func() error { return d.drafts.ShowDraft(ctx, d.livePost(last)) })
	case showText:
		isSeen, err = d.showText(ctx, text)
	case showCard:
		err = d.showCard(ctx)
	case askQuestion:
		err = d.ask(ctx, d.unasked())
	case closeQuestion:
		err = d.closeQuestion(ctx, d.closed())
	case reactToMessage:
		err = d.react(ctx)
	}
	d.view.record(do, time.Now(), text, card, err == nil && isSeen)
	d.view.hasText, d.view.hasCard = len(d.state.Texts) > 0, d.state.Card != ""
	d.view.asks, d.view.closes = d.unasked() != nil, d.closed() != nil
	if err == nil {
		d.failed = 0
		return nil
	}
	return d.recover(ctx, do, err)
}

// recover handles a live update that failed. It returns an error if the delivery has to end. An error that only concerns this update
// lengthens the pause before the next one and is logged for operators, but people see no trace of it.
func (d *delivery) recover(ctx context.Context, do action, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errSave), errors.Is(err, channel.ErrUnreachable):
		return err
	case penalty(err) != nil, errors.Is(err, ErrRepeat): // the gate waits
		return nil
	case errors.Is(err, errCrowded):
		d.pause = time.Now().Add(crowded)
		return nil
	case do == showDraft && errors.Is(err, ErrNoDrafts):
		d.view.drafts, d.view.seenText = false, ""
		return nil
	}
	d.failed++
	d.pause = time.Now().Add(sendAgain.Wait(d.failed))
	d.bot.log.Debug("live update of a chat failed", "error", err)
	return nil
}

// showText makes one request that brings the messages with the growing text closer to what they should show. isSeen reports that
// they show it now. One request at a time leaves room for a question or the card between the edits of a long answer.
func (d *delivery) showText(ctx context.Context, text string) (isSeen bool, err error) {
	parts := d.parts(text)
	for i, part := range parts {
		switch isLast := i == len(parts)-1; {
		case i >= len(d.state.Texts):
			if err := d.create(ctx, Text, d.livePost(part)); err != nil {
				return false, err
			}
			d.visible = append(d.visible[:min(i, len(d.visible))], part.Text)
			return isLast, nil
		case i >= len(d.visible) || d.visible[i] != part.Text:
			if err := d.editText(ctx, i, part); err != nil {
				return false, err
			}
			return isLast && len(d.state.Texts) == len(parts), nil
		}
	}
	if n := len(parts); n < len(d.state.Texts) { // a part of the text was retracted
		return false, d.removeText(ctx, n)
	}
	return true, nil
}

// editText edits the ith message with the growing text. One that a person has deleted is replaced by another.
func (d *delivery) editText(ctx context.Context, i int, part markup.Message) error {
	d.visible = slices.Grow(d.visible, 1)[:max(len(d.visible), i)] // those before are shown as they should be
	err := d.gate.try(ctx, true, func() error { return d.chat.Edit(ctx, d.state.Texts[i], d.livePost(part)) })
	switch {
	case errors.Is(err, ErrMissing):
		d.state.Texts = slices.Delete(d.state.Texts, i, i+1)
		d.visible = d.visible[:i]
		return nil
	case err != nil:
		return err
	}
	d.visible = append(d.visible[:i], part.Text)
	return nil
}

// removeText deletes the ith message with the growing text, which is the last. The messages before it are edited by later calls, so
// the order of requests is from the beginning of the text to its end.
func (d *delivery) removeText(ctx context.Context, i int) error {
	err := d.gate.try(ctx, false, func() error { return d.chat.Delete(ctx, d.state.Texts[i]) })
	if err != nil && !errors.Is(err, ErrMissing) {
		return err
	}
	d.state.Texts = slices.Delete(d.state.Texts, i, i+1)
	d.visible = d.visible[:min(i, len(d.visible))]
	return nil
}

// showCard creates or edits the status card. The elapsed time is set here and not in newStatus, because it has to be that of the
// request.
func (d *delivery) showCard(ctx context.Context) error {
	status := *d.status
	status.Elapsed = time.Since(d.startedAt)
	p := Post{Kind: Card, Status: &status, IsLive: true, IsSilent: true, ReplyTo: d.state.ReplyTo}
	if d.state.Card == "" {
		return d.create(ctx, Card, p)
	}
	err := d.gate.try(ctx, true, func() error { return d.chat.Edit(ctx, d.state.Card, p) })
	if errors.Is(err, ErrMissing) { // a person has deleted it; a new one is created
		d.state.Card = ""
		return nil
	}
	return err
}

// create creates a message that shows the running turn. The state is stored before and after, so that a crash between the two is
// noticed. If the platform recognises a repetition, a request without an answer is repeated at once. An error of the platform takes
// precedence over one of storing, because it decides how the delivery continues.
func (d *delivery) create(ctx context.Context, kind Kind, p Post) error {
	d.state.Creating = kind
	d.state.Created++
	if err := d.save(ctx); err != nil {
		return err
	}
	p.Key = d.creationKey()
	var id string
	send := func() (err error) {
		id, err = d.chat.Post(ctx, p)
		return err
	}
	err := d.gate.try(ctx, true, send)
	if errors.Is(err, ErrUnknown) && d.bot.rules.Idempotent {
		err = d.persist(ctx, send)
	}
	switch {
	case err == nil:
		d.recordCreated(kind, id)
	case errors.Is(err, ErrUnknown):
		d.recordUnknown()
	case ctx.Err() != nil: // whether the message exists is not known: the next delivery finds out
		return context.Cause(ctx)
	default:
		d.state.Creating = ""
	}
	if saveErr := d.save(ctx); saveErr != nil && err == nil {
		return saveErr
	}
	return err
}

// livePost returns a message with growing text. It notifies only if it becomes the answer, because then no other message will.
func (d *delivery) livePost(m markup.Message) Post {
	return Post{Kind: Text, Text: m, IsLive: true, IsSilent: !d.bot.rules.InPlace, ReplyTo: d.state.ReplyTo}
}

// parts returns the messages that a growing text needs: all, if they become the answer, and otherwise the last. The text is healed
// first: markup that is still open is closed, so an unfinished bold word doesn't make the rest of the message bold.
func (d *delivery) parts(text string) []markup.Message {
	if !d.bot.rules.InPlace {
		return []markup.Message{d.last(text)}
	}
	rules := d.bot.rules
	d.doc = d.doc.Grow(markup.Heal(text))
	var list []markup.Message
	for from := 0; from < d.doc.Len(); {
		var m markup.Message
		if m, from = d.doc.Next(from, rules.Format, rules.MaxText-len(rules.Cursor)); m.Text != "" {
			list = append(list, m)
		}
	}
	if n := len(list); n > 0 {
		list[n-1].Text += rules.Cursor
	}
	return list
}

// last returns a growing text as one draft: its end, if it is too long for one. The parts before it are not shown at all until the
// answer is sent, because a draft has room for one only.
func (d *delivery) last(text string) (m markup.Message) {
	rules := d.bot.rules
	format, limit := rules.Format, rules.MaxText
	if c, ok := d.drafts.(DraftFormatter); ok {
		format, limit = c.DraftFormat()
	}
	d.doc = d.doc.Grow(markup.Heal(text))
	for from := 0; from < d.doc.Len(); {
		m, from = d.doc.Next(from, format, limit-len(rules.Cursor))
	}
	m.Text += rules.Cursor
	return m
}
