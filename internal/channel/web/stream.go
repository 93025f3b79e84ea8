package web

import (
	"context"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
)

// delivery is one call of SendStream: the fold of the turn, and what of it the room shows. One goroutine uses it.
type delivery struct {
	room     *room
	metadata channel.StreamMetadata
	stream   *channel.Stream
	// part is the text part that grew last, and partLen its length. If the same part grows again, the text needs no comparison.
	part    string
	partLen int
	// shownSeq is the number of the last event that an interrupted delivery has shown. Until that event has arrived again, nothing is
	// shown, because text would seem to be retracted and answered questions would seem to be open.
	shownSeq int64
}

// SendStream implements [channel.StreamChannel]. The answer is delivered when its frames are in the chat's room: visitors who are
// connected get them from there, and others get them, or a history, when they come back. So it waits for no visitor.
//
// When Run has ended, it returns [channel.ErrStopped]: after a reload the visitors are in the rooms of the next
// channel. It returns nil when the end of the turn is in the room, errCut if events ends before the turn does, and
// the cause of ctx. A turn that was delivered before is read to its end and shown no second time.
func (c *Channel) SendStream(ctx context.Context, chatID string, metadata channel.StreamMetadata, events <-chan channel.StreamEvent) error {
	if !isChat(chatID) {
		return errUnknownChat
	}
	r := c.rooms.enter(chatID)
	defer c.rooms.leave(r)
	d := &delivery{room: r, metadata: metadata, stream: channel.NewStream(metadata.Turn)}
	var isNew bool
	d.shownSeq, isNew = r.begin(metadata.Turn, metadata.Agent)
	for {
		select {
		case e, ok := <-events:
			switch {
			case !ok:
				return d.finish(ctx, isNew)
			case !isNew:
				continue // only its end is of interest
			}
			if err := d.apply(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.stopped:
			return channel.ErrStopped
		}
	}
}

// apply folds a step into the turn and shows what has changed. Events are folded one by one, so that each growth is a
// frame. Two cases show only the result of a whole step: a snapshot, whose steps aren't known, and a repeated
// delivery that hasn't reached the last shown event.
func (d *delivery) apply(e channel.StreamEvent) error {
	if e.Snapshot != nil || d.shownSeq > 0 {
		if err := d.stream.Apply(e); err != nil {
			return err
		}
		// A snapshot has everything that was committed, and only what was committed is shown.
		if last := lastSeq(e); e.Snapshot != nil || last >= d.shownSeq {
			d.shownSeq = 0
			d.show()
			d.room.advance(last)
		}
		return nil
	}
	for i := range e.Events {
		if err := d.stream.Apply(channel.StreamEvent{Events: e.Events[i : i+1]}); err != nil {
			return err
		}
		if !d.grow(&e.Events[i]) {
			d.show()
		}
		d.room.advance(e.Events[i].Seq)
	}
	return nil
}

// lastSeq returns the number of the last event in a step.
func lastSeq(e channel.StreamEvent) int64 {
	if n := len(e.Events); n > 0 {
		return e.Events[n-1].Seq
	}
	return e.Snapshot.Seq
}

// grow shows an event that extends the last part of the answer, if it is such an event. That is the frequent case, and it doesn't
// depend on the length of the answer. It returns false for the first growth of a part, because the text may begin
// with a separator that only show adds.
func (d *delivery) grow(e *event.Event) bool {
	if e.Type != event.PartAppend || e.Field != event.Text || e.Turn != d.metadata.Turn {
		return false
	}
	messages := d.stream.Messages()
	if len(messages) == 0 {
		return false
	}
	m := messages[len(messages)-1]
	if len(m.Parts) == 0 || m.ID != e.Message {
		return false
	}
	p, old := m.Parts[len(m.Parts)-1], d.partLen
	id := m.ID + "/" + p.ID
	isSame := id == d.part && p.ID == e.Part
	d.part, d.partLen = id, p.Len(event.Text)
	if !isSame || old == 0 || d.partLen != old+len(e.Text) || p.Kind != event.KindText && p.Kind != event.KindStatus {
		return false
	}
	d.room.grow(e.Text)
	return true
}

// show shows what has changed in the turn. It may be called any number of times: the room adds frames only for what
// differs.
func (d *delivery) show() {
	turn := d.stream.Turn()
	if turn == nil {
		return
	}
	d.room.setText(d.stream.Text())
	for _, p := range d.stream.Tools() {
		d.room.setTool(frame{Call: p.ID, Name: p.Name, State: toolState(p, turn.Unfinished()), Summary: summary(p)})
	}
	for i, m := range d.stream.Media() {
		d.room.addFile(i, d.room.media.add(m, d.metadata.OpenMedia))
	}
	var questions []frame
	for _, q := range d.stream.Questions() {
		questions = append(questions, frame{Question: q.Token, Text: q.Text, Choices: q.Choices})
	}
	d.room.setQuestions(questions)
}

// finish ends the delivery after the last event. An answer that is not complete ends with a message that says why, instead of
// stream_done; but one that a person stopped is as complete as that person wanted it.
func (d *delivery) finish(ctx context.Context, isNew bool) error {
	if !isNew {
		return context.Cause(ctx)
	}
	turn := d.stream.Turn()
	if d.stream.IsRemoved() {
		d.room.setText("")
		d.room.end(frame{Type: typeDone})
		return nil
	}
	if turn == nil || turn.Unfinished() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return errCut
	}
	d.show()
	text, final := d.stream.Text(), d.stream.Final()
	rest := strings.TrimPrefix(final, text)
	switch {
	case turn.Outcome == event.Completed && len(d.stream.Media()) > 0, rest == "":
		d.room.end(frame{Type: typeDone})
	case turn.Outcome == event.Completed, turn.Outcome == event.Cancelled:
		d.room.grow(rest)
		d.room.end(frame{Type: typeDone})
	default:
		d.room.end(frame{Type: typeMessage, Content: d.stream.Notice()})
	}
	return nil
}
