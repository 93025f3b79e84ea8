package live

import (
	"context"
	"errors"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel"
)

// finish sends the answer and deletes what showed the running turn. If the answer can't be sent, that stays, because it is all that
// the person has. A turn that was removed, as by a regeneration, has no answer; then only the traces of it are deleted.
func (d *delivery) finish(ctx context.Context) error {
	var answer []markup.Message
	if !d.stream.IsRemoved() {
		answer = d.bot.splitText(d.stream.Final())
		if err := d.sendAnswer(ctx, answer); err != nil {
			return err
		}
		if err := d.sendFiles(ctx); err != nil {
			return err
		}
	}
	texts := 0
	if d.bot.rules.InPlace {
		texts = min(len(answer), len(d.state.Texts))
	}
	if err := d.tidy(ctx, texts); err != nil {
		return err
	}
	// This is reported at the end, after everything else has been done, so that the pipeline can inform the person without a
	// repetition.
	if d.state.Unknown > 0 {
		return channel.ErrUnknownOutcome
	}
	return nil
}

// sendAnswer brings the messages of the answer into the chat that are not there yet. The number of those that are there is in the
// state, so a delivery that continues repeats none of them.
func (d *delivery) sendAnswer(ctx context.Context, answer []markup.Message) error {
	for d.state.Answers < len(answer) {
		i := d.state.Answers
		p := Post{Kind: Answer, Text: answer[i], ReplyTo: d.state.ReplyTo, Key: partKey(d.metadata.Turn, i)}
		var err error
		if d.bot.rules.InPlace && i < len(d.state.Texts) {
			err = d.complete(ctx, i, p)
		} else {
			err = d.sendPart(ctx, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// complete turns a message with growing text into a message of the answer.
func (d *delivery) complete(ctx context.Context, i int, p Post) error {
	// A message keeps its kind for its whole life, also when it becomes a part of the answer.
	p.Kind = Text
	err := d.insist(ctx, true, noLimit, func() error { return d.chat.Edit(ctx, d.state.Texts[i], p) })
	switch {
	case errors.Is(err, ErrMissing):
		p.Kind = Answer
		d.state.Texts = append(d.state.Texts[:i:i], d.state.Texts[i+1:]...)
		if i < len(d.state.Texts) { // the next one takes its place
			return nil
		}
		return d.sendPart(ctx, p)
	case err != nil:
		return err
	}
	d.state.Answers++
	return d.save(ctx)
}

// sendPart posts a message of the answer. One that was possibly delivered counts as sent. A second copy of a part would be worse than
// a missing one that is reported, because an agent's answer can contain instructions that a person follows step by step.
func (d *delivery) sendPart(ctx context.Context, p Post) error {
	return d.sendOnce(ctx, Answer, &d.state.Answers, func() (string, error) { return d.post(ctx, p) })
}

// sendOnce creates a message and counts it in a field of the state, which is stored before and after that.
func (d *delivery) sendOnce(ctx context.Context, kind Kind, count *int, send func() (id string, err error)) error {
	d.state.Creating = kind
	if err := d.save(ctx); err != nil {
		return err
	}
	id, err := send()
	switch {
	case err == nil:
		d.recordCreated(kind, id)
		*count++
	case isUnknown(ctx, err):
		d.recordUnknown()
	default:
		return err
	}
	return d.save(ctx)
}

// tidy deletes the messages that showed the running turn, apart from the first texts, which became the answer. It is not an error if
// one can't be deleted, unless ctx ends: then a later delivery continues.
func (d *delivery) tidy(ctx context.Context, texts int) error {
	ids := d.state.Texts[texts:]
	if d.state.Card != "" {
		ids = append([]string{d.state.Card}, ids...)
	}
	for _, id := range ids {
		if err := d.remove(ctx, id); err != nil {
			return err
		}
	}
	// The turn has ended, so no question is open any more: a button that is still there would do nothing when it is pressed.
	for q := d.closed(); q != nil; q = d.closed() {
		if err := d.closeQuestion(ctx, q); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			q.Closed = true // its buttons have no effect any more
		}
	}
	for _, gap := range d.state.Gaps {
		if err := d.removeLost(ctx, gap); err != nil {
			return err
		}
	}
	return d.removeReaction(ctx)
}

// remove deletes a message. A status card that stays is only untidy. So the answer, which was delivered, isn't reported as a failure
// because of it.
func (d *delivery) remove(ctx context.Context, id string) error {
	err := d.insist(ctx, false, maxTries, func() error { return d.chat.Delete(ctx, id) })
	if err != nil && !errors.Is(err, ErrMissing) && ctx.Err() == nil {
		d.bot.log.Warn("a status message can't be deleted", "error", err)
	}
	return ctx.Err()
}

// removeLost deletes a message whose creation got no answer, if the platform can find it. A message without a known id can't be
// deleted otherwise and would show "Working…" in the chat for good.
func (d *delivery) removeLost(ctx context.Context, gap Gap) error {
	finder, ok := d.chat.(FindChat)
	if !ok {
		return nil
	}
	id, err := finder.Find(ctx, gap, func(send func() error) error { return d.insist(ctx, true, maxTries, send) })
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		d.bot.log.Warn("a lost status message can't be looked for", "error", err)
		return nil
	case id == "":
		return nil
	}
	return d.remove(ctx, id)
}
