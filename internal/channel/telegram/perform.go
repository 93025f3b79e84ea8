package telegram

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel"
)

// cursor follows a text that grows.
const cursor = " ▍"

// perform carries out one live update. It returns an error only if the delivery has to end: what an update fails to show, a later
// one or the final message shows.
func (d *delivery) perform(ctx context.Context, do action) error {
	text, card := d.view.text, d.view.card
	var err error
	switch do {
	case sendTyping:
		err = d.request(ctx, d.gate, false, "sendChatAction", chatAction{d.at.chat, d.at.topic(), "typing"}, nil)
	case sendDraft:
		m := d.render(text)
		err = d.request(ctx, d.gate, false, "sendMessageDraft", outgoing{
			ChatID: d.at.chat, Thread: d.at.topic(), Draft: d.state.Draft, CanStop: true, Text: m.Text, Entities: m.Entities,
		}, nil)
	case createText:
		m := d.render(text)
		d.state.Text, err = d.create(ctx, creatingText, outgoing{Text: m.Text, Entities: m.Entities})
	case editText:
		m := d.render(text)
		err = d.edit(ctx, outgoing{Message: d.state.Text, Text: m.Text, Entities: m.Entities})
	case createCard:
		d.state.Card, err = d.create(ctx, creatingCard, outgoing{Text: d.timed(card), Mode: "HTML"})
	case askQuestion:
		err = d.ask(ctx, d.unasked())
	case closeQuestion:
		err = d.closeQuestion(ctx, d.closed())
	case editCard:
		err = d.edit(ctx, outgoing{Message: d.state.Card, Text: d.timed(card), Mode: "HTML"})
	}
	d.view.record(do, time.Now(), text, card, err == nil)
	d.view.asks, d.view.closes = d.unasked() != nil, d.closed() != nil
	if err == nil {
		d.failed = 0
		return nil
	}
	return d.recover(ctx, do, err)
}

// recover handles a live update that failed. It returns an error if the delivery has to end.
func (d *delivery) recover(ctx context.Context, do action, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errSave):
		return err
	case code(err) == http.StatusTooManyRequests: // the gate waits
		return nil
	case do == sendDraft && isDraftRefused(err):
		d.view.drafts, d.view.seenText = false, ""
		return nil
	case do == editText && isMissing(err): // the person has deleted the message
		d.state.Text, d.view.hasText, d.view.seenText = 0, false, ""
		return nil
	case do == editCard && isMissing(err):
		d.state.Card, d.view.hasCard = 0, false
		return nil
	case isTerminal(err):
		return errors.Join(channel.ErrUnreachable, err)
	}
	d.failed++
	d.pause = time.Now().Add(sendAgain.Wait(d.failed))
	d.log.Debug("live update of a chat failed", "error", err)
	return nil
}

// errSave means that the state of a delivery could not be stored.
var errSave = errors.New("telegram: the state of the delivery can't be stored")

// create sends a message that shows the running turn, without a notification, and returns its number. The state is stored before
// and after, so that a crash between the two is noticed.
func (d *delivery) create(ctx context.Context, kind string, m outgoing) (int64, error) {
	d.state.Creating = kind
	if err := d.metadata.Save(ctx, d.state); err != nil {
		return 0, errors.Join(errSave, err)
	}
	m.ChatID, m.Thread, m.Silent, m.Reply, m.Preview = d.at.chat, d.at.topic(), true, replyTo(d.quote()), &preview{true}
	var result message
	err := d.request(ctx, d.gate, true, "sendMessage", m, &result)
	if errors.Is(err, errUnknown) {
		d.recordUnknown()
	}
	d.state.Creating = ""
	if result.ID != 0 {
		d.created(result.ID)
	}
	switch kind {
	case creatingText:
		d.state.Text = result.ID
	case creatingCard:
		d.state.Card = result.ID
	}
	if saveErr := d.metadata.Save(ctx, d.state); saveErr != nil && err == nil {
		err = errors.Join(errSave, saveErr)
	}
	return result.ID, err
}

// edit changes a message that shows the running turn.
func (d *delivery) edit(ctx context.Context, m outgoing) error {
	m.ChatID, m.Preview = d.at.chat, &preview{true}
	err := d.request(ctx, d.gate, true, "editMessageText", m, nil)
	if isUnmodified(err) {
		return nil
	}
	return err
}

// render returns a text that grows as one message: its end, if it is too long for one, followed by a cursor.
func (d *delivery) render(text string) (m markup.Message) {
	d.doc = d.doc.Grow(markup.Heal(text))
	for from := 0; from < d.doc.Len(); {
		m, from = d.doc.Next(from, markup.Telegram, maxText-len(cursor))
	}
	m.Text += cursor
	return m
}

// timed returns the card with the time since the delivery began.
func (d *delivery) timed(card string) string { return withTime(card, time.Since(d.startedAt)) }

// chatAction are the parameters of sendChatAction.
type chatAction struct {
	ChatID int64  `json:"chat_id"`
	Thread int64  `json:"message_thread_id,omitempty"`
	Action string `json:"action"`
}
