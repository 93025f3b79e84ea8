package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/files"
	"github.com/leat-dev/leat/internal/store/journal"
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
	body := &event.Body{Outcome: event.Cancelled, Reason: "stopped", By: p.Subject}
	switch r := o.runOf(turn); {
	case r != nil && r.id == turn:
		r.endIn(t, body)
	case r != nil:
		delete(r.children, turn)
		r.mapper.End(turn)
		fallthrough
	default:
		t.add(event.Event{Type: event.TurnEnd, Turn: turn, Body: body})
		o.closeTurn(t, turn)
		t.set(stateKey(turn), nil, 0) // of a push that never began
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
	return o.keyed(ctx, c, func(t *tx) (Ack, error) {
		if c.Turn == "" || c.Request == "" {
			return Ack{}, reject(ReasonInvalid, "answer: a turn and a request are needed")
		}
		e := event.Event{Type: event.TurnResume, Turn: c.Turn, Body: &event.Body{Answer: &a}}
		if err := e.Validate(); err != nil {
			return Ack{}, reject(ReasonInvalid, "%v", err)
		}
		var ended, known bool
		var open *event.Request
		o.feed.View(func(tr *transcript.Transcript) {
			if turn := tr.Turn(c.Turn); turn != nil {
				known, ended = true, turn.State == transcript.Ended
				for _, q := range turn.Requests {
					if q.ID == c.Request {
						open = &q.Request
					}
				}
			}
		})
		switch {
		case !known && !o.knows(c.Turn):
			return Ack{}, reject(ReasonUnknown, "no turn %q here", c.Turn)
		case ended || !known:
			return Ack{}, reject(ReasonAnswered, "the turn has ended")
		case open == nil:
			return Ack{}, reject(ReasonAnswered, "no such request is open")
		case a.Decision == "" && a.Text == "":
			return Ack{}, reject(ReasonInvalid, "answer: a decision or a text is needed")
		case a.Decision != "" && a.Decision != event.Approve && a.Decision != event.Deny && !slices.Contains(open.Options, a.Decision):
			return Ack{}, reject(ReasonInvalid, "answer: %q is no decision here; there are %s", a.Decision, strings.Join(decisions(open), ", "))
		}
		r := o.runOf(c.Turn)
		if r == nil {
			return Ack{}, reject(ReasonUnknown, "the turn does not run here")
		}
		asked := r.asks(a.ID)
		r.addIn(t, []event.Event{e})
		if !asked {
			if err := r.setAnswer(t, answered{Answer: a}); err != nil {
				return Ack{}, err
			}
			t.then(func() { r.tell(a) })
		}
		return Ack{Turn: c.Turn, Seq: o.head + int64(len(t.events))}, nil
	})
}

// decisions are the words that answer a request.
func decisions(r *event.Request) []string {
	if len(r.Options) > 0 {
		return r.Options
	}
	return []string{event.Approve, event.Deny}
}

// inject adds a message that nothing answers: a note, a proactive message.
func (o *owner) inject(ctx context.Context, t *tx, p Principal, c Command) (Ack, error) {
	m, err := o.message(c, event.Assistant)
	if err != nil {
		return Ack{}, err
	}
	if c.taken || !o.free(m.Message) {
		return Ack{}, reject(ReasonConflict, "message id %q is taken", m.Message)
	}
	if err := t.take(p, quota.Need{Message: true, Bytes: o.g.sizeOf(m)}); err != nil {
		return Ack{}, err
	}
	if err := o.useFiles(ctx, t, m.Body.Parts); err != nil {
		return Ack{}, err
	}
	t.edit().Updated = now()
	ack := Ack{Message: m.Message, Seq: t.say(m, c)}
	o.entitle(t, p, &m)
	return ack, nil
}

// errTruncated says that the log was truncated after it was looked at.
var errTruncated = errors.New("gateway: another truncate came in between")

// truncate drops the messages after one. It is refused while any turn is unfinished.
func (o *owner) truncate(ctx context.Context, c Command) (Ack, error) {
	for {
		ack, err := o.truncateAt(ctx, c)
		if !errors.Is(err, errTruncated) {
			return ack, err
		}
	}
}

