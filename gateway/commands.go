package gateway

import (
	"context"
	"errors"
	"slices"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// stop ends a turn, queued or running. What was said stays; nothing later of it is seen.
func (o *owner) stop(t *tx, turn string, p Principal) (Ack, error) {
	if turn == "" {
		return Ack{}, reject(ReasonInvalid, "stop: a turn is needed")
	}
	ack := Ack{Turn: turn, Seq: o.head}
	if !slices.Contains(o.summary.Open, turn) {
		if !o.knows(turn) {
			return Ack{}, reject(ReasonUnknown, "no turn %q here", turn)
		}
		ack.AlreadyEnded = true
		return ack, nil
	}
	body := &event.Body{Outcome: event.Cancelled, Reason: "stopped"}
	switch r := o.current; {
	case r != nil && r.id == turn:
		r.endIn(t, body)
	case r != nil && r.children[turn]:
		delete(r.children, turn)
		r.mapper.End(turn)
		fallthrough
	default:
		t.add(event.Event{Type: event.TurnEnd, Turn: turn, Body: body})
		o.closeTurn(t, turn)
		t.then(func() { o.g.cfg.Metrics.Turns.WithLabelValues(string(event.Cancelled)).Inc() })
	}
	ack.Seq = o.head + int64(len(t.events))
	return ack, nil
}

// knows reports whether the turn belongs to the conversation, however old it is.
func (o *owner) knows(turn string) bool {
	v, err := o.g.journal.Get(o.g.life, turnKey(turn))
	return err == nil && string(v) == o.id
}

// answer closes an open request. The first answer wins.
func (o *owner) answer(ctx context.Context, p Principal, c Command) (Ack, error) {
	a := event.Answer{ID: c.Request, Decision: c.Decision, Text: c.Text, By: p.Subject}
	var r *run
	ack, err := o.keyed(ctx, c, func(t *tx) (Ack, error) {
		if c.Turn == "" || c.Request == "" {
			return Ack{}, reject(ReasonInvalid, "answer: a turn and a request are needed")
		}
		e := event.Event{Type: event.TurnResume, Turn: c.Turn, Body: &event.Body{Answer: &a}}
		if err := e.Validate(); err != nil {
			return Ack{}, reject(ReasonInvalid, "%v", err)
		}
		var open, ended, known bool
		o.feed.View(func(tr *transcript.Transcript) {
			if turn := tr.Turn(c.Turn); turn != nil {
				known, ended = true, turn.State == transcript.Ended
				open = slices.ContainsFunc(turn.Requests, func(q *transcript.Request) bool { return q.ID == c.Request })
			}
		})
		switch {
		case !known && !o.knows(c.Turn):
			return Ack{}, reject(ReasonUnknown, "no turn %q here", c.Turn)
		case ended || !known:
			return Ack{}, reject(ReasonAnswered, "the turn has ended")
		case !open:
			return Ack{}, reject(ReasonAnswered, "no such request is open")
		}
		r = o.current
		if r == nil || (r.id != c.Turn && !r.children[c.Turn]) {
			return Ack{}, reject(ReasonUnknown, "the turn does not run here")
		}
		r.addIn(t, []event.Event{e})
		return Ack{Turn: c.Turn, Seq: o.head + int64(len(t.events))}, nil
	})
	if err != nil || r == nil {
		return ack, err
	}
	if up, ok := r.agent.Agent.(agent.Answerer); ok {
		if err := up.Answer(ctx, r.input, a); err != nil {
			o.g.log.Warn("answer not taken by the agent", "turn", r.id, "err", err)
		}
	}
	return ack, nil
}

// inject adds a message that nothing answers: a note, a proactive message.
func (o *owner) inject(t *tx, c Command) (Ack, error) {
	m, err := o.message(c, event.Assistant)
	if err != nil {
		return Ack{}, err
	}
	if !o.free(m.Message) {
		return Ack{}, reject(ReasonConflict, "message id %q is taken", m.Message)
	}
	t.edit().Updated = now()
	return Ack{Message: m.Message, Seq: t.add(m)}, nil
}

// truncate drops the messages after one. It is refused while any turn is unfinished.
func (o *owner) truncate(ctx context.Context, c Command) (Ack, error) {
	// The message may be older than what is in memory, so the log is asked, before the writer is held up.
	whole, err := o.whole(ctx)
	if err != nil {
		return Ack{}, journalError("truncate", err)
	}
	keep := 0
	if c.After != "" {
		keep = slices.IndexFunc(whole.Messages, func(m *transcript.Message) bool { return m.ID == c.After }) + 1
		if keep == 0 {
			return Ack{}, reject(ReasonUnknown, "no message %q here", c.After)
		}
	}
	deleted := len(whole.Messages) - keep
	return o.keyed(ctx, c, func(t *tx) (Ack, error) {
		if len(o.summary.Open) > 0 || o.current != nil {
			return Ack{}, reject(ReasonUnfinished, "a turn is unfinished; stop it first")
		}
		seq := t.add(event.Event{Type: event.ConversationTruncate, Message: c.After})
		s := t.edit()
		s.Truncated, s.Updated = seq, now()
		t.then(func() { o.g.settle.add(o.id, o.head) })
		return Ack{Seq: seq, Deleted: deleted}, nil
	})
}

// whole folds the conversation's whole log.
func (o *owner) whole(ctx context.Context) (*transcript.Transcript, error) {
	r, err := o.g.journal.Read(ctx, o.id, 0, 0)
	if err != nil {
		return nil, err
	}
	t := &transcript.Transcript{}
	for i := range r.Events {
		if err := t.Apply(&r.Events[i]); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// update sets title and metadata.
func (o *owner) update(t *tx, c Command) (Ack, error) {
	if c.Title == nil && len(c.Metadata) == 0 {
		return Ack{}, reject(ReasonInvalid, "update: a title or metadata is needed")
	}
	if err := checkMeta(c.Title, c.Metadata); err != nil {
		return Ack{}, err
	}
	seq := t.add(event.Event{Type: event.ConversationUpdate, Body: &event.Body{Title: c.Title, Metadata: c.Metadata}})
	setMeta(t.edit(), c.Title, c.Metadata)
	return Ack{Seq: seq}, nil
}

// delete ends the conversation's turns, tells its readers, and removes all that is stored of it.
func (o *owner) delete(ctx context.Context, p Principal) (Ack, error) {
	var ack Ack
	err := o.submit(ctx, true, func(t *tx) error {
		if r := o.current; r != nil {
			r.endIn(t, &event.Body{Outcome: event.Cancelled, Reason: "conversation deleted"})
		}
		for _, turn := range slices.Clone(t.current().Open) {
			t.add(event.Event{Type: event.TurnEnd, Turn: turn, Body: &event.Body{Outcome: event.Cancelled, Reason: "conversation deleted"}})
			o.closeTurn(t, turn)
		}
		ack.Seq = t.add(event.Event{Type: event.ConversationDelete})
		t.set(deletingKey(o.id), []byte("1"), 0)
		t.terminal = true
		t.then(func() { o.kill(ErrNotFound) })
		return nil
	})
	if err != nil {
		return ack, commandError(err)
	}
	o.g.settle.wait(o.id)
	// The delete is in the log: should this be cut off, the next start finishes it.
	if err := o.g.journal.Delete(context.WithoutCancel(ctx), o.id); err != nil && !errors.Is(err, context.Canceled) {
		return ack, journalError("delete conversation", err)
	}
	return ack, nil
}
