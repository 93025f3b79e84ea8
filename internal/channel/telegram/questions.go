package telegram

import (
	"context"
	"errors"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel"
)

// question is a question that was sent.
type question struct {
	Token string `json:"token"`
	// Message is its number, or 0 if the request that sent it got no answer.
	Message int64 `json:"message,omitempty"`
	// Closed means that its buttons were removed.
	Closed bool `json:"closed,omitempty"`
}

// keyboard are the buttons below a message.
type keyboard struct {
	Rows [][]button `json:"inline_keyboard"`
}

type button struct {
	Text string `json:"text"`
	Data string `json:"callback_data"`
}

// buttons returns the choices of a question as buttons, each in a row.
func buttons(q channel.Question) *keyboard {
	if len(q.Choices) == 0 {
		return nil
	}
	k := &keyboard{}
	for i, choice := range q.Choices {
		k.Rows = append(k.Rows, []button{{choice, channel.AnswerCommand(q.Token, i)}})
	}
	return k
}

// unasked returns the first open question that was not sent, or nil.
func (d *delivery) unasked() *channel.Question {
	for _, q := range d.stream.Questions() {
		if d.asked(q.Token) == nil {
			return &q
		}
	}
	return nil
}

// asked returns the question with that token that was sent, or nil.
func (d *delivery) asked(token string) *question {
	for i := range d.state.Asked {
		if d.state.Asked[i].Token == token {
			return &d.state.Asked[i]
		}
	}
	return nil
}

// closed returns a question that was sent, isn't open any more and still has buttons, or nil.
func (d *delivery) closed() *question {
	open := d.stream.Questions()
	for i := range d.state.Asked {
		q := &d.state.Asked[i]
		isOpen := false
		for _, o := range open {
			isOpen = isOpen || o.Token == q.Token
		}
		if !isOpen && !q.Closed {
			return q
		}
	}
	return nil
}

// ask sends a question. It notifies, because the turn waits for the answer. A question that was possibly sent is not sent again:
// two with buttons would confuse, and an answer is also accepted as a text.
func (d *delivery) ask(ctx context.Context, q *channel.Question) error {
	d.state.Asked = append(d.state.Asked, question{Token: q.Token})
	if err := d.metadata.Save(ctx, d.state); err != nil {
		return errors.Join(errSave, err)
	}
	doc := markup.Parse(q.Text)
	m, _ := doc.Next(0, markup.Telegram, maxText)
	var result message
	err := d.request(ctx, d.gate, true, "sendMessage", outgoing{
		ChatID: d.at.chat, Thread: d.at.topic(), Text: m.Text, Entities: m.Entities, Buttons: buttons(*q), Reply: replyTo(d.quote()), Preview: &preview{true},
	}, &result)
	if err != nil && !errors.Is(err, errUnknown) {
		d.state.Asked = d.state.Asked[:len(d.state.Asked)-1] // it is asked again
		return err
	}
	if result.ID != 0 {
		d.asked(q.Token).Message = result.ID
		d.created(result.ID)
	}
	if err := d.metadata.Save(ctx, d.state); err != nil {
		return errors.Join(errSave, err)
	}
	return nil
}

// closeQuestion removes the buttons of a question. Its text stays, as a part of the chat's history.
func (d *delivery) closeQuestion(ctx context.Context, q *question) error {
	var err error
	if q.Message != 0 {
		err = d.request(ctx, d.gate, true, "editMessageReplyMarkup", target{d.at.chat, q.Message}, nil)
	}
	if err == nil || isUnmodified(err) || isMissing(err) {
		q.Closed = true
		return nil
	}
	return err
}