// truncateAt is one go at a truncate; errTruncated says that it is worth another one.
func (o *owner) truncateAt(ctx context.Context, c Command) (Ack, error) {
	// The message may be older than what is in memory, so the log is asked, before the writer is held up.
	whole, head, err := o.whole(ctx)
	if err != nil {
		return Ack{}, journalError("truncate", err)
	}
	keep := 0
	if c.After != "" {
		keep = slices.IndexFunc(whole.Messages, func(m *transcript.Message) bool { return m.ID == c.After }) + 1
	}
	deleted := len(whole.Messages) - keep
	gone := onlyIn(whole.Messages[keep:], whole.Messages[:keep], o.id)
	var dropped chan struct{} // closed when files that nobody shows any more are gone
	ack, err := o.keyed(ctx, c, func(t *tx) (Ack, error) {
		switch {
		case t.current().Truncated > head:
			return Ack{}, errTruncated // and the message may be gone: a log names only what is there
		case c.After != "" && keep == 0: // after the key, whose command may have been the one that came before it was dropped
			return Ack{}, reject(ReasonUnknown, "no message %q here", c.After)
		}
		// An agent that has not returned yet from a turn that has ended adds nothing to it.
		if len(o.summary.Open) > 0 || slices.ContainsFunc(o.runs(), func(r *run) bool { return !r.over.Load() }) {
			return Ack{}, reject(ReasonUnfinished, "a turn is unfinished; stop it first")
		}
		if c.After == "" {
			if err := o.forgetSessions(ctx, t); err != nil {
				return Ack{}, err
			}
		}
		seq := t.add(event.Event{Type: event.ConversationTruncate, Message: c.After})
		s := t.edit()
		s.Truncated, s.Updated = seq, now()
		t.then(func() { o.g.settle.add(o.id, o.head) })
		if o.head == head { // else what came meanwhile may show them
			o.dropFiles(t, gone)
			dropped = make(chan struct{})
			t.then(func() { close(dropped) })
		}
		return Ack{Seq: seq, Deleted: deleted}, nil
	})
	if err == nil {
		if dropped != nil {
			<-dropped // the writer does it once it has told of the commit
		}
		o.forgetRaw(ctx)
	}
	return ack, err
}

// whole folds the conversation's whole log, and returns the seq of its last event.
func (o *owner) whole(ctx context.Context) (*transcript.Transcript, int64, error) {
	r, err := o.g.journal.Read(ctx, o.id, 0, 0)
	if err != nil {
		return nil, 0, err
	}
	t := &transcript.Transcript{}
	for i := range r.Events {
		if err := t.Apply(&r.Events[i]); err != nil {
			return nil, 0, err
		}
	}
	return t, r.Head, nil
}

// update sets title and metadata.
func (o *owner) update(t *tx, p Principal, c Command) (Ack, error) {
	if c.Title == nil && len(c.Metadata) == 0 {
		return Ack{}, reject(ReasonInvalid, "update: a title or metadata is needed")
	}
	if err := checkMeta(c.Title, c.Metadata); err != nil {
		return Ack{}, err
	}
	if err := t.take(p, quota.Need{Bytes: o.g.metaSize(c.Title, c.Metadata)}); err != nil {
		return Ack{}, err
	}
	seq := t.add(event.Event{Type: event.ConversationUpdate, Body: &event.Body{Title: c.Title, Metadata: c.Metadata}})
	setMeta(t.edit(), c.Title, c.Metadata)
	return Ack{Seq: seq}, nil
}

// delete ends the conversation's turns, tells its readers, and removes all that is stored of it. unless, where given, is
// asked last, with the summary that nothing else can change any more. committed is called when nothing can stop it.
func (o *owner) delete(ctx context.Context, c Command, unless func(*journal.Summary) error, committed func()) (Ack, error) {
	var ack Ack
	ctx = context.WithoutCancel(ctx) // a delete that was taken goes to its end, whether or not somebody waits
	err := o.submit(ctx, true, func(t *tx) error {
		if unless != nil {
			if err := unless(t.current()); err != nil {
				return err
			}
		}
		for _, r := range o.runs() {
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
		return o.note(t, c, ack)
	})
	if err != nil {
		return ack, commandError(err)
	}
	committed()
	o.g.settle.wait(o.id)
	if err := o.g.finishDelete(ctx, o.id); err != nil && !errors.Is(err, context.Canceled) {
		o.g.reopen.erase(o.id)
		return ack, journalError("delete conversation", err)
	}
	return ack, nil
}

// finishDelete removes what is stored of a conversation whose delete is in its log. Should it be cut off, it is done again,
// at the next start if need be.
func (g *Gateway) finishDelete(ctx context.Context, id string) error {
	// So that what the audit log says of it is blanked with it.
	if err := g.audit.Flush(ctx); err != nil {
		return err
	}
	return g.erase(ctx, id)
}

// erase removes all that is stored of a conversation, its files first: its mark stays until the rest is gone too.
func (g *Gateway) erase(ctx context.Context, id string) error {
	if err := g.cfg.Raw.Forget(ctx, id); err != nil {
		return err
	}
	if g.cfg.Files != nil {
		if err := g.cfg.Files.RemoveAll(id); err != nil {
			return err
		}
		g.stored.remove(files.Folder(id))
	}
	if err := g.eraseUploads(ctx, id); err != nil {
		return err
	}
	return g.journal.Delete(ctx, id)
}
