package live

import (
	"context"
	"errors"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel"
)

// question is a question that was sent. It is stored with the delivery, because a later process has to remove the buttons.
type question struct {
	// Token identifies the question in the pipeline. It is a part of the command of each button.
	Token string `json:"token"`
	// Text is Markdown. It is shown without buttons when the question was answered.
	Text string `json:"text"`
	// Message is its id, or empty if the request that sent it got no answer.
	Message string `json:"message,omitempty"`
	// Closed means that it has no buttons any more.
	Closed bool `json:"closed,omitempty"`
}

// unasked returns the first open question that was not sent, or nil. Questions are sent one after another, so that a person reads
// them in the order in which the agent asked.
func (d *delivery) unasked() *channel.Question {
	for _, q := range d.stream.Questions() {
		if d.sentQuestion(q.Token) == nil {
			return &q
		}
	}
	return nil
}

// sentQuestion returns the question with that token that was sent, or nil. The result points into the state, so a change is stored
// with it.
func (d *delivery) sentQuestion(token string) *question {
	for i := range d.state.Questions {
		if d.state.Questions[i].Token == token {
			return &d.state.Questions[i]
		}
	}
	return nil
}

// closed returns a question that was sent, isn't open any more and still has buttons, or nil. A question closes when it is answered
// in any way: by a button, a message, on the gateway's page, or because the turn has ended.
func (d *delivery) closed() *question {
	open := d.stream.Questions()
	for i := range d.state.Questions {
		q := &d.state.Questions[i]
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

// ask sends a question. It notifies, because the turn waits for the answer. A question that was possibly sent is not sent again,
// unless the platform recognises the repetition: two with buttons would confuse, and an answer is also accepted as a text.
func (d *delivery) ask(ctx context.Context, q *channel.Question) error {
	rules := d.bot.rules
	// The question is recorded before it is sent. A process that ends meanwhile then doesn't ask a second time.
	entry := question{Token: q.Token, Text: q.Text, Closed: !rules.HasButtons || len(q.Choices) == 0}
	if !rules.HasButtons {
		entry.Text = q.TextWithChoices()
	}
	d.state.Questions = append(d.state.Questions, entry)
	if err := d.save(ctx); err != nil {
		return err
	}
	p := Post{Kind: Question, Text: d.questionText(entry.Text), ReplyTo: d.state.ReplyTo, Key: d.metadata.Turn + "/" + q.Token}
	if rules.HasButtons {
		for i, choice := range q.Choices {
			p.Buttons = append(p.Buttons, Button{choice, channel.AnswerCommand(q.Token, i)})
		}
	}
	var id string
	err := d.gate.pass(ctx, true, func() (err error) {
		id, err = d.chat.Post(ctx, p)
		return err
	})
	if err != nil && (!errors.Is(err, ErrUnknown) || rules.Idempotent) {
		d.state.Questions = d.state.Questions[:len(d.state.Questions)-1] // it is asked again
		return err
	}
	if id != "" {
		d.sentQuestion(q.Token).Message = id
		d.recordCreated(Question, id)
	}
	return d.save(ctx)
}

// closeQuestion removes the buttons of a question. Its text stays, as a part of the chat's history. A question without a known
// message can't be edited. Its buttons then stay, and the pipeline answers a press with the fact that the question is closed.
func (d *delivery) closeQuestion(ctx context.Context, q *question) error {
	var err error
	if q.Message != "" {
		p := Post{Kind: Question, Text: d.questionText(q.Text)}
		err = d.gate.pass(ctx, true, func() error { return d.chat.Edit(ctx, q.Message, p) })
	}
	if err == nil || errors.Is(err, ErrMissing) {
		q.Closed = true
		return nil
	}
	return err
}

// questionText returns a question as one message. If it is too long for a message, its end is left out: the buttons have to be in the
// same message as the question.
func (d *delivery) questionText(text string) markup.Message {
	m, _ := markup.Parse(text).Next(0, d.bot.rules.Format, d.bot.rules.MaxText)
	return m
}
